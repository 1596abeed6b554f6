package fsm

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

var codeNames = map[Code]string{ContentTooLarge: "CONTENT_TOO_LARGE", AccessRefused: "ACCESS_REFUSED", NotFound: "NOT_FOUND",
	ResourceLocked: "RESOURCE_LOCKED", PreconditionFailed: "PRECONDITION_FAILED", CommandInvalid: "COMMAND_INVALID",
	NotAllowed: "NOT_ALLOWED", StaleTerm: "STALE_TERM", SequenceTooOld: "SEQUENCE_TOO_OLD", QueueFull: "QUEUE_FULL"}

// refuse makes the result of a command without effect.
func refuse(code Code, format string, arguments ...any) Result {
	return Result{Code: code, Message: codeNames[code] + " - " + fmt.Sprintf(format, arguments...)}
}

func noVhost(number uint64) Result {
	return refuse(NotFound, "no virtual host with number %d: it was deleted", number)
}

func noExchange(v *vhost, name string) Result {
	return refuse(NotFound, "no exchange '%s' in vhost '%s'", name, v.name)
}

func noQueue(v *vhost, name string) Result {
	return refuse(NotFound, "no queue '%s' in vhost '%s'", name, v.name)
}

func locked(v *vhost, name string) Result {
	return refuse(ResourceLocked, "cannot obtain exclusive access to locked queue '%s' in vhost '%s'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.", name, v.name)
}

func onDefaultExchange() Result {
	return refuse(AccessRefused, "operation not permitted on the default exchange")
}

func inequivalent(argument, kind, name string, v *vhost, received, current any) Result {
	return refuse(PreconditionFailed, "inequivalent arg '%s' for %s '%s' in vhost '%s': received %v but current is %v", argument, kind, name, v.name, received, current)
}

// quoted is a flag as the error texts of declarations show it.
func quoted(v any) string { return fmt.Sprintf("'%v'", v) }

// maxArgumentBytes bounds the arguments of one object.
const maxArgumentBytes = 128 << 10

// checkNames refuses names and arguments that cannot be kept.
func checkNames(arguments []byte, names ...string) Result {
	for _, name := range names {
		if len(name) > MaxNameBytes {
			return refuse(PreconditionFailed, "a name of %d bytes is longer than %d", len(name), MaxNameBytes)
		}
	}
	if len(arguments) > maxArgumentBytes {
		return refuse(PreconditionFailed, "arguments of %d bytes are longer than %d", len(arguments), maxArgumentBytes)
	}
	if _, ok := parseTable(arguments, nil); !ok {
		return refuse(PreconditionFailed, "the arguments are not a field table")
	}
	return Result{}
}

// createVhost makes a vhost with the exchanges that each has.
func (s *state) createVhost(name string) *vhost {
	v := s.insertVhost(s.nextNumber(), name, resourceLimits{})
	for _, e := range []struct {
		name, kind string
		internal   bool
	}{{"", direct, false}, {"amq.direct", direct, false}, {"amq.fanout", fanout, false}, {"amq.headers", headers, false},
		{"amq.match", headers, false}, {"amq.rabbitmq.trace", topic, true}, {"amq.topic", topic, false}} {
		s.insertExchange(&exchange{number: s.nextNumber(), vhost: v, name: e.name, kind: e.kind, durable: true, internal: e.internal})
	}
	return v
}

func (s *state) insertVhost(number uint64, name string, limits resourceLimits) *vhost {
	v := &vhost{number: number, name: name, limits: limits, exchanges: make(map[string]*exchange), queues: make(map[string]*queue),
		bindings: make(map[bindingKey]*binding), waiting: make(map[string]uint64)}
	s.vhosts[number], s.vhostNames[name] = v, v
	v.hash = v.digest()
	s.sum += v.hash
	return v
}

func (s *state) applyPutVhost(c *PutVhost) Result {
	if s.vhostNames[c.Name] != nil {
		return Result{}
	}
	if r := checkNames(nil, c.Name); r.Code != OK {
		return r
	}
	if c.Name == "" {
		return refuse(PreconditionFailed, "a virtual host needs a name")
	}
	s.createVhost(strings.Clone(c.Name))
	return Result{Created: true}
}

func (s *state) applyDeleteVhost(c *DeleteVhost) Result {
	v := s.vhostNames[c.Name]
	if v == nil {
		return refuse(NotFound, "no virtual host '%s'", c.Name)
	}
	for _, q := range sortedQueues(v.queues) {
		s.deleteQueue(q)
	}
	if v.delayed != nil {
		s.deleteQueue(v.delayed)
	}
	for exchange, n := range v.waiting {
		s.sum -= n * v.waitingDigest(exchange)
	}
	for _, e := range v.exchanges {
		s.deleteExchange(e)
	}
	for _, p := range slices.Concat(v.policies, v.operatorPolicies) {
		s.sum -= p.hash
	}
	delete(s.vhosts, v.number)
	delete(s.vhostNames, v.name)
	s.sum -= v.hash
	return Result{}
}

// insertExchange adds an exchange whose fields are complete, derived ones excepted.
func (s *state) insertExchange(e *exchange) {
	e.routes = e.kind
	e.policies = e.vhost.govern(e.governed())
	s.setExchangeRules(e)
	if fields, _ := parseTable(e.arguments, nil); len(fields) > 0 {
		e.window = s.insertWindow(e.number, (&settings{arguments: fields}).deduplication())
		if f := find(fields, "x-delayed-type"); f != nil && e.kind == delays {
			e.routes = string(f.value)
		}
	}
	e.vhost.exchanges[e.name] = e
	s.rerouted = true
	if !e.durable {
		e.transient = s.drop.exchanges.PushBack(e)
	}
	e.row = s.exchanges.add(e)
	e.hash = e.digest()
	s.sum += e.hash
}

