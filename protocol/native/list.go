package native

// The kinds of list.
const (
	ListVhosts      = "vhosts"
	ListExchanges   = "exchanges"
	ListQueues      = "queues"
	ListBindings    = "bindings"
	ListConsumers   = "consumers"
	ListConnections = "connections"
	ListPolicies    = "policies"
	ListOperator    = "operator policies"
)

// List asks for a page of what there is of a kind, in the connection's vhost (vhosts and connections: in all).
type List struct {
	Head
	Kind     string
	Name     string // only rows whose name contains it
	Page     uint32 // from 1; 0 is 1
	PageSize uint32 // at most MaxRows; 0 lets the broker choose
}

// FrameType is TypeList.
func (*List) FrameType() Type { return TypeList }

func (f *List) fields(c *codec) {
	c.begin(6)
	f.Head.fields(c)
	c.string(&f.Kind)
	c.string(&f.Name)
	c.uint32(&f.Page)
	c.uint32(&f.PageSize)
	c.end()
}

// ListOK answers List. Each row is the msgpack array of the kind's row struct (AppendRow, DecodeRows).
type ListOK struct {
	Reply
	Total uint64 // rows on all pages
	Rows  [][]byte
}

// FrameType is the response to TypeList.
func (*ListOK) FrameType() Type { return TypeList.Response() }

func (f *ListOK) fields(c *codec) {
	c.begin(6)
	f.reply(c)
	c.uint64(&f.Total)
	c.rows(&f.Rows)
	c.end()
}

// rows is a list of rows as they are.
func (c *codec) rows(rows *[][]byte) {
	n, outer := c.list(len(*rows), MaxRows, 1)
	if !c.encoding && n > 0 {
		*rows = make([][]byte, n)
	}
	for i := range n {
		if c.encoding {
			c.b = append(c.b, (*rows)[i]...)
			continue
		}
		from := c.at
		c.skip(1)
		c.left--
		(*rows)[i] = c.b[from:c.at:c.at]
	}
	c.outer(outer)
}

// Row is a row of a list: a pointer to one of the …Row structs.
type Row interface{ fields(c *codec) }

// AppendRow appends a row's msgpack array to b.
func AppendRow(b []byte, r Row) []byte {
	c := codec{b: b, encoding: true}
	r.fields(&c)
	return c.b
}

// DecodeRow sets r from a row's msgpack array.
func DecodeRow(raw []byte, r Row) error {
	c := codec{b: raw}
	r.fields(&c)
	return c.finish(TypeList.Response())
}

// DecodeRows decodes all rows of a list as T.
func DecodeRows[T any, P interface {
	*T
	Row
}](rows [][]byte) ([]T, error) {
	out := make([]T, len(rows))
	for i, raw := range rows {
		if err := DecodeRow(raw, P(&out[i])); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// VhostRow describes a vhost.
type VhostRow struct {
	Name     string `json:"name"`
	Queues   uint64 `json:"queues"`
	Messages uint64 `json:"messages"`
}

func (r *VhostRow) fields(c *codec) {
	c.begin(3)
	c.string(&r.Name)
	c.uint64(&r.Queues)
	c.uint64(&r.Messages)
	c.end()
}

// ExchangeRow describes an exchange.
type ExchangeRow struct {
	Vhost      string `json:"vhost"`
	Name       string `json:"name"`
	Kind       string `json:"type"`
	Durable    bool   `json:"durable"`
	AutoDelete bool   `json:"auto_delete"`
	Internal   bool   `json:"internal"`
	Arguments  []byte `json:"-"`
}

func (r *ExchangeRow) fields(c *codec) {
	c.begin(7)
	c.string(&r.Vhost)
	c.string(&r.Name)
	c.string(&r.Kind)
	c.bool(&r.Durable)
	c.bool(&r.AutoDelete)
	c.bool(&r.Internal)
	c.bytes(&r.Arguments)
	c.end()
}

// QueueRow describes a queue.
type QueueRow struct {
	Vhost          string `json:"vhost"`
	Name           string `json:"name"`
	Durable        bool   `json:"durable"`
	Exclusive      bool   `json:"exclusive"`
	AutoDelete     bool   `json:"auto_delete"`
	Arguments      []byte `json:"-"`
	Messages       uint64 `json:"messages"` // ready and unacknowledged
	Ready          uint64 `json:"messages_ready"`
	Unacknowledged uint64 `json:"messages_unacknowledged"`
	MessageBytes   uint64 `json:"message_bytes"`
	Consumers      uint32 `json:"consumers"`
}

func (r *QueueRow) fields(c *codec) {
	c.begin(11)
	c.string(&r.Vhost)
	c.string(&r.Name)
	c.bool(&r.Durable)
	c.bool(&r.Exclusive)
	c.bool(&r.AutoDelete)
	c.bytes(&r.Arguments)
	c.uint64(&r.Messages)
	c.uint64(&r.Ready)
	c.uint64(&r.Unacknowledged)
	c.uint64(&r.MessageBytes)
	c.uint32(&r.Consumers)
	c.end()
}

// BindingRow describes a binding.
type BindingRow struct {
	Vhost           string `json:"vhost"`
	Source          string `json:"source"`
	DestinationKind uint8  `json:"destination_kind"` // ToQueue or ToExchange
	Destination     string `json:"destination"`
	BindingKey      string `json:"routing_key"`
	Arguments       []byte `json:"-"`
}

func (r *BindingRow) fields(c *codec) {
	c.begin(6)
	c.string(&r.Vhost)
	c.string(&r.Source)
	c.uint8(&r.DestinationKind)
	c.string(&r.Destination)
	c.string(&r.BindingKey)
	c.bytes(&r.Arguments)
	c.end()
}

// ConsumerRow describes a consumer.
type ConsumerRow struct {
	Vhost          string `json:"vhost"`
	Queue          string `json:"queue"`
	ConsumerTag    string `json:"consumer_tag"`
	Connection     string `json:"connection"` // a ConnectionRow's ID
	Channel        uint32 `json:"channel"`
	AutoAck        bool   `json:"auto_ack"`
	Exclusive      bool   `json:"exclusive"`
	Prefetch       uint32 `json:"prefetch_count"`
	Unacknowledged uint64 `json:"messages_unacknowledged"`
}

func (r *ConsumerRow) fields(c *codec) {
	c.begin(9)
	c.string(&r.Vhost)
	c.string(&r.Queue)
	c.string(&r.ConsumerTag)
	c.string(&r.Connection)
	c.uint32(&r.Channel)
	c.bool(&r.AutoAck)
	c.bool(&r.Exclusive)
	c.uint32(&r.Prefetch)
	c.uint64(&r.Unacknowledged)
	c.end()
}

// ConnectionRow describes a client connection.
type ConnectionRow struct {
	ID          string `json:"id"`
	ClientName  string `json:"client_name"`
	Peer        string `json:"peer"` // address
	Vhost       string `json:"vhost"`
	User        string `json:"user"`
	Protocol    string `json:"protocol"` // native or amqp 0-9-1
	Channels    uint32 `json:"channels"`
	ConnectedAt uint64 `json:"connected_at"` // Unix ms
}

func (r *ConnectionRow) fields(c *codec) {
	c.begin(8)
	c.string(&r.ID)
	c.string(&r.ClientName)
	c.string(&r.Peer)
	c.string(&r.Vhost)
	c.string(&r.User)
	c.string(&r.Protocol)
	c.uint32(&r.Channels)
	c.uint64(&r.ConnectedAt)
	c.end()
}
