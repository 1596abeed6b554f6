package native

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/warrenmq/warren/broker"
	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/native"
)

// check returns what is wrong with a request by itself, whatever there is in the broker: names and keys that AMQP 0-9-1
// could not carry, arguments that are no field table, bodies that must come in parts.
func check(f native.Frame) error {
	switch f := f.(type) {
	case *native.ExchangeDeclare:
		return all(names(f.Name, f.Kind), arguments(f.Arguments))
	case *native.ExchangeDelete:
		return names(f.Name)
	case *native.QueueDeclare:
		return all(names(f.Name), arguments(f.Arguments))
	case *native.QueueDelete:
		return names(f.Name)
	case *native.Purge:
		return names(f.Name)
	case *native.Bind:
		return checkBinding(&f.Binding)
	case *native.Unbind:
		return checkBinding(&f.Binding)
	case *native.Consume:
		return all(names(f.Queue), key("a consumer tag", f.ConsumerTag), arguments(f.Arguments))
	case *native.Cancel:
		return key("a consumer tag", f.ConsumerTag)
	case *native.Get:
		return names(f.Queue)
	case *native.Peek:
		return names(f.Queue)
	case *native.Move:
		return all(names(f.Queue, f.To), key("a routing key", f.RoutingKey))
	case *native.PolicyPut:
		return all(names(f.Name), key("apply-to", f.ApplyTo), arguments(f.Definition))
	case *native.PolicyDelete:
		return names(f.Name)
	case *native.VhostPut:
		return names(f.Name)
	case *native.VhostDelete:
		return names(f.Name)
	case *native.BodyPart:
		return inline("a body part", f.Bytes)
	case *native.Tx:
		for i := range f.Operations {
			if o := &f.Operations[i]; o.Kind == native.TypePublish {
				if err := checkPublish(o.Exchange, o.RoutingKey, o.Properties, o.Body); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkBinding(b *native.Binding) error {
	return all(names(b.Destination, b.Exchange), key("a binding key", b.BindingKey), arguments(b.Arguments))
}

// checkPublish is for each publish: it allocates nothing when all is well.
func checkPublish(exchange, routingKey string, properties, body []byte) error {
	if err := names(exchange); err != nil {
		return err
	}
	if err := key("a routing key", routingKey); err != nil {
		return err
	}
	if err := native.CheckProperties(properties); err != nil {
		return refusal(native.SyntaxError, "SYNTAX_ERROR - %v", err)
	}
	return inline("a body", body)
}

// all returns the first error.
func all(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// names checks names of objects: line breaks are not for AMQP clients, which have them taken out.
func names(list ...string) error {
	for _, name := range list {
		if err := key("a name", name); err != nil {
			return err
		}
		if strings.ContainsAny(name, "\r\n") {
			return refusal(native.PreconditionFailed, "PRECONDITION_FAILED - a name has no line breaks: %q", clip(name))
		}
	}
	return nil
}

func key(what, s string) error {
	if len(s) > fsm.MaxNameBytes {
		return refusal(native.PreconditionFailed, "PRECONDITION_FAILED - %s has at most %d bytes, this one has %d", what, fsm.MaxNameBytes, len(s))
	}
	if !utf8.ValidString(s) {
		return refusal(native.PreconditionFailed, "PRECONDITION_FAILED - %s is valid UTF-8, this one is not: %q", what, clip(s))
	}
	return nil
}

func arguments(table []byte) error {
	if err := native.CheckTable(table); err != nil {
		return refusal(native.SyntaxError, "SYNTAX_ERROR - the arguments: %v", err)
	}
	return nil
}

func inline(what string, body []byte) error {
	if len(body) > native.MaxInlineBody {
		return refusal(native.ContentTooLarge, "CONTENT_TOO_LARGE - %s of %d bytes in one frame, at most %d are allowed: send a larger body in parts", what, len(body), native.MaxInlineBody)
	}
	return nil
}

func refusal(code native.Code, format string, args ...any) error {
	return &broker.Error{Code: fsm.Code(code), Message: fmt.Sprintf(format, args...)}
}

// clip keeps a client's text short in an answer to it.
func clip(s string) string { return clipTo(s, 64) }

func clipTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
