package native

// Publish sends a message to an exchange. Properties are AMQP 0-9-1 property bytes, flags word first (Properties
// encodes and decodes them); nil means none. The body is Body, or the parts sent before under Upload when Upload is
// not zero. With a Producer the publish takes effect at most once for each Sequence.
type Publish struct {
	Head
	Exchange   string
	RoutingKey string
	Properties []byte
	Body       []byte
	Upload     uint64
	Mandatory  bool
	Producer   []byte
	Sequence   uint64
}

// FrameType is TypePublish.
func (*Publish) FrameType() Type { return TypePublish }

func (f *Publish) fields(c *codec) {
	c.begin(9)
	f.Head.fields(c)
	c.string(&f.Exchange)
	c.string(&f.RoutingKey)
	c.bytes(&f.Properties)
	c.body(&f.Body, &f.Upload)
	c.bool(&f.Mandatory)
	c.bytes(&f.Producer)
	c.uint64(&f.Sequence)
	c.end()
}

// AppendPublish is Append for a Publish, without allocation.
func AppendPublish(b []byte, f *Publish) []byte {
	b, at := appendHeader(b, TypePublish)
	c := codec{b: b, encoding: true}
	f.fields(&c)
	return patchLength(c.b, at)
}

// DecodePublish is Decode for a Publish; it allocates the strings only.
func DecodePublish(payload []byte, f *Publish) error {
	c := codec{b: payload}
	f.fields(&c)
	return c.finish(TypePublish)
}

// PublishOK answers Publish when it is applied: the confirm.
type PublishOK struct {
	Reply
	Routed    uint32 // queues reached
	Duplicate bool   // it took effect earlier; Routed is what it reached then
}

// FrameType is the response to TypePublish.
func (*PublishOK) FrameType() Type { return TypePublish.Response() }

func (f *PublishOK) fields(c *codec) {
	c.begin(6)
	f.reply(c)
	c.uint32(&f.Routed)
	c.bool(&f.Duplicate)
	c.end()
}

// AppendPublishOK is Append for a PublishOK, without allocation.
func AppendPublishOK(b []byte, f *PublishOK) []byte {
	b, at := appendHeader(b, TypePublish.Response())
	c := codec{b: b, encoding: true}
	f.fields(&c)
	return patchLength(c.b, at)
}

// DecodePublishOK is Decode for a PublishOK, without allocation when it is a success.
func DecodePublishOK(payload []byte, f *PublishOK) error {
	c := codec{b: payload}
	f.fields(&c)
	return c.finish(TypePublish.Response())
}

// Return is pushed, in front of the publish's response and with its RID, when a mandatory message reached no queue.
type Return struct {
	Head
	Code       Code
	Text       string
	Exchange   string
	RoutingKey string
	Properties []byte
	Body       []byte // nil when Upload is set: the publisher has the parts, or they were pushed before
	Upload     uint64
}

// FrameType is TypeReturn.
func (*Return) FrameType() Type { return TypeReturn }

func (f *Return) fields(c *codec) {
	c.begin(8)
	f.Head.fields(c)
	c.uint16(&f.Code)
	c.string(&f.Text)
	c.string(&f.Exchange)
	c.string(&f.RoutingKey)
	c.bytes(&f.Properties)
	c.body(&f.Body, &f.Upload)
	c.end()
}

// BodyPart is a piece of a body above MaxInlineBody. The parts of an upload come in order of Offset, in front of the
// publish or deliver that names the Upload. A client chooses its upload numbers, unique on the connection, not zero.
type BodyPart struct {
	Head
	Upload uint64
	Offset uint64
	Total  uint64
	Bytes  []byte
}

// FrameType is TypeBodyPart.
func (*BodyPart) FrameType() Type { return TypeBodyPart }

func (f *BodyPart) fields(c *codec) {
	c.begin(6)
	f.Head.fields(c)
	c.uint64(&f.Upload)
	c.uint64(&f.Offset)
	c.uint64(&f.Total)
	c.bytes(&f.Bytes)
	c.end()
}
