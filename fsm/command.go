package fsm

// Opcode identifies a command in a log entry. Numbers are written by hand and never reused.
type Opcode uint8

// The commands. Those from 64 on are reserved for access control, policies and limits.
const (
	OpPutVhost         Opcode = 1
	OpDeleteVhost      Opcode = 2
	OpPutExchange      Opcode = 3
	OpDeleteExchange   Opcode = 4
	OpPutQueue         Opcode = 5
	OpDeleteQueue      Opcode = 6
	OpPutBinding       Opcode = 7
	OpDeleteBinding    Opcode = 8
	OpPurge            Opcode = 9
	OpPublish          Opcode = 16
	OpSettle           Opcode = 17
	OpExpire           Opcode = 18
	OpTransaction      Opcode = 19
	OpClaim            Opcode = 20
	OpDeadLetter       Opcode = 21
	OpTrim             Opcode = 22
	OpMove             Opcode = 23
	OpDeleteMessages   Opcode = 24
	OpRelease          Opcode = 26
	OpClientGone       Opcode = 32
	OpLeaderStarted    Opcode = 33
	OpDropExclusive    Opcode = 34
	OpDropTransient    Opcode = 35
	OpConsumerPresence Opcode = 36
	OpDeleteUnused     Opcode = 37
	OpUseQueue         Opcode = 38
	OpBodyPart         Opcode = 48
	OpDropUpload       Opcode = 49
	OpMark             Opcode = 56
	OpAudit            Opcode = 57
	OpMemberBoots      Opcode = 58
	OpFoundCluster     Opcode = 59
	OpPutPolicy        Opcode = 64
	OpDeletePolicy     Opcode = 65
	OpPutLimit         Opcode = 66
)

// Command is one change of state, a struct of this package. A Batch carries commands; the machine applies each of
// them exactly once, in order, on every node, and gives each its own Result.
type Command interface {
	opcode() Opcode
	appendTo(b []byte) []byte
}

// Session names a client connection for as long as the cluster exists: the term of the leadership that accepted it
// and its number within that term.
type Session struct {
	Term   uint64
	Number uint64
}

// Run is a range of sequence numbers, both ends included.
type Run struct{ From, To uint64 }

// PutVhost creates a virtual host. It succeeds when it exists already.
type PutVhost struct{ Name string }

// DeleteVhost removes a virtual host with all that is in it. NotFound when it does not exist.
type DeleteVhost struct{ Name string }

// PutExchange declares an exchange (AMQP exchange.declare): absent, it is created; present and equivalent, it
// succeeds; different, PreconditionFailed. Arguments are AMQP field-table bytes without their length prefix.
// The names that begin with "amq." and the default exchange are refused with AccessRefused unless they exist and
// are equivalent.
type PutExchange struct {
	Vhost      uint64
	Name       string
	Type       string
	Durable    bool
	AutoDelete bool
	Internal   bool
	Arguments  []byte
}

// DeleteExchange removes an exchange and its bindings. Deleting one that does not exist succeeds (as in RabbitMQ).
// With IfUnused a source of bindings is refused with PreconditionFailed.
type DeleteExchange struct {
	Vhost    uint64
	Name     string
	IfUnused bool
}

// PutQueue declares a queue. The name is never empty: the broker makes names. Result.Queue, Name, Messages and
// Created are set. Finding one that expires when unused is a use of it, unless it is declared as a quorum queue. An exclusive queue belongs to Owner; another session gets ResourceLocked.
type PutQueue struct {
	Vhost      uint64
	Name       string
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	Arguments  []byte
	Owner      Session
}

// DeleteQueue removes a queue, its bindings and its messages; Result.Messages is how many were ready. Deleting one
// that does not exist succeeds. Held are the runs of sequence numbers that consumers hold when the batch is cut:
// IfEmpty looks at ready messages only (rule 3). Number, when not zero, must be the queue's number, else nothing
// happens (the queue meant is gone already).
type DeleteQueue struct {
	Vhost   uint64
	Name    string
	Number  uint64
	IfEmpty bool
	Held    []Run
	Session Session
}