// checkPutExchange returns the exchange that exists, or a refusal.
func (s *state) checkPutExchange(c *PutExchange) (*vhost, *exchange, Result) {
	v := s.vhosts[c.Vhost]
	if v == nil {
		return nil, nil, noVhost(c.Vhost)
	}
	switch c.Type {
	case direct, fanout, topic, headers, delays:
	case "":
		return v, nil, refuse(CommandInvalid, "invalid exchange type ''")
	default:
		return v, nil, refuse(CommandInvalid, "unknown exchange type '%s'", c.Type)
	}
	if c.Name == "" {
		return v, nil, onDefaultExchange()
	}
	if r := checkNames(c.Arguments, c.Name); r.Code != OK {
		return v, nil, r
	}
	fields, _ := parseTable(c.Arguments, nil)
	alternate := find(fields, "alternate-exchange")
	e := v.exchanges[c.Name]
	if e == nil {
		if strings.HasPrefix(c.Name, "amq.") {
			return v, nil, refuse(AccessRefused, "exchange name '%s' contains reserved prefix 'amq.*'", c.Name)
		}
		if alternate != nil && alternate.tag != 'S' {
			return v, nil, refuse(PreconditionFailed, "invalid type '%s' for arg 'alternate-exchange' in exchange '%s' in vhost '%s'", tagNames[alternate.tag], c.Name, v.name)
		}
		if r := checkDelays(c.Type, fields); r.Code != OK {
			return v, nil, r
		}
		return v, nil, checkExchangeDeduplication(c, v, fields)
	}
	for _, x := range []struct {
		argument          string
		received, current any
	}{{"type", c.Type, e.kind}, {"durable", c.Durable, e.durable}, {"auto_delete", c.AutoDelete, e.autoDelete},
		{"internal", c.Internal, e.internal}} {
		if x.received != x.current {
			return v, e, inequivalent(x.argument, "exchange", c.Name, v, quoted(x.received), quoted(x.current))
		}
	}
	current, _ := parseTable(e.arguments, nil)
	compared := exchangeArguments
	if e.kind == delays {
		compared = append([]string{"x-delayed-type"}, compared...)
	}
	for _, name := range compared {
		if f, was := find(fields, name), find(current, name); !same(f, was) {
			received, present := describeBoth(f, was)
			return v, e, inequivalent(name, "exchange", c.Name, v, received, present)
		}
	}
	return v, e, Result{}
}

// exchangeArguments are those in which equivalent exchanges are the same.
var exchangeArguments = []string{"alternate-exchange", "x-deduplication-header", "x-deduplication-window", "x-deduplication-size"}

func same(a, b *field) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.equal(b)
}

func (s *state) applyPutExchange(c *PutExchange) Result {
	v, e, r := s.checkPutExchange(c)
	if r.Code != OK || e != nil {
		return r
	}
	s.insertExchange(&exchange{number: s.nextNumber(), vhost: v, name: strings.Clone(c.Name), kind: strings.Clone(c.Type),
		durable: c.Durable, autoDelete: c.AutoDelete, internal: c.Internal, arguments: bytes.Clone(c.Arguments)})
	return Result{Created: true}
}

// checkDeleteExchange returns the exchange to delete, nil when there is nothing to do, or a refusal.
func (s *state) checkDeleteExchange(c *DeleteExchange) (*exchange, Result) {
	v := s.vhosts[c.Vhost]
	switch {
	case v == nil:
		return nil, noVhost(c.Vhost)
	case c.Name == "":
		return nil, onDefaultExchange()
	case strings.HasPrefix(c.Name, "amq."):
		return nil, refuse(AccessRefused, "deletion of system exchange '%s' in vhost '%s' not allowed", c.Name, v.name)
	}
	e := v.exchanges[c.Name]
	if e != nil && c.IfUnused && len(e.from) > 0 {
		return nil, refuse(PreconditionFailed, "exchange '%s' in vhost '%s' in use", c.Name, v.name)
	}
	return e, Result{}
}

func (s *state) applyDeleteExchange(c *DeleteExchange) Result {
	e, r := s.checkDeleteExchange(c)
	if e != nil {
		s.deleteExchange(e)
	}
	return r
}

// deleteExchange removes an exchange, its bindings, and the auto-delete exchanges that thereby lose their last one. It
// does not call itself: a client could make a chain that is longer than any stack.
func (s *state) deleteExchange(e *exchange) {
	for pending := []*exchange{e}; len(pending) > 0; {
		e, pending = pending[len(pending)-1], pending[:len(pending)-1]
		if e.gone {
			continue
		}
		s.removeExchange(e)
		for _, list := range []*bindingList{&e.from, &e.into} {
			for len(*list) > 0 {
				b := (*list)[len(*list)-1]
				s.removeBinding(b)
				if b.source.abandoned() {
					pending = append(pending, b.source)
				}
			}
		}
	}
}

// abandoned reports whether an exchange goes with the binding that it lost.
func (e *exchange) abandoned() bool { return e.autoDelete && len(e.from) == 0 }

func (s *state) removeExchange(e *exchange) {
	e.gone = true
	s.rerouted = true
	delete(e.vhost.exchanges, e.name)
	if !e.durable {
		s.drop.exchanges.Remove(e.transient)
	}
	if moved := s.exchanges.remove(e.row); moved != nil {
		moved.row = e.row
	}
	s.removeWindow(e.window)
	s.sum -= e.hash
}
