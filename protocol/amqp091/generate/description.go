package main

import (
	"fmt"
	"strconv"
	"strings"
)

type class struct {
	name    string
	id      uint16
	methods []method
}

type method struct {
	class   *class
	name    string // as in the specification, without the class
	id      uint16
	client  bool // a client may send it
	server  bool
	content bool
	fields  []field
	note    string
}

type field struct {
	name string // "-": reserved
	kind string
}

// parse reads the description of the methods.
func parse(text string) (classes []*class, err error) {
	for n, line := range strings.Split(text, "\n") {
		line, note, _ := strings.Cut(line, "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case words[0] == "class" && len(words) == 3:
			c := &class{name: words[1]}
			c.id, err = number(words[2])
			classes = append(classes, c)
		case len(words) >= 3 && len(classes) > 0:
			m := method{class: classes[len(classes)-1], note: strings.TrimSpace(note)}
			if err = m.parse(words); err == nil {
				m.class.methods = append(m.class.methods, m)
			}
		default:
			err = fmt.Errorf("neither a class nor a method of one: %q", line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return classes, nil
}

func (m *method) parse(words []string) (err error) {
	if m.id, err = number(words[0]); err != nil {
		return err
	}
	m.name = words[1]
	m.client, m.server = strings.Contains(words[2], "C"), strings.Contains(words[2], "S")
	if !m.client && !m.server {
		return fmt.Errorf("%q says neither C nor S", words[2])
	}
	rest := words[3:]
	if len(rest) > 0 && rest[0] == "content" {
		m.content, rest = true, rest[1:]
	}
	for _, w := range rest {
		name, kind, _ := strings.Cut(w, ":")
		if kind == "short" && m.content {
			kind = "unchecked"
		}
		if kinds[kind].goType == "" {
			return fmt.Errorf("field %q has no known type", w)
		}
		m.fields = append(m.fields, field{name, kind})
	}
	return nil
}

func number(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err
}

// kinds say how a field of each type is declared, read and written; bits are dealt with apart, since they share octets.
var kinds = map[string]struct {
	goType, read, skip, append, zero string
}{
	"bit":   {goType: "bool"},
	"u8":    {"uint8", "a.u8()", "a.u8()", "append(dst, %s)", "append(dst, 0)"},
	"u16":   {"uint16", "a.u16()", "a.u16()", "be.AppendUint16(dst, %s)", "append(dst, 0, 0)"},
	"u32":   {"uint32", "a.u32()", "a.u32()", "be.AppendUint32(dst, %s)", "append(dst, 0, 0, 0, 0)"},
	"u64":   {"uint64", "a.u64()", "a.u64()", "be.AppendUint64(dst, %s)", "append(dst, 0, 0, 0, 0, 0, 0, 0, 0)"},
	"short": {"string", "a.short()", "a.skipShort()", "appendShort(dst, %s)", "append(dst, 0)"},
	"view":  {"[]byte", "a.raw()", "a.skipShort()", "appendShort(dst, %s)", "append(dst, 0)"},
	// RabbitMQ lets the methods with content name anything, not only what is UTF-8.
	"unchecked": {"string", "string(a.raw())", "a.skipShort()", "appendShort(dst, %s)", "append(dst, 0)"},
	"long":      {"string", "a.long()", "a.skipLong()", "appendLong(dst, %s)", "append(dst, 0, 0, 0, 0)"},
	"table":     {"Table", "a.table()", "a.skipLong()", "appendLong(dst, %s)", "append(dst, 0, 0, 0, 0)"},
	"method":    {"MethodID", "MethodID(a.u32())", "a.u32()", "be.AppendUint32(dst, uint32(%s))", "append(dst, 0, 0, 0, 0)"},
}
