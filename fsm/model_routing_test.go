package fsm

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
)

// modelTopic is the definition of a topic match.
func modelTopic(pattern, key []string) bool {
	switch {
	case len(pattern) == 0:
		return len(key) == 0
	case pattern[0] == "#":
		return modelTopic(pattern[1:], key) || len(key) > 0 && modelTopic(pattern, key[1:])
	case len(key) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == key[0]) && modelTopic(pattern[1:], key[1:])
}

func modelWords(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(key, ".")
}

// modelHeaders matches tables whose values are all strings.
func modelHeaders(arguments, properties []byte) bool {
	want, _ := parseTable(arguments, nil)
	have := map[string]string{}
	for _, f := range messageHeaders(properties, nil) {
		have[f.name] = string(f.value)
	}
	mode := "all"
	for _, f := range want {
		if f.name == "x-match" {
			mode = string(f.value)
		}
	}
	matched, asked := 0, 0
	for _, f := range want {
		if f.name == "x-match" || strings.HasPrefix(f.name, "x-") && !strings.HasSuffix(mode, "-with-x") {
			continue
		}
		asked++
		if v, ok := have[f.name]; ok && (f.tag == 'V' || v == string(f.value)) {
			matched++
		}
	}
	if strings.HasPrefix(mode, "any") {
		return matched > 0
	}
	return matched == asked
}

// The headers with more keys that are drawn.
var (
	drawnCC  = array("CC", "a.b", "q0", int32(1), "x0")
	drawnBCC = array("BCC", "a", "q1")
)

func modelKeys(p *Publish) []string {
	keys := []string{p.RoutingKey}
	if bytes.Contains(p.Properties, drawnCC) {
		keys = append(keys, "a.b", "q0", "x0")
	}
	if bytes.Contains(p.Properties, drawnBCC) {
		keys = append(keys, "a", "q1")
	}
	return keys
}

// modelRead is how properties with nothing before their headers are read.
func modelRead(p []byte) []byte {
	at := bytes.Index(p, drawnBCC)
	if at < 0 {
		return p
	}
	out := append(bytes.Clone(p[:at]), p[at+len(drawnBCC):]...)
	binary.BigEndian.PutUint32(out[2:], binary.BigEndian.Uint32(out[2:])-uint32(len(drawnBCC)))
	return out
}

func (m *model) matches(b *modelBinding, p *Publish) bool {
	switch b.source.routes {
	case direct:
		return slices.Contains(modelKeys(p), b.key)
	case topic:
		return slices.ContainsFunc(modelKeys(p), func(key string) bool { return modelTopic(modelWords(b.key), modelWords(key)) })
	case headers:
		return modelHeaders(b.arguments, p.Properties)
	}
	return true
}

// route follows all ways from an exchange.
func (m *model) route(e *modelExchange, p *Publish, seen map[*modelExchange]bool, reached map[*modelQueue]bool) {
	if e == nil || seen[e] {
		return
	}
	seen[e] = true
	found := false
	if e.name == "" {
		for _, key := range modelKeys(p) {
			if q := m.queue(e.vhost, key); q != nil {
				reached[q], found = true, true
			}
		}
	}
	for _, b := range m.bindings {
		if b.source == e && m.matches(b, p) {
			found = true
			if b.queue != nil {
				reached[b.queue] = true
			} else {
				m.route(b.exchange, p, seen, reached)
			}
		}
	}
	if !found && e.alternate != "" {
		m.route(m.exchange(e.vhost, e.alternate), p, seen, reached)
	}
}
