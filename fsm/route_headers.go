package fsm

import "strings"

// criteria are what a binding to a headers exchange asks of a message.
type criteria struct {
	any    bool
	fields []field
}

// parseCriteria reads binding arguments; a refusal says what is wrong with them.
func parseCriteria(arguments []byte) (*criteria, Result) {
	fields, ok := parseTable(arguments, nil)
	if !ok {
		return nil, refuse(PreconditionFailed, "the binding's arguments are not a field table")
	}
	c, withX := &criteria{}, false
	if how := find(fields, "x-match"); how != nil {
		if how.tag != 'S' {
			return nil, refuse(PreconditionFailed, "Invalid x-match field type %s (value %s); expected longstr", tagNames[how.tag], how.text())
		}
		switch mode := string(how.value); mode {
		case "all", "any", "all-with-x", "any-with-x":
			c.any, withX = strings.HasPrefix(mode, "any"), strings.HasSuffix(mode, "-with-x")
		default:
			return nil, refuse(PreconditionFailed, "Invalid x-match field value <<\"%s\">>; expected all, any, all-with-x, or any-with-x", mode)
		}
	}
	for _, f := range fields {
		if f.name != "x-match" && (withX || !strings.HasPrefix(f.name, "x-")) {
			c.fields = append(c.fields, f)
		}
	}
	return c, Result{}
}

func (c *criteria) match(headers []field) bool {
	for i := range c.fields {
		want := &c.fields[i]
		have := find(headers, want.name)
		if ok := have != nil && (want.tag == 'V' || want.equal(have)); ok == c.any {
			return ok
		}
	}
	return !c.any
}
