package native

// Hello is the first request on a connection. Mechanism is PLAIN or ANONYMOUS and Response its SASL bytes.
type Hello struct {
	Head
	Version    uint32
	ClientName string
	Vhost      string
	Mechanism  string
	Response   []byte
	FrameMax   uint32 // bytes of payload; 0 leaves it to the broker
	Heartbeat  uint32 // seconds; 0 for none
}

// FrameType is TypeHello.
func (*Hello) FrameType() Type { return TypeHello }

func (h *Hello) fields(c *codec) {
	c.begin(9)
	h.Head.fields(c)
	c.uint32(&h.Version)
	c.string(&h.ClientName)
	c.string(&h.Vhost)
	c.string(&h.Mechanism)
	c.bytes(&h.Response)
	c.uint32(&h.FrameMax)
	c.uint32(&h.Heartbeat)
	c.end()
}

// HelloOK answers Hello. FrameMax and Heartbeat are what holds from here on: the lower of both sides' wishes.
type HelloOK struct {
	Reply
	NodeID    string
	ClusterID string
	Leader    string   // the leader's client address; empty when there is none now
	Members   []string // client addresses
	FrameMax  uint32
	Heartbeat uint32 // seconds
}

// FrameType is the response to TypeHello.
func (*HelloOK) FrameType() Type { return TypeHello.Response() }

func (h *HelloOK) fields(c *codec) {
	c.begin(10)
	h.reply(c)
	c.string(&h.NodeID)
	c.string(&h.ClusterID)
	c.string(&h.Leader)
	c.strings(&h.Members, MaxMembers)
	c.uint32(&h.FrameMax)
	c.uint32(&h.Heartbeat)
	c.end()
}

// Redirect is pushed by a node that does not lead, after its hello response and whenever the leader changes.
type Redirect struct {
	Head
	Leader  string // the leader's client address; empty when there is none now
	Term    uint64
	Members []string // client addresses
}

// FrameType is TypeRedirect.
func (*Redirect) FrameType() Type { return TypeRedirect }

func (r *Redirect) fields(c *codec) {
	c.begin(5)
	r.Head.fields(c)
	c.string(&r.Leader)
	c.uint64(&r.Term)
	c.strings(&r.Members, MaxMembers)
	c.end()
}

// Heartbeat shows that its sender lives. Each side sends one when it has sent nothing for half the agreed interval.
type Heartbeat struct{ Head }

// FrameType is TypeHeartbeat.
func (*Heartbeat) FrameType() Type { return TypeHeartbeat }

func (h *Heartbeat) fields(c *codec) { h.Head.only(c) }

// Flow says that publishes are held up (Blocked) or that they go on.
type Flow struct {
	Head
	Blocked bool
	Reason  string
}

// FrameType is TypeFlow.
func (*Flow) FrameType() Type { return TypeFlow }

func (f *Flow) fields(c *codec) {
	c.begin(4)
	f.Head.fields(c)
	c.bool(&f.Blocked)
	c.string(&f.Reason)
	c.end()
}

// ChannelOpen opens the channel of its head.
type ChannelOpen struct{ Head }

// FrameType is TypeChannelOpen.
func (*ChannelOpen) FrameType() Type { return TypeChannelOpen }

func (f *ChannelOpen) fields(c *codec) { f.Head.only(c) }

// ChannelClose closes the channel of its head: its consumers go and its unacknowledged deliveries return.
type ChannelClose struct{ Head }

// FrameType is TypeChannelClose.
func (*ChannelClose) FrameType() Type { return TypeChannelClose }

func (f *ChannelClose) fields(c *codec) { f.Head.only(c) }

// only describes a payload that is a head and nothing else.
func (h *Head) only(c *codec) {
	c.begin(2)
	h.fields(c)
	c.end()
}