// DestinationKind says what a binding leads to.
type DestinationKind uint8

// The kinds of destination, numbered as in the native protocol.
const (
	ToQueue    DestinationKind = 0
	ToExchange DestinationKind = 1
)

// PutBinding binds a queue or an exchange to a source exchange. Both ends must exist (NotFound). Binding twice with
// the same key and arguments, in any order of their fields, is one binding. The default exchange is refused with
// AccessRefused.
type PutBinding struct {
	Vhost       uint64
	Source      string
	Kind        DestinationKind
	Destination string
	Key         string
	Arguments   []byte
	Session     Session
}

// DeleteBinding removes the binding with exactly these fields. One that does not exist succeeds (as in RabbitMQ).
// Removing the last binding of an auto-delete exchange deletes the exchange.
type DeleteBinding struct {
	Vhost       uint64
	Source      string
	Kind        DestinationKind
	Destination string
	Key         string
	Arguments   []byte
	Session     Session
}

// Purge removes the ready messages of a queue: those live and not in Held. Result.Messages is how many.
type Purge struct {
	Queue uint64
	Held  []Run
}

// Publish routes one message, also to the keys in the arrays of its headers CC and BCC. Properties are AMQP 0-9-1
// property bytes (flags word first); what CheckProperties has against them is refused. The body is Body, or
// the parts sent before under Upload when Upload is not zero. With a Producer the publish takes effect at most once
// for each Sequence (rule 5). Result.Routed is the number of queues it reached; a message that reaches none is
// dropped with Result.Routed 0 and OK: returning a mandatory one is the broker's part. With a number above 0, in ms, in
// its header x-delay it waits, which is a Result.Routed of 1, and is routed by a Release.
type Publish struct {
	Vhost      uint64
	Exchange   string
	RoutingKey string
	Properties []byte
	Body       []byte
	Upload     uint64
	Session    Session // of the upload
	Producer   []byte  // at most MaxProducerBytes
	Sequence   uint64
}

// SettleKind says what happens to the messages of a Settle.
type SettleKind uint8

// The kinds of settlement.
const (
	Acknowledge SettleKind = 0 // gone for good
	Reject      SettleKind = 1 // gone; dead-lettered if the queue does that
	Return      SettleKind = 2 // stays live, its delivery count is raised; above the queue's delivery limit it dies
	Unclaim     SettleKind = 3 // stays live, and was not delivered: only its claim ends
)

// Settle ends the delivery of messages of one queue. Sequences that are not live are passed over (rule 2).
// Result.Messages is how many were live.
type Settle struct {
	Queue uint64
	Kind  SettleKind
	Runs  []Run // ascending, disjoint
}

// Expire ends the messages in Runs that have expired at the batch's clock; all others are passed over (rule 3: none in
// Runs may be held by a consumer, nor may one be handed out before this is applied). Result.Messages is how many.
type Expire struct {
	Queue uint64
	Runs  []Run
}

// DeadLetter routes what a dying message becomes: in one entry it leaves its queue and is in those that it reaches. It
// has no effect when the message is not dying there. Message is the message as it was published: Exchange, RoutingKey,
// Properties with BCC, and Body or Upload; where it goes, and what becomes of its headers, apply decides. Deaths is the
// number of entries at the front of its x-death header that are true: a client may have written the others, which
// count on but say nothing about cycles. Result.Routed is how many queues it reached. When it reached none it is gone,
// or, on a queue that keeps such messages (x-dead-letter-strategy at-least-once), it stays and the result is NotFound.
type DeadLetter struct {
	Queue, Sequence uint64
	Deaths          uint8
	Message         Publish
}

// Release routes a delayed message whose time has come by the batch's clock: in one entry it leaves the vhost's queue of
// delayed messages and is in those that it reaches, with its header x-delay negated. It has no effect when the message is
// not there, or not due. Message is the message as it was published: Exchange, RoutingKey, Properties with BCC, and Body or
// Upload. Result.Messages is 1 when it was due; Result.Routed is how many queues it reached. When it reached none, its
// exchange being gone or nothing bound to it, it is gone.
type Release struct {
	Queue, Sequence uint64
	Message         Publish
}

