package management

import (
	"cmp"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultPage = 100 // items
	maxPage     = 500
	maxPattern  = 1024 // bytes of a name filter
)

// list answers a list as the query asks for it: filtered, sorted, with certain columns, in pages.
func (c *call) list(items []object) error {
	q := c.r.URL.Query()
	page, err := pageOf(q)
	if err != nil {
		return err
	}
	total := len(items)
	if page.filter != nil {
		items = slices.DeleteFunc(items, func(o object) bool {
			name, _ := o["name"].(string)
			return !page.filter(name)
		})
	}
	if field := q.Get("sort"); field != "" {
		slices.SortStableFunc(items, func(a, b object) int { return compare(at(a, field), at(b, field)) })
		if q.Get("sort_reverse") == "true" {
			slices.Reverse(items)
		}
	}
	if page.number == 0 {
		return c.ok(columns(items, q.Get("columns")))
	}
	filtered := len(items)
	from := min((page.number-1)*page.size, filtered)
	items = columns(items[from:min(from+page.size, filtered)], q.Get("columns"))
	return c.ok(object{"total_count": total, "filtered_count": filtered, "item_count": len(items), "page": page.number,
		"page_size": page.size, "page_count": max(1, (filtered+page.size-1)/page.size), "items": items})
}

// one answers an object with the columns that were asked for.
func (c *call) one(o object) error {
	return c.ok(columns([]object{o}, c.r.URL.Query().Get("columns"))[0])
}

// paging is what a query says of pages; number 0 means that it says nothing.
type paging struct {
	number, size int
	filter       func(name string) bool
}

func pageOf(q url.Values) (p paging, err error) {
	if !q.Has("page") {
		return p, nil
	}
	if p.number, err = strconv.Atoi(q.Get("page")); err != nil || p.number < 1 || p.number > 1<<30 {
		return p, badRequest("page is a number from 1 on, not %.40q", q.Get("page"))
	}
	p.size = defaultPage
	if text := q.Get("page_size"); text != "" {
		if p.size, err = strconv.Atoi(text); err != nil || p.size < 1 || p.size > maxPage {
			return p, badRequest("page_size is a number from 1 to %d, not %.40q", maxPage, text)
		}
	}
	name := q.Get("name")
	if len(name) > maxPattern {
		return p, badRequest("name has at most %d bytes", maxPattern)
	}
	if name != "" && q.Get("use_regex") == "true" {
		re, err := regexp.Compile("(?i)" + name)
		if err != nil {
			return p, badRequest("name is no regular expression: %v", err)
		}
		p.filter = re.MatchString
	} else if name != "" {
		name = strings.ToLower(name)
		p.filter = func(n string) bool { return strings.Contains(strings.ToLower(n), name) }
	}
	return p, nil
}

// columns keeps the named fields of each object; dots lead into objects. "" keeps everything.
func columns(items []object, names string) []object {
	out := make([]object, len(items)) // never nil: an empty list is [] in JSON
	for i, o := range items {
		if out[i] = o; names != "" {
			out[i] = object{}
			for name := range strings.SplitSeq(names, ",") {
				keep(out[i], o, strings.Split(name, "."))
			}
		}
	}
	return out
}

func keep(to, from object, path []string) {
	v, ok := from[path[0]]
	if !ok {
		return
	}
	inner, nested := v.(object)
	if len(path) == 1 || !nested {
		to[path[0]] = v
		return
	}
	next, _ := to[path[0]].(object)
	if next == nil {
		next = object{}
		to[path[0]] = next
	}
	keep(next, inner, path[1:])
}

// at returns a field; dots lead into objects.
func at(o object, name string) any {
	for {
		first, rest, more := strings.Cut(name, ".")
		if !more {
			return o[first]
		}
		o, _ = o[first].(object)
		name = rest
	}
}

// compare orders values of the kinds that lists have; others are equal.
func compare(a, b any) int {
	switch a := a.(type) {
	case string:
		b, _ := b.(string)
		return cmp.Compare(a, b)
	case bool:
		b, _ := b.(bool)
		return cmp.Compare(number(a), number(b))
	}
	return cmp.Compare(number(a), number(b))
}

func number(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case int64:
		return float64(v)
	case uint16:
		return float64(v)
	case uint32:
		return float64(v)
	case uint64:
		return float64(v)
	case float64:
		return v
	case bool:
		if v {
			return 1
		}
	}
	return 0
}
