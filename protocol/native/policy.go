package native

// PolicyPut sets a policy, or an operator policy, of the connection's vhost. The definition is a field table without its
// length prefix.
type PolicyPut struct {
	Head
	Operator   bool
	Name       string
	Pattern    string // a regular expression (RE2)
	ApplyTo    string // all, queues, classic_queues, quorum_queues, streams or exchanges
	Priority   int64
	Definition []byte
}

// FrameType is TypePolicyPut.
func (*PolicyPut) FrameType() Type { return TypePolicyPut }

func (f *PolicyPut) fields(c *codec) {
	c.begin(8)
	f.Head.fields(c)
	c.bool(&f.Operator)
	c.string(&f.Name)
	c.string(&f.Pattern)
	c.string(&f.ApplyTo)
	c.signed(&f.Priority)
	c.bytes(&f.Definition)
	c.end()
}

// signed is a number that may be below zero, as the unsigned one of the same bits.
func (c *codec) signed(v *int64) {
	u := uint64(*v)
	c.uint64(&u)
	*v = int64(u)
}

// PolicyDelete removes a policy.
type PolicyDelete struct {
	Head
	Operator bool
	Name     string
}

// FrameType is TypePolicyDelete.
func (*PolicyDelete) FrameType() Type { return TypePolicyDelete }

func (f *PolicyDelete) fields(c *codec) {
	c.begin(4)
	f.Head.fields(c)
	c.bool(&f.Operator)
	c.string(&f.Name)
	c.end()
}

// PolicyRow describes a policy.
type PolicyRow struct {
	Vhost      string `json:"vhost"`
	Name       string `json:"name"`
	Pattern    string `json:"pattern"`
	ApplyTo    string `json:"apply_to"`
	Priority   int64  `json:"priority"`
	Definition []byte `json:"-"`
}

func (r *PolicyRow) fields(c *codec) {
	c.begin(6)
	c.string(&r.Vhost)
	c.string(&r.Name)
	c.string(&r.Pattern)
	c.string(&r.ApplyTo)
	c.signed(&r.Priority)
	c.bytes(&r.Definition)
	c.end()
}
