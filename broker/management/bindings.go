package management

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
)

// propertiesKey names a binding among those between the same two: its key, and its arguments if it has any.
func propertiesKey(key string, arguments []byte) string {
	name := escapeKey(key)
	if len(arguments) > 0 {
		sum := sha256.Sum256(arguments)
		return name + "~" + hex.EncodeToString(sum[:5])
	}
	if name == "" {
		return "~"
	}
	return name
}

// escapeKey encodes all but letters, digits, dots and hyphens, so that the result has no ~ and no slash.
func escapeKey(key string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(key) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}

func binding(b *fsm.BindingInfo) object {
	kind := "queue"
	if b.Kind == fsm.ToExchange {
		kind = "exchange"
	}
	return object{"source": b.Source, "vhost": b.Vhost, "destination": b.Destination, "destination_type": kind,
		"routing_key": b.Key, "arguments": fromTable(b.Arguments), "properties_key": propertiesKey(b.Key, b.Arguments)}
}

// bindingsOf returns the bindings of a vhost, those of the default exchange first.
func (c *call) bindingsOf(v fsm.VhostInfo) []fsm.BindingInfo {
	var list []fsm.BindingInfo
	for _, q := range c.in.Queues(v) {
		list = append(list, fsm.BindingInfo{Vhost: v.Name, Destination: q.Name, Kind: fsm.ToQueue, Key: q.Name})
	}
	return append(list, c.in.Bindings(v)...)
}

// bindingsWhere answers those bindings of vhosts that are wanted.
func (c *call) bindingsWhere(vhosts []fsm.VhostInfo, wanted func(*fsm.BindingInfo) bool) error {
	items := []object{}
	for _, v := range vhosts {
		list := c.bindingsOf(v)
		for i := range list {
			if wanted(&list[i]) {
				items = append(items, binding(&list[i]))
			}
		}
	}
	return c.list(items)
}

func (c *call) bindings() error {
	return c.bindingsWhere(c.in.Vhosts(), func(*fsm.BindingInfo) bool { return true })
}

func (c *call) vhostBindings() error {
	v, err := c.vhostOf(c.args[0])
	if err != nil {
		return err
	}
	return c.bindingsWhere([]fsm.VhostInfo{v}, func(*fsm.BindingInfo) bool { return true })
}

func (c *call) queueBindings() error {
	v, q, err := c.queueOf()
	if err != nil {
		return err
	}
	return c.bindingsWhere([]fsm.VhostInfo{v}, func(b *fsm.BindingInfo) bool { return b.Kind == fsm.ToQueue && b.Destination == q.Name })
}

func (c *call) bindingsFrom() error {
	v, x, err := c.exchangeOf()
	if err != nil {
		return err
	}
	return c.bindingsWhere([]fsm.VhostInfo{v}, func(b *fsm.BindingInfo) bool { return b.Source == x.Name })
}

func (c *call) bindingsTo() error {
	v, x, err := c.exchangeOf()
	if err != nil {
		return err
	}
	return c.bindingsWhere([]fsm.VhostInfo{v}, func(b *fsm.BindingInfo) bool {
		return b.Kind == fsm.ToExchange && b.Destination == x.Name
	})
}

// ends are both ends of bindings, as the path names them.
type ends struct {
	vhost               fsm.VhostInfo
	source, destination string
	kind                fsm.DestinationKind
}

func (e *ends) of(b *fsm.BindingInfo) bool {
	return b.Source == e.source && b.Destination == e.destination && b.Kind == e.kind
}

// ends finds both; either missing is errNotFound.
func (c *call) ends() (e ends, err error) {
	if e.vhost, err = c.vhostOf(c.args[0]); err != nil {
		return e, err
	}
	e.source, e.destination = exchangeName(c.args[1]), c.args[2]
	_, found := c.in.Exchange(e.vhost, e.source)
	segments := strings.Split(c.r.URL.EscapedPath(), "/") // "", api, bindings, vhost, e, source, kind, …
	if segments[6] == "e" {
		e.kind, e.destination = fsm.ToExchange, exchangeName(e.destination)
		_, ok := c.in.Exchange(e.vhost, e.destination)
		found = found && ok
	} else {
		_, ok := c.in.Queue(e.vhost, e.destination)
		found = found && ok
	}
	if !found {
		return e, errNotFound
	}
	return e, nil
}

func (c *call) bindingsBetween() error {
	e, err := c.ends()
	if err != nil {
		return err
	}
	return c.bindingsWhere([]fsm.VhostInfo{e.vhost}, e.of)
}

// bindingOf finds the one that the path names.
func (c *call) bindingOf() (e ends, _ fsm.BindingInfo, err error) {
	if e, err = c.ends(); err != nil {
		return e, fsm.BindingInfo{}, err
	}
	for _, b := range c.bindingsOf(e.vhost) {
		if e.of(&b) && propertiesKey(b.Key, b.Arguments) == c.args[3] {
			return e, b, nil
		}
	}
	return e, fsm.BindingInfo{}, errNotFound
}

func (c *call) binding() error {
	_, b, err := c.bindingOf()
	if err != nil {
		return err
	}
	return c.one(binding(&b))
}

func (c *call) bind() error {
	e, err := c.ends()
	if err != nil {
		return err
	}
	b, err := c.body()
	if err != nil {
		return err
	}
	m := broker.Binding{Kind: e.kind, Source: e.source, Destination: e.destination}
	if m.Key, err = b.text("routing_key", ""); err != nil {
		return err
	}
	if m.Arguments, err = b.arguments(); err != nil {
		return err
	}
	return c.operate(e.vhost.Name, func(s *broker.Session) error {
		if err := s.Bind(c.context, m); err != nil {
			return err
		}
		// Encoded once more than a path needs: tools decode the last segment once and look for the result in lists.
		c.w.Header().Set("Location", url.PathEscape(e.destination)+"/"+url.PathEscape(propertiesKey(m.Key, m.Arguments)))
		return c.done(http.StatusCreated)
	})
}

func (c *call) unbind() error {
	e, b, err := c.bindingOf()
	if err != nil {
		return err
	}
	return c.operate(e.vhost.Name, func(s *broker.Session) error {
		if err := s.Unbind(c.context, broker.Binding{Kind: b.Kind, Source: b.Source, Destination: b.Destination, Key: b.Key,
			Arguments: b.Arguments}); err != nil {
			return err
		}
		return c.done(http.StatusNoContent)
	})
}