// Transaction applies publishes and settles at one index, all or none: when one publish would be refused, none of
// it takes effect and the result is that refusal. Result.Parts has a Result for each operation, in order.
type Transaction struct {
	Operations []Command // *Publish and *Settle only, at most MaxTransactionOperations
}

// ClientGone ends a session: its exclusive queues and uploads go.
type ClientGone struct{ Session Session }

// LeaderStarted is the first command of each leadership. Apply sets every queue's suspicion (rule 11), makes the
// queues in use unused-since-now, drops uploads, and records the boot ids. Cold says that the whole cluster was
// down (rule 13): then the batch's clock is the wall clock and DropTransient follows.
type LeaderStarted struct {
	Leader string
	Cold   bool
	Boots  []MemberBoot
}

// MemberBoot is the boot id of a member's process, seen in the preface of a Raft connection.
type MemberBoot struct {
	Server string
	Boot   [16]byte
}

// MemberBoots records boot ids seen after the start of the term.
type MemberBoots struct{ Boots []MemberBoot }

// DropExclusive deletes up to Limit exclusive queues of earlier terms; Result.Messages is how many remain. The
// broker repeats it until none does, before it serves.
type DropExclusive struct{ Limit uint32 }

// DropTransient deletes, after a cold start, up to Limit transient things (non-durable exchanges and queues with
// their bindings, transient messages in durable queues); Result.Messages is how many remain.
type DropTransient struct{ Limit uint32 }

// ConsumerPresence says that a queue got its first consumer (Present) or lost its last one. A queue that is
// auto-delete goes with its last consumer.
type ConsumerPresence struct {
	Queue   uint64
	Present bool
}

// DeleteUnused deletes a queue that has had no consumer since a batch clock value not after Since, in ms.
type DeleteUnused struct {
	Queue uint64
	Since int64
}

// UseQueue says that somebody has got from a queue without consumers: it counts as unused from now on only.
type UseQueue struct{ Queue uint64 }

// BodyPart is a piece of a body above 1 MiB (rule 7). Parts of an upload arrive in order of Offset.
type BodyPart struct {
	Session Session
	Upload  uint64
	Offset  uint64
	Total   uint64
	Bytes   []byte
}

// DropUpload forgets the parts of an upload.
type DropUpload struct {
	Session Session
	Upload  uint64
}

// Mark lets a queue deliver up to Upto in this term (rule 11).
type Mark struct {
	Queue uint64
	Upto  uint64
}

// Audit states the leader's state hash at an index (rule 15).
type Audit struct {
	Index   uint64
	Version uint16 // of the hash
	Hash    uint64
}

// FoundCluster writes the cluster id into the state; a second one has no effect.
type FoundCluster struct{ ID string }

// PutPolicy sets a policy: the settings in Definition apply to the queues and exchanges of a vhost whose names match
// Pattern, from now on, to those that exist as well. Of several that match, the one with the highest priority counts, the
// first by name among equals; beside it one of Operator's, which caps it. Definition is a field table of arguments
// without their "x-". PreconditionFailed says what is wrong with it. Result.Created: there was none of that name.
type PutPolicy struct {
	Vhost      uint64
	Operator   bool
	Name       string
	Pattern    string
	ApplyTo    string
	Priority   int64
	Definition []byte
}

// DeletePolicy removes a policy; NotFound when it does not exist.
type DeletePolicy struct {
	Vhost    uint64
	Operator bool
	Name     string
}

// Bounds of what a command may hold.
const (
	MaxNameBytes             = 255
	MaxProducerBytes         = 64
	MaxTransactionOperations = 65_536
	MaxTransactionBytes      = 128 << 20
	MaxInlineBody            = 1 << 20   // a larger body travels in parts
	MaxBody                  = 512 << 20 // with its parts
	MaxUploadBytes           = 1 << 30   // of all unfinished uploads together
	MaxProducers             = 1_000_000
	ProducerWindow           = 65_536
)
