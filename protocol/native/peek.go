package native

// Peek asks for messages of a queue and leaves them as they are.
type Peek struct {
	Head
	Queue    string
	From     uint64 // a sequence; 0: the first message
	Skip     uint64 // messages from there on that match and are left out
	Limit    uint32 // at most so many; 0: as many as the broker gives at once
	Truncate uint32 // bytes of each body that are wanted
	Filter
}

// FrameType is TypePeek.
func (*Peek) FrameType() Type { return TypePeek }

func (f *Peek) fields(c *codec) {
	c.begin(9)
	f.Head.fields(c)
	c.string(&f.Queue)
	c.uint64(&f.From)
	c.uint64(&f.Skip)
	c.uint32(&f.Limit)
	c.uint32(&f.Truncate)
	f.Filter.fields(c)
	c.end()
}

// PeekOK answers Peek. Each row is the msgpack array of a PeekRow (AppendRow, DecodeRows).
type PeekOK struct {
	Reply
	Skipped uint64 // of Peek.Skip
	Next    uint64 // Peek.From of what follows; 0 when the queue has no more. Looking goes on there even with no row here
	Rows    [][]byte
}

// FrameType is the response to TypePeek.
func (*PeekOK) FrameType() Type { return TypePeek.Response() }

func (f *PeekOK) fields(c *codec) {
	c.begin(7)
	f.reply(c)
	c.uint64(&f.Skipped)
	c.uint64(&f.Next)
	c.rows(&f.Rows)
	c.end()
}

// The states of a message.
const (
	MessageReady    uint8 = 0
	MessageHeld     uint8 = 1 // a client has it and has not settled it, or its settling is on its way
	MessageDying    uint8 = 2 // it waits for its dead letter
	MessageDeferred uint8 = 3 // it is not deliverable yet
)

// PeekRow is a message as it is in its queue.
type PeekRow struct {
	Sequence   uint64 // its number in the queue
	ID         [2]uint64
	State      uint8  // MessageReady and so on
	Reason     string // why it died, when it is dying
	Connection string // who holds it: a ConnectionRow's ID; "" when nobody does, or whoever does is settling it
	Client     string // that connection's client name
	Peer       string // and address
	Channel    uint32
	Consumer   string // tag; "" for a get
	Since      uint64 // Unix ms
	Deliveries uint32 // that came to nothing
	Redeliver  bool   // its next delivery is marked as a second one
	Deaths     uint32 // how often it died, as its x-death header says
	Expires    uint64 // Unix ms; 0: never
	Priority   uint8
	Exchange   string
	RoutingKey string
	Properties []byte
	Body       []byte // its beginning, as far as it was asked for
	BodyBytes  uint64 // of all of it
	Cut        bool   // the properties are left out, since they do not fit into a frame
}

func (r *PeekRow) fields(c *codec) {
	c.begin(22)
	c.uint64(&r.Sequence)
	c.uint64(&r.ID[0])
	c.uint64(&r.ID[1])
	c.uint8(&r.State)
	c.string(&r.Reason)
	c.string(&r.Connection)
	c.string(&r.Client)
	c.string(&r.Peer)
	c.uint32(&r.Channel)
	c.string(&r.Consumer)
	c.uint64(&r.Since)
	c.uint32(&r.Deliveries)
	c.bool(&r.Redeliver)
	c.uint32(&r.Deaths)
	c.uint64(&r.Expires)
	c.uint8(&r.Priority)
	c.string(&r.Exchange)
	c.string(&r.RoutingKey)
	c.bytes(&r.Properties)
	c.bytes(&r.Body)
	c.uint64(&r.BodyBytes)
	c.bool(&r.Cut)
	c.end()
}
