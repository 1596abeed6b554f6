package native

// Operation is one of a tx: Kind is TypePublish, TypeAck or TypeNack and says which fields count. It travels as an
// array that begins with the kind: [0x09, exchange, routing key, properties, body or upload, mandatory],
// [0x0b, ranges] or [0x0e, ranges, requeue].
type Operation struct {
	Kind       Type
	Exchange   string
	RoutingKey string
	Properties []byte
	Body       []byte
	Upload     uint64
	Mandatory  bool
	Ranges     []Range
	Requeue    bool
}

func (o *Operation) fields(c *codec) {
	n := 6
	switch o.Kind {
	case TypeAck:
		n = 2
	case TypeNack:
		n = 3
	}
	outer, ok := c.inner(n)
	if !ok {
		c.fail("tx operation missing")
		return
	}
	c.uint32((*uint32)(&o.Kind))
	switch o.Kind {
	case TypePublish:
		c.string(&o.Exchange)
		c.string(&o.RoutingKey)
		c.bytes(&o.Properties)
		c.body(&o.Body, &o.Upload)
		c.bool(&o.Mandatory)
	case TypeAck:
		c.tagRanges(&o.Ranges)
	case TypeNack:
		c.tagRanges(&o.Ranges)
		c.bool(&o.Requeue)
	default:
		c.fail("tx operation that is no publish, ack or nack")
	}
	c.outer(outer)
}

// Tx commits its operations as one, all or none.
type Tx struct {
	Head
	Operations []Operation
}

// FrameType is TypeTx.
func (*Tx) FrameType() Type { return TypeTx }

func (f *Tx) fields(c *codec) {
	c.begin(3)
	f.Head.fields(c)
	n, outer := c.list(len(f.Operations), MaxTxOperations, 2)
	if !c.encoding {
		f.Operations = make([]Operation, 0, min(n, 1024))
	}
	for i := range n {
		if c.encoding {
			f.Operations[i].fields(c)
			continue
		}
		var o Operation
		o.fields(c)
		if c.err != nil {
			return
		}
		f.Operations = append(f.Operations, o)
	}
	c.outer(outer)
	c.end()
}

// TxOK answers Tx. Routed has the queues reached for each publish of it, in order.
type TxOK struct {
	Reply
	Routed []uint32
}

// FrameType is the response to TypeTx.
func (*TxOK) FrameType() Type { return TypeTx.Response() }

func (f *TxOK) fields(c *codec) {
	c.begin(5)
	f.reply(c)
	n, outer := c.list(len(f.Routed), MaxTxOperations, 1)
	if !c.encoding && n > 0 {
		f.Routed = make([]uint32, n)
	}
	for i := range n {
		c.uint32(&f.Routed[i])
	}
	c.outer(outer)
	c.end()
}
