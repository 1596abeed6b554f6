package main

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"
)

const preface = "// Code generated from methods.txt by go generate; DO NOT EDIT.\n\npackage amqp091\n\n"

// generate returns the generated files by name: methods.go, the index, and one for each class.
func generate(description string) (map[string][]byte, error) {
	classes, err := parse(description)
	if err != nil {
		return nil, err
	}
	sources := map[string]string{"methods.go": index(classes)}
	for _, c := range classes {
		var b strings.Builder
		b.WriteString(preface)
		for _, m := range c.methods {
			m.write(&b)
		}
		sources["methods_"+c.name+".go"] = b.String()
	}
	files := map[string][]byte{}
	for name, source := range sources {
		formatted, err := format.Source([]byte(source))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[name] = bytes.TrimSpace(formatted)
		files[name] = append(files[name], '\n')
	}
	return files, nil
}

func index(classes []*class) string {
	var ids, infos, makers strings.Builder
	for _, c := range classes {
		for _, m := range c.methods {
			fmt.Fprintf(&ids, "%sID MethodID = %d<<16 | %d\n", m.goName(), c.id, m.id)
			fmt.Fprintf(&infos, "{%sID, %q, %t, %t, %t},\n", m.goName(), c.name+"."+m.name, m.client, m.server, m.content)
			fmt.Fprintf(&makers, "case %sID:\nreturn new(%s)\n", m.goName(), m.goName())
		}
		ids.WriteString("\n")
	}
	return preface + "// The methods.\nconst (\n" + ids.String() + ")\n\n" +
		"// methods are sorted by id.\nvar methods = []methodInfo{\n" + infos.String() + "}\n\n" +
		"// New returns an empty method, or nil for an unknown id.\nfunc New(id MethodID) Method {\nswitch id {\n" + makers.String() + "}\nreturn nil\n}\n"
}

func (m *method) write(b *strings.Builder) {
	name := m.goName()
	fmt.Fprintf(b, "// %s is %s.%s (%d.%d), sent by %s%s.", name, m.class.name, m.name, m.class.id, m.id, m.senders(), m.withContent())
	if m.note != "" {
		fmt.Fprintf(b, " %s", m.note)
	}
	members := ""
	for _, f := range m.fields {
		if f.name != "-" {
			members += fmt.Sprintf("\n%s %s", goName(f.name), kinds[f.kind].goType)
		}
	}
	if members != "" {
		members += "\n"
	}
	fmt.Fprintf(b, "\ntype %s struct {%s}\n\n", name, members)
	fmt.Fprintf(b, "// ID returns %sID.\nfunc (*%s) ID() MethodID { return %sID }\n\n", name, name, name)
	m.writeDecode(b)
	m.writeAppend(b)
	fmt.Fprintf(b, "// AppendFrame implements Method.\nfunc (m *%s) AppendFrame(dst []byte, channel uint16) []byte {\n"+
		"return endFrame(m.Append(beginFrame(dst, FrameMethod, channel)), len(dst))\n}\n\n", name)
}

func (m *method) writeDecode(b *strings.Builder) {
	fmt.Fprintf(b, "// Decode implements Method.\nfunc (m *%s) Decode(args []byte) error {\na := arguments{b: args}\n", m.goName())
	bit := 0
	for _, f := range m.fields {
		if f.kind != "bit" {
			bit = 0
			if f.name == "-" {
				fmt.Fprintf(b, "%s\n", kinds[f.kind].skip)
			} else {
				fmt.Fprintf(b, "m.%s = %s\n", goName(f.name), kinds[f.kind].read)
			}
			continue
		}
		octet := "a.u8()"
		if bit%8 == 0 && f.name != "-" {
			fmt.Fprintf(b, "bits := a.u8()\n")
		} else if bit%8 == 0 {
			fmt.Fprintf(b, "%s\n", octet)
		}
		if f.name != "-" {
			fmt.Fprintf(b, "m.%s = bits&%d != 0\n", goName(f.name), 1<<(bit%8))
		}
		bit++
	}
	fmt.Fprintf(b, "return a.end(%sID)\n}\n\n", m.goName())
}

func (m *method) writeAppend(b *strings.Builder) {
	fmt.Fprintf(b, "// Append implements Method.\nfunc (m *%s) Append(dst []byte) []byte {\n", m.goName())
	fmt.Fprintf(b, "dst = be.AppendUint32(dst, uint32(%sID))\n", m.goName())
	var bits []string
	flush := func() {
		if bits != nil {
			fmt.Fprintf(b, "dst = append(dst, %s)\n", strings.Join(bits, "|"))
			bits = nil
		}
	}
	for _, f := range m.fields {
		if f.kind == "bit" {
			if f.name == "-" {
				bits = append(bits, "0")
			} else {
				bits = append(bits, fmt.Sprintf("bit(m.%s, %d)", goName(f.name), len(bits)))
			}
			continue
		}
		flush()
		if f.name == "-" {
			fmt.Fprintf(b, "dst = %s\n", kinds[f.kind].zero)
		} else {
			fmt.Fprintf(b, "dst = "+kinds[f.kind].append+"\n", "m."+goName(f.name))
		}
	}
	flush()
	fmt.Fprintf(b, "return dst\n}\n\n")
}

func (m *method) goName() string { return goName(m.class.name) + goName(m.name) }

func (m *method) senders() string {
	switch {
	case m.client && m.server:
		return "either side"
	case m.client:
		return "the client"
	}
	return "the server"
}

func (m *method) withContent() string {
	if m.content {
		return ", with content"
	}
	return ""
}

// goName turns consumer-tag into ConsumerTag.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
