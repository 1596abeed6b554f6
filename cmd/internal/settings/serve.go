// Package settings is the one description of what `warren serve` can be told: the same struct gives the flags, the
// environment variables, the keys of a file, the help and the reference page (docs/configuration.md).
//
// A flag wins over the environment, the environment over the file, the file over the default.
package settings

//go:generate go test -run TestReferenceIsCurrent -update .

// Serve is everything that a node can be told. Kong fills it; Problems checks it; Config hands it to the server.
type Serve struct {
	File string `name:"config" env:"WARREN_CONFIG" placeholder:"FILE" group:"Node" help:"TOML or YAML file with any of these settings, named as the flags are without the dashes in front. What a flag or the environment says wins over it."`

	NodeID  string `env:"WARREN_NODE_ID" placeholder:"NAME" group:"Node" help:"Stable name of this node, unique in the cluster. Kept in the data directory: without it the name found there holds, or one is made."`
	DataDir string `env:"WARREN_DATA_DIR" default:"./warren-data" group:"Node" help:"Folder of everything that this node must not forget. Made when it is missing."`

	BootstrapExpect Count    `env:"WARREN_BOOTSTRAP_EXPECT" default:"1" group:"Cluster" help:"How many nodes the cluster begins with. The first full set forms it, once ever; say the same at every later start. 1 is a cluster of this node alone."`
	Join            []string `env:"WARREN_JOIN" sep:"," placeholder:"HOST:PORT" group:"Cluster" help:"Gossip addresses of the nodes, comma-separated. This node's own may be among them, so that all nodes can have the same list."`
	Timing          string   `env:"WARREN_TIMING" default:"default" group:"Cluster" help:"How soon a leader that fell silent is replaced: default (about 1 s) or fast (about 0.5 s, for hosts that are never overloaded). A leader whose process died is replaced in milliseconds either way."`

	NativeAddr string `env:"WARREN_NATIVE_ADDR" default:"127.0.0.1:5670" group:"Addresses" help:"Where the native protocol listens: clients and tools."`
	AMQPAddr   string `name:"amqp-addr" env:"WARREN_AMQP_ADDR" default:"127.0.0.1:5672" group:"Addresses" help:"Where AMQP 0-9-1 listens. On a follower its clients are relayed to the leader."`
	HTTPAddr   string `name:"http-addr" env:"WARREN_HTTP_ADDR" default:"127.0.0.1:15672" group:"Addresses" help:"Where HTTP listens: health, metrics, cluster state, management."`
	RaftAddr   string `env:"WARREN_RAFT_ADDR" default:"127.0.0.1:5680" group:"Addresses" help:"Where the other nodes' Raft connections come in."`
	GossipAddr string `env:"WARREN_GOSSIP_ADDR" default:"127.0.0.1:5690" group:"Addresses" help:"Where gossip between the nodes comes in, TCP and UDP."`

	AdvertiseNative string `env:"WARREN_ADVERTISE_NATIVE" placeholder:"HOST:PORT" group:"Addresses" help:"Under which address others reach the native listener. Needed when that is bound to every interface (0.0.0.0 or [::]); otherwise its own address."`
	AdvertiseAMQP   string `name:"advertise-amqp" env:"WARREN_ADVERTISE_AMQP" placeholder:"HOST:PORT" group:"Addresses" help:"The same for AMQP 0-9-1."`
	AdvertiseHTTP   string `name:"advertise-http" env:"WARREN_ADVERTISE_HTTP" placeholder:"HOST:PORT" group:"Addresses" help:"The same for HTTP."`
	AdvertiseRaft   string `env:"WARREN_ADVERTISE_RAFT" placeholder:"HOST:PORT" group:"Addresses" help:"The same for Raft."`
	AdvertiseGossip string `env:"WARREN_ADVERTISE_GOSSIP" placeholder:"HOST:PORT" group:"Addresses" help:"The same for gossip."`

	DefaultUser     string   `env:"WARREN_DEFAULT_USER" default:"guest" placeholder:"NAME" group:"Clients" help:"The one user there is so far. Say the same on every node."`
	DefaultPassword string   `env:"WARREN_DEFAULT_PASSWORD" default:"guest" placeholder:"TEXT" group:"Clients" help:"That user's password. Better in the environment or the file than as a flag, which every process on the host can read."`
	LoopbackUsers   []string `env:"WARREN_LOOPBACK_USERS" sep:"," default:"guest" placeholder:"NAME" group:"Clients" help:"Users who may log in from this host only, comma-separated. none lets everybody log in from anywhere."`
	ConsumerTimeout Span     `env:"WARREN_CONSUMER_TIMEOUT" default:"0s" group:"Clients" help:"How long a delivery may stay unacknowledged: then it returns to its queue and its consumer is cancelled. A consumer's own x-consumer-timeout and its queue's go before it. 0s is for ever."`

	LogStore            string `env:"WARREN_LOG_STORE" default:"segments" group:"Storage" help:"How the Raft log is kept: segments (own append-only files) or bolt (raft-boltdb, slower). A data directory keeps the kind it was made with."`
	SegmentSize         Size   `env:"WARREN_SEGMENT_SIZE" default:"64MiB" group:"Storage" help:"Size of one file of the segmented log."`
	SnapshotLogBytes    Size   `env:"WARREN_SNAPSHOT_LOG_BYTES" default:"64MiB" group:"Storage" help:"A snapshot is taken after so many bytes of log."`
	SnapshotAge         Span   `env:"WARREN_SNAPSHOT_AGE" default:"1h" group:"Storage" help:"A snapshot is taken at least so often while there are changes."`
	SnapshotRate        Size   `env:"WARREN_SNAPSHOT_RATE" default:"100MiB" group:"Storage" help:"Bytes a second of the state that a node sends to the followers that need the whole of it, all of them together, while it serves its clients. 0 is no bound, 1MiB the least else."`
	CollectRecords      Count  `env:"WARREN_COLLECT_RECORDS" default:"2000" group:"Storage" help:"A queue's message file is rewritten when it holds more records than this and fewer than half of them are still needed."`
	IndexMemoryMessages Count  `env:"WARREN_INDEX_MEMORY_MESSAGES" default:"1000000" group:"Storage" help:"So many messages of a queue, from its head on, have their place on disk in memory (10 bytes each). What a longer queue has behind them is in files, read when it is needed; one byte a message stays in memory."`
	DiskTimeout         Span   `env:"WARREN_DISK_TIMEOUT" default:"2s" group:"Storage" help:"A disk that takes longer than this for one operation counts as hung: the process ends with status 74, so that another node leads."`
	Memory              Size   `env:"WARREN_MEMORY" default:"auto" group:"Storage" help:"Memory that the node may take as a whole. Bodies above their part of it are on disk until they are needed; before it is used up, publishes are slowed and then held up, while consuming goes on. auto is 60 % of what the machine and the control groups of the process (a container's limit) allow; more than they allow is refused."`
	MinDiskFree         Size   `env:"WARREN_MIN_DISK_FREE" default:"200MiB" group:"Storage" help:"Publishes are held up while the data directory's disk has less free than this on any voter; consuming goes on. A quarter of it more is kept in the file reserve for when the disk is full all the same."`

	LogLevel    string `env:"WARREN_LOG_LEVEL" default:"info" group:"Operation" help:"What is logged on standard error: debug, info, warn or error, and what is worse."`
	LogFormat   string `env:"WARREN_LOG_FORMAT" default:"text" group:"Operation" help:"text or json."`
	CloseWithin Span   `env:"WARREN_CLOSE_WITHIN" default:"10s" group:"Operation" help:"Bound of a graceful stop (SIGTERM or SIGINT): hand leadership over, tell the clients, leave. A second signal ends the process at once."`

	problems []string // found while the file was read
}
