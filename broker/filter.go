package broker

import (
	"strconv"
	"strings"

	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// maxHeaderFilters bounds the headers that a Filter names.
const maxHeaderFilters = 64

// Filter says which messages of a queue are meant: those that have all the headers and the key. The zero value means all.
type Filter struct {
	Headers []HeaderFilter
	Key     string // a routing key or, with * and #, a pattern as in a topic exchange's binding; "" is any
}

// HeaderFilter asks for a header. Numbers and booleans are compared as they are written.
type HeaderFilter struct {
	Name   string
	Value  string
	Exists bool // whatever its value
}

func (f *Filter) empty() bool { return f.Key == "" && len(f.Headers) == 0 }

func (f *Filter) check() error {
	if len(f.Headers) > maxHeaderFilters {
		return errorf(fsm.PreconditionFailed, "PRECONDITION_FAILED - a filter has at most %d headers, this one has %d", maxHeaderFilters, len(f.Headers))
	}
	return nil
}

// matches reports whether a message is meant.
func (f *Filter) matches(m *fsm.Message) bool {
	if f.Key != "" && f.Key != m.RoutingKey && !matchesTopic(f.Key, m.RoutingKey) {
		return false
	}
	if len(f.Headers) == 0 {
		return true
	}
	headers := amqp091.PropertyBytes(m.Properties).Headers()
	for i := range f.Headers {
		h := &f.Headers[i]
		value, found := headers.Lookup(h.Name)
		if !found || !h.Exists && textOf(value) != h.Value {
			return false
		}
	}
	return true
}

// textOf writes a header's value as an operator would.
func textOf(v amqp091.Value) string {
	if text, ok := v.Text(); ok {
		return string(text)
	}
	if n, ok := v.Int(); ok {
		return strconv.FormatInt(n, 10)
	}
	if b, ok := v.Bool(); ok {
		return strconv.FormatBool(b)
	}
	if x, ok := v.Float(); ok {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return ""
}

// matchesTopic reports whether a key matches a binding key of a topic exchange: * is a word, # any number of words. Its
// time is at most the product of their words.
func matchesTopic(pattern, key string) bool {
	words := split(key)
	reach := make([]bool, len(words)+1) // reach[i]: the pattern so far matches the first i words
	reach[0] = true
	for _, p := range split(pattern) {
		if p == "#" {
			for i := 1; i < len(reach); i++ {
				reach[i] = reach[i] || reach[i-1]
			}
			continue
		}
		for i := len(words); i > 0; i-- {
			reach[i] = reach[i-1] && (p == "*" || p == words[i-1])
		}
		reach[0] = false
	}
	return reach[len(words)]
}

func split(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(key, ".")
}
