package fsm

import (
	"slices"
)

const (
	// maxDeaths bounds what the number of true entries in an x-death header can say.
	maxDeaths = 255
	// maxDeathEntries bounds an x-death header: the entries of the longest ago go.
	maxDeathEntries = 255
)

// death is one death of a message: what its dead letter looks like, and which queues it must not reach.
type death struct {
	key        string
	properties []byte // with a BCC header, if there was one
	deaths     uint8
	history    []deathEntry // newest first; the first deaths of them are true
}

// deathEntry is an entry of an x-death header.
type deathEntry struct {
	queue, reason string
	bytes         []byte // a table with its fields
}

// newDeath records a death in the message's headers. An earlier entry of the same queue and reason counts on and goes to
// the front; all else in it stays as it was at the first (AMQP reference, section on dead lettering).
func newDeath(q *queue, why Reason, c *DeadLetter, clock int64) *death {
	p := &c.Message
	fields := messageHeaders(p.Properties, nil)
	d := &death{key: p.RoutingKey, history: deathsIn(fields)}
	if q.rules.overrideDeadKey {
		d.key = q.rules.deadKey
	}
	same := func(e deathEntry) bool { return e.queue == q.name && e.reason == why.String() }
	d.deaths = min(c.Deaths, uint8(min(len(d.history), maxDeaths)))
	if at := slices.IndexFunc(d.history, same); at >= 0 {
		e := d.history[at]
		e.bytes = countOn(e.bytes)
		d.history = slices.Insert(slices.Delete(d.history, at, at+1), 0, e)
		if at >= int(d.deaths) {
			d.deaths = min(d.deaths, maxDeaths-1) + 1
		}
	} else {
		e := deathEntry{queue: q.name, reason: why.String(), bytes: newEntry(q, why, p, fields, clock)}
		d.history = slices.Insert(d.history, 0, e)
		d.deaths = min(d.deaths, maxDeaths-1) + 1
	}
	d.history = d.history[:min(len(d.history), maxDeathEntries)]
	d.properties = withoutExpiration(withHeaders(p.Properties, d.headers(q, why, p, fields)))
	return d
}

// cycle reports whether a queue is on the message's way already without anybody having rejected it since: it would go
// round for ever.
func (d *death) cycle(q *queue) bool {
	for _, e := range d.history[:d.deaths] {
		if e.reason == Rejected.String() {
			return false
		}
		if e.queue == q.name {
			return true
		}
	}
	return false
}

// headers returns the table of headers with the death in it.
func (d *death) headers(q *queue, why Reason, p *Publish, fields []field) (table []byte) {
	first := find(fields, "x-first-death-queue") == nil
	for i := range fields {
		switch f := &fields[i]; f.name {
		case "x-death", "x-last-death-reason", "x-last-death-queue", "x-last-death-exchange":
		case "CC", "BCC":
			if !q.rules.overrideDeadKey {
				table = f.append(table)
			}
		case "x-first-death-reason", "x-first-death-queue", "x-first-death-exchange":
			if !first {
				table = f.append(table)
			}
		default:
			table = f.append(table)
		}
	}
	var list []byte
	for _, e := range d.history {
		list = append(big.AppendUint32(append(list, 'F'), uint32(len(e.bytes))), e.bytes...)
	}
	table = (&field{name: "x-death", tag: 'A', value: list}).append(table)
	which := []string{"x-last-death-"}
	if first {
		which = []string{"x-first-death-", "x-last-death-"}
	}
	for _, prefix := range which {
		table = appendText(table, prefix+"reason", why.String())
		table = appendText(table, prefix+"queue", q.name)
		table = appendText(table, prefix+"exchange", p.Exchange)
	}
	return table
}

// deathsIn returns the entries of an x-death header; what is none is passed over.
func deathsIn(fields []field) (entries []deathEntry) {
	f := find(fields, "x-death")
	if f == nil || f.tag != 'A' {
		return nil
	}
	for rest := f.value; len(rest) > 0; {
		tag, value, after, ok := cutValue(rest)
		if !ok {
			return entries
		}
		rest = after
		inner, ok := parseTable(value, nil)
		if tag != 'F' || !ok {
			continue
		}
		e := deathEntry{bytes: value}
		if f := find(inner, "queue"); f != nil {
			e.queue = string(f.value)
		}
		if f := find(inner, "reason"); f != nil {
			e.reason = string(f.value)
		}
		entries = append(entries, e)
	}
	return entries
}

// countOn returns an entry's table with its count raised by one.
func countOn(table []byte) (out []byte) {
	fields, _ := parseTable(table, nil)
	count := int64(0)
	if f := find(fields, "count"); f != nil {
		count, _ = f.integer()
	}
	out = appendLong(out, "count", count+1)
	for i := range fields {
		if fields[i].name != "count" {
			out = fields[i].append(out)
		}
	}
	return out
}

// newEntry returns the table of a first death.
func newEntry(q *queue, why Reason, p *Publish, fields []field, clock int64) (table []byte) {
	var keys []byte
	for _, key := range append([]string{p.RoutingKey}, textsIn(find(fields, "CC"))...) {
		keys = append(big.AppendUint32(append(keys, 'S'), uint32(len(key))), key...)
	}
	table = appendLong(nil, "count", 1)
	table = appendText(table, "reason", why.String())
	table = appendText(table, "queue", q.name)
	table = (&field{name: "time", tag: 'T', value: big.AppendUint64(nil, uint64(clock/1000))}).append(table)
	table = appendText(table, "exchange", p.Exchange)
	table = (&field{name: "routing-keys", tag: 'A', value: keys}).append(table)
	if _, text, ok := expirationOf(p.Properties); ok {
		table = appendText(table, "original-expiration", text)
	}
	return table
}
