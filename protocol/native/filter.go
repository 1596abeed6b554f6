package native

// Filter says which messages of a queue are meant: those that have all the headers and the key.
type Filter struct {
	Key     string // a routing key or, with * and #, a pattern as in a topic exchange's binding; "" is any
	Headers []HeaderFilter
}

// HeaderFilter asks for a header. Numbers and booleans are compared as they are written.
type HeaderFilter struct {
	Name   string
	Value  string
	Exists bool // whatever its value
}

func (f *Filter) fields(c *codec) {
	c.string(&f.Key)
	n, outer := c.list(len(f.Headers), MaxFilters, 1)
	if !c.encoding && n > 0 {
		f.Headers = make([]HeaderFilter, n)
	}
	for i := range n {
		h := &f.Headers[i]
		inner, ok := c.inner(3)
		if !ok {
			c.fail("filter of a header missing")
			return
		}
		c.string(&h.Name)
		c.string(&h.Value)
		c.bool(&h.Exists)
		c.outer(inner)
	}
	c.outer(outer)
}
