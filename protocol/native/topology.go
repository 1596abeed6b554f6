package native

// ExchangeDeclare creates an exchange, or with Passive asks whether it is there. Arguments here and below are AMQP
// field-table bytes without their length prefix (EncodeTable, DecodeTable).
type ExchangeDeclare struct {
	Head
	Name       string
	Kind       string // direct, fanout, topic, headers
	Durable    bool
	AutoDelete bool
	Internal   bool
	Arguments  []byte
	Passive    bool
}

// FrameType is TypeExchangeDeclare.
func (*ExchangeDeclare) FrameType() Type { return TypeExchangeDeclare }

func (f *ExchangeDeclare) fields(c *codec) {
	c.begin(9)
	f.Head.fields(c)
	c.string(&f.Name)
	c.string(&f.Kind)
	c.bool(&f.Durable)
	c.bool(&f.AutoDelete)
	c.bool(&f.Internal)
	c.bytes(&f.Arguments)
	c.bool(&f.Passive)
	c.end()
}

// ExchangeDelete removes an exchange.
type ExchangeDelete struct {
	Head
	Name     string
	IfUnused bool
}

// FrameType is TypeExchangeDelete.
func (*ExchangeDelete) FrameType() Type { return TypeExchangeDelete }

func (f *ExchangeDelete) fields(c *codec) {
	c.begin(4)
	f.Head.fields(c)
	c.string(&f.Name)
	c.bool(&f.IfUnused)
	c.end()
}

// QueueDeclare creates a queue, or with Passive asks whether it is there. An empty name lets the broker choose one.
type QueueDeclare struct {
	Head
	Name       string
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	Arguments  []byte
	Passive    bool
}

// FrameType is TypeQueueDeclare.
func (*QueueDeclare) FrameType() Type { return TypeQueueDeclare }

func (f *QueueDeclare) fields(c *codec) {
	c.begin(8)
	f.Head.fields(c)
	c.string(&f.Name)
	c.bool(&f.Durable)
	c.bool(&f.Exclusive)
	c.bool(&f.AutoDelete)
	c.bytes(&f.Arguments)
	c.bool(&f.Passive)
	c.end()
}

// QueueDeclareOK answers QueueDeclare.
type QueueDeclareOK struct {
	Reply
	Name      string
	Messages  uint64 // ready
	Consumers uint32
}

// FrameType is the response to TypeQueueDeclare.
func (*QueueDeclareOK) FrameType() Type { return TypeQueueDeclare.Response() }

func (f *QueueDeclareOK) fields(c *codec) {
	c.begin(7)
	f.reply(c)
	c.string(&f.Name)
	c.uint64(&f.Messages)
	c.uint32(&f.Consumers)
	c.end()
}

// QueueDelete removes a queue.
type QueueDelete struct {
	Head
	Name     string
	IfUnused bool
	IfEmpty  bool
}

// FrameType is TypeQueueDelete.
func (*QueueDelete) FrameType() Type { return TypeQueueDelete }

func (f *QueueDelete) fields(c *codec) {
	c.begin(5)
	f.Head.fields(c)
	c.string(&f.Name)
	c.bool(&f.IfUnused)
	c.bool(&f.IfEmpty)
	c.end()
}

// QueueDeleteOK answers QueueDelete.
type QueueDeleteOK struct {
	Reply
	Messages uint64 // that were ready and went with it
}

// FrameType is the response to TypeQueueDelete.
func (*QueueDeleteOK) FrameType() Type { return TypeQueueDelete.Response() }

func (f *QueueDeleteOK) fields(c *codec) {
	c.begin(5)
	f.reply(c)
	c.uint64(&f.Messages)
	c.end()
}

// Purge removes the ready messages of a queue.
type Purge struct {
	Head
	Name string
}

// FrameType is TypePurge.
func (*Purge) FrameType() Type { return TypePurge }

func (f *Purge) fields(c *codec) {
	c.begin(3)
	f.Head.fields(c)
	c.string(&f.Name)
	c.end()
}

// PurgeOK answers Purge.
type PurgeOK struct {
	Reply
	Messages uint64 // removed
}

// FrameType is the response to TypePurge.
func (*PurgeOK) FrameType() Type { return TypePurge.Response() }

func (f *PurgeOK) fields(c *codec) {
	c.begin(5)
	f.reply(c)
	c.uint64(&f.Messages)
	c.end()
}

// The kinds of destination of a binding.
const (
	ToQueue    uint8 = 0
	ToExchange uint8 = 1
)

// Binding is what bind and unbind name.
type Binding struct {
	DestinationKind uint8 // ToQueue or ToExchange
	Destination     string
	Exchange        string // the source
	BindingKey      string
	Arguments       []byte
}

func (f *Binding) fields(c *codec) {
	c.uint8(&f.DestinationKind)
	c.string(&f.Destination)
	c.string(&f.Exchange)
	c.string(&f.BindingKey)
	c.bytes(&f.Arguments)
}

// Bind makes a binding.
type Bind struct {
	Head
	Binding
}

// FrameType is TypeBind.
func (*Bind) FrameType() Type { return TypeBind }

func (f *Bind) fields(c *codec) {
	c.begin(7)
	f.Head.fields(c)
	f.Binding.fields(c)
	c.end()
}

// Unbind removes the binding with exactly these fields.
type Unbind struct {
	Head
	Binding
}

// FrameType is TypeUnbind.
func (*Unbind) FrameType() Type { return TypeUnbind }

func (f *Unbind) fields(c *codec) {
	c.begin(7)
	f.Head.fields(c)
	f.Binding.fields(c)
	c.end()
}

// VhostPut creates a virtual host; it succeeds when it exists.
type VhostPut struct {
	Head
	Name string
}

// FrameType is TypeVhostPut.
func (*VhostPut) FrameType() Type { return TypeVhostPut }

func (f *VhostPut) fields(c *codec) {
	c.begin(3)
	f.Head.fields(c)
	c.string(&f.Name)
	c.end()
}

// VhostDelete removes a virtual host with all that is in it.
type VhostDelete struct {
	Head
	Name string
}

// FrameType is TypeVhostDelete.
func (*VhostDelete) FrameType() Type { return TypeVhostDelete }

func (f *VhostDelete) fields(c *codec) {
	c.begin(3)
	f.Head.fields(c)
	c.string(&f.Name)
	c.end()
}
