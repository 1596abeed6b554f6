package native

// Where a Move moves messages to.
const (
	MoveToQueue         uint8 = 0 // To is a queue
	MoveToExchange      uint8 = 1 // To is an exchange, RoutingKey the key
	MoveToFirstQueue    uint8 = 2 // the queue in which the message died first (x-first-death-queue)
	MoveToFirstExchange uint8 = 3 // the exchange and the key with which it came there
	MoveToNowhere       uint8 = 4 // the messages are deleted
)

// Move asks for a bounded part of a move of messages out of a queue: whoever asks goes on with what MoveOK says, until
// that is done. To ask twice for the same does no harm.
type Move struct {
	Head
	Queue      string
	Target     uint8
	To         string
	RoutingKey string
	Restore    bool // a dead letter gets the exchange and the key back that it had before it died first
	Filter
	From   uint64 // a sequence to begin at; 0: the first message
	Upto   uint64 // the last sequence that is meant; 0: the last there is
	Limit  uint64 // at most so many are moved; 0: all
	DryRun bool   // only count
}

// FrameType is TypeMove.
func (*Move) FrameType() Type { return TypeMove }

func (f *Move) fields(c *codec) {
	c.begin(13)
	f.Head.fields(c)
	c.string(&f.Queue)
	c.uint8(&f.Target)
	c.string(&f.To)
	c.string(&f.RoutingKey)
	c.bool(&f.Restore)
	f.Filter.fields(c)
	c.uint64(&f.From)
	c.uint64(&f.Upto)
	c.uint64(&f.Limit)
	c.bool(&f.DryRun)
	c.end()
}

// MoveOK answers Move. Of the messages that match, those that are none of Moved, Occupied and Kept had gone already.
type MoveOK struct {
	Reply
	Matched  uint64
	Moved    uint64
	Occupied uint64 // left where they are, since a client has them
	Kept     uint64 // left where they are, since they would have reached no queue
	Reason   string // of the first one kept
	Next     uint64 // Move.From of the next part; 0 when all is done
	Upto     uint64 // Move.Upto of the next part
}

// FrameType is the response to TypeMove.
func (*MoveOK) FrameType() Type { return TypeMove.Response() }

func (f *MoveOK) fields(c *codec) {
	c.begin(11)
	f.reply(c)
	c.uint64(&f.Matched)
	c.uint64(&f.Moved)
	c.uint64(&f.Occupied)
	c.uint64(&f.Kept)
	c.string(&f.Reason)
	c.uint64(&f.Next)
	c.uint64(&f.Upto)
	c.end()
}
