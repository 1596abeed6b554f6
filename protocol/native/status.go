package native

// The states of a member.
const (
	StateLeader      = "leader"
	StateFollower    = "follower"
	StateNonvoter    = "nonvoter"
	StateUnreachable = "unreachable"
)

// ClusterStatus is what a node knows of its cluster: the response to a cluster status request and to GET /v1/cluster.
type ClusterStatus struct {
	ClusterID string         `json:"cluster_id" msgpack:"cluster_id"`
	NodeID    string         `json:"node_id" msgpack:"node_id"` // of the node that answers
	Leader    string         `json:"leader" msgpack:"leader"`   // node id; empty when there is none now
	Term      uint64         `json:"term" msgpack:"term"`
	Members   []MemberStatus `json:"members" msgpack:"members"`
}

// MemberStatus is a member as the answering node knows it.
type MemberStatus struct {
	ID             string `json:"id" msgpack:"id"`
	State          string `json:"state" msgpack:"state"`
	Native         string `json:"native" msgpack:"native"` // advertised addresses
	AMQP           string `json:"amqp" msgpack:"amqp"`
	HTTP           string `json:"http" msgpack:"http"`
	Raft           string `json:"raft" msgpack:"raft"`
	Gossip         string `json:"gossip" msgpack:"gossip"`
	AppliedIndex   uint64 `json:"applied_index" msgpack:"applied_index"`
	CommitIndex    uint64 `json:"commit_index" msgpack:"commit_index"`
	StateHash      string `json:"state_hash" msgpack:"state_hash"` // hexadecimal
	StateHashIndex uint64 `json:"state_hash_index" msgpack:"state_hash_index"`
	Version        string `json:"version" msgpack:"version"`
	Alarm          string `json:"alarm,omitempty" msgpack:"alarm"` // why the cluster takes no publishes because of this member
	Short          string `json:"short,omitempty" msgpack:"short"` // of what: "low on memory", "low on disk", "low on memory & disk"
	DiskFree       uint64 `json:"disk_free" msgpack:"disk_free"`   // bytes
	MinDiskFree    uint64 `json:"min_disk_free" msgpack:"min_disk_free"`
}

func (m *MemberStatus) fields(c *codec) {
	outer, ok := c.inner(16)
	if !ok {
		return
	}
	c.string(&m.ID)
	c.string(&m.State)
	c.string(&m.Native)
	c.string(&m.AMQP)
	c.string(&m.HTTP)
	c.string(&m.Raft)
	c.string(&m.Gossip)
	c.uint64(&m.AppliedIndex)
	c.uint64(&m.CommitIndex)
	c.string(&m.StateHash)
	c.uint64(&m.StateHashIndex)
	c.string(&m.Version)
	c.string(&m.Alarm)
	c.string(&m.Short)
	c.uint64(&m.DiskFree)
	c.uint64(&m.MinDiskFree)
	c.outer(outer)
}

// ClusterStatusRequest asks any node for its ClusterStatus.
type ClusterStatusRequest struct{ Head }

// FrameType is TypeClusterStatus.
func (*ClusterStatusRequest) FrameType() Type { return TypeClusterStatus }

func (f *ClusterStatusRequest) fields(c *codec) { f.Head.only(c) }

// ClusterStatusOK answers ClusterStatusRequest.
type ClusterStatusOK struct {
	Reply
	ClusterStatus
}

// FrameType is the response to TypeClusterStatus.
func (*ClusterStatusOK) FrameType() Type { return TypeClusterStatus.Response() }

func (f *ClusterStatusOK) fields(c *codec) {
	c.begin(9)
	f.reply(c)
	c.string(&f.ClusterID)
	c.string(&f.NodeID)
	c.string(&f.Leader)
	c.uint64(&f.Term)
	n, outer := c.list(len(f.Members), MaxMembers, 1)
	if !c.encoding && n > 0 {
		f.Members = make([]MemberStatus, n)
	}
	for i := range n {
		f.Members[i].fields(c)
	}
	c.outer(outer)
	c.end()
}
