package native

// Range is a range of delivery tags, both ends included.
type Range struct{ From, To uint64 }

// Ack acknowledges deliveries of its channel; it is answered when that is applied.
type Ack struct {
	Head
	Ranges []Range
}

// FrameType is TypeAck.
func (*Ack) FrameType() Type { return TypeAck }

func (f *Ack) fields(c *codec) {
	c.begin(3)
	f.Head.fields(c)
	c.tagRanges(&f.Ranges)
	c.end()
}

// AppendAck is Append for an Ack, without allocation.
func AppendAck(b []byte, f *Ack) []byte {
	b, at := appendHeader(b, TypeAck)
	c := codec{b: b, encoding: true}
	f.fields(&c)
	return patchLength(c.b, at)
}

// DecodeAck is Decode for an Ack. It reuses the capacity of f.Ranges.
func DecodeAck(payload []byte, f *Ack) error {
	c := codec{b: payload}
	f.fields(&c)
	return c.finish(TypeAck)
}

// Nack gives deliveries back: to their queue with Requeue, else they are rejected for good.
type Nack struct {
	Head
	Ranges  []Range
	Requeue bool
}

// FrameType is TypeNack.
func (*Nack) FrameType() Type { return TypeNack }

func (f *Nack) fields(c *codec) {
	c.begin(4)
	f.Head.fields(c)
	c.tagRanges(&f.Ranges)
	c.bool(&f.Requeue)
	c.end()
}

// AppendNack is Append for a Nack, without allocation.
func AppendNack(b []byte, f *Nack) []byte {
	b, at := appendHeader(b, TypeNack)
	c := codec{b: b, encoding: true}
	f.fields(&c)
	return patchLength(c.b, at)
}

// tagRanges bounds the ranges of a whole frame, those in a tx's operations together, by MaxRanges.
func (c *codec) tagRanges(v *[]Range) {
	n, outer := c.list(len(*v), MaxRanges-c.ranges, 1)
	if !c.encoding {
		*v = (*v)[:0]
		c.ranges += n
		if n > cap(*v) {
			*v = make([]Range, 0, n)
		}
	}
	for i := range n {
		if c.encoding {
			(*v)[i].fields(c)
			continue
		}
		var r Range
		r.fields(c)
		if c.err == nil && r.To < r.From {
			c.fail("range that ends before it begins")
		}
		if c.err != nil {
			return
		}
		*v = append(*v, r)
	}
	c.outer(outer)
}

func (r *Range) fields(c *codec) {
	outer, ok := c.inner(2)
	if !ok {
		return
	}
	c.uint64(&r.From)
	c.uint64(&r.To)
	c.outer(outer)
}
