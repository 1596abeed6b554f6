package native

// Consume starts a consumer. An empty tag lets the broker choose one.
type Consume struct {
	Head
	ConsumerTag string
	Queue       string
	AutoAck     bool
	Exclusive   bool
	Arguments   []byte
}

// FrameType is TypeConsume.
func (*Consume) FrameType() Type { return TypeConsume }

func (f *Consume) fields(c *codec) {
	c.begin(7)
	f.Head.fields(c)
	c.string(&f.ConsumerTag)
	c.string(&f.Queue)
	c.bool(&f.AutoAck)
	c.bool(&f.Exclusive)
	c.bytes(&f.Arguments)
	c.end()
}

// ConsumeOK answers Consume.
type ConsumeOK struct {
	Reply
	ConsumerTag string
}

// FrameType is the response to TypeConsume.
func (*ConsumeOK) FrameType() Type { return TypeConsume.Response() }

func (f *ConsumeOK) fields(c *codec) {
	c.begin(5)
	f.reply(c)
	c.string(&f.ConsumerTag)
	c.end()
}

// Cancel ends a consumer. As a push the broker says that it has ended one, because its queue is gone.
type Cancel struct {
	Head
	ConsumerTag string
}

// FrameType is TypeCancel.
func (*Cancel) FrameType() Type { return TypeCancel }

func (f *Cancel) fields(c *codec) {
	c.begin(3)
	f.Head.fields(c)
	c.string(&f.ConsumerTag)
	c.end()
}

// Qos bounds the unacknowledged deliveries: of each consumer started afterwards, or with PerChannel of all of the
// channel together. Zero is no bound.
type Qos struct {
	Head
	PrefetchCount uint32
	PerChannel    bool
}

// FrameType is TypeQos.
func (*Qos) FrameType() Type { return TypeQos }

func (f *Qos) fields(c *codec) {
	c.begin(4)
	f.Head.fields(c)
	c.uint32(&f.PrefetchCount)
	c.bool(&f.PerChannel)
	c.end()
}

// Delivery is a message on its way to a client. The body is Body, or the parts pushed before under Upload.
type Delivery struct {
	ConsumerTag string // empty for a get
	DeliveryTag uint64 // unique on its channel; 0 when nothing is to be acknowledged
	Redelivered bool
	Exchange    string
	RoutingKey  string
	Queue       string
	Properties  []byte
	Body        []byte
	Upload      uint64
}

func (f *Delivery) fields(c *codec) {
	c.string(&f.ConsumerTag)
	c.uint64(&f.DeliveryTag)
	c.bool(&f.Redelivered)
	c.string(&f.Exchange)
	c.string(&f.RoutingKey)
	c.string(&f.Queue)
	c.bytes(&f.Properties)
	c.body(&f.Body, &f.Upload)
}

// Deliver is the push of a message to a consumer.
type Deliver struct {
	Head
	Delivery
}

// FrameType is TypeDeliver.
func (*Deliver) FrameType() Type { return TypeDeliver }

func (f *Deliver) fields(c *codec) {
	c.begin(10)
	f.Head.fields(c)
	f.Delivery.fields(c)
	c.end()
}

// AppendDeliver is Append for a Deliver, without allocation.
func AppendDeliver(b []byte, f *Deliver) []byte {
	b, at := appendHeader(b, TypeDeliver)
	c := codec{b: b, encoding: true}
	f.fields(&c)
	return patchLength(c.b, at)
}

// DecodeDeliver is Decode for a Deliver; it allocates the strings only.
func DecodeDeliver(payload []byte, f *Deliver) error {
	c := codec{b: payload}
	f.fields(&c)
	return c.finish(TypeDeliver)
}

// Get asks for one message of a queue.
type Get struct {
	Head
	Queue   string
	AutoAck bool
}

// FrameType is TypeGet.
func (*Get) FrameType() Type { return TypeGet }

func (f *Get) fields(c *codec) {
	c.begin(4)
	f.Head.fields(c)
	c.string(&f.Queue)
	c.bool(&f.AutoAck)
	c.end()
}

// GetOK answers Get. Without Found the queue is empty and the rest is zero.
type GetOK struct {
	Reply
	Found bool
	Delivery
}

// FrameType is the response to TypeGet.
func (*GetOK) FrameType() Type { return TypeGet.Response() }

func (f *GetOK) fields(c *codec) {
	c.begin(13)
	f.reply(c)
	c.bool(&f.Found)
	f.Delivery.fields(c)
	c.end()
}
