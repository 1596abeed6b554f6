package native

// Reply begins every response and is the whole of one that adds nothing.
type Reply struct {
	Head
	Code    Code
	Message string // one sentence; empty when Code is OK

	// Of is the type of the request that is answered. It travels in the frame's type, not in the payload.
	Of Type
}

// FrameType is Of with the response bit.
func (r *Reply) FrameType() Type { return r.Of.Response() }

func (r *Reply) fields(c *codec) {
	c.begin(4)
	r.reply(c)
	c.end()
}

func (r *Reply) reply(c *codec) {
	r.Head.fields(c)
	c.uint16(&r.Code)
	c.string(&r.Message)
}

// AppendReply is Append for a Reply, without allocation.
func AppendReply(b []byte, r *Reply) []byte {
	b, at := appendHeader(b, r.FrameType())
	c := codec{b: b, encoding: true}
	r.fields(&c)
	return patchLength(c.b, at)
}

// DecodeReply sets the part that all responses share, for a response of any type.
func DecodeReply(t Type, payload []byte, r *Reply) error {
	r.Of = t.Request()
	c := codec{b: payload}
	r.fields(&c)
	return c.finish(t)
}
