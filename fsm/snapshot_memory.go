package fsm

import "strings"

// contents remembers the copies of contents that several queues may share. Nil when there is nothing to share.
type contents map[*content]*content

// sharedContents returns a place for copies when more than one queue has something to write.
func sharedContents(views []queueView, keep bool) contents {
	if !keep {
		return nil
	}
	writing := 0
	for i := range views {
		for _, c := range views[i].chunks {
			if c.unwritten > 0 {
				writing++
				break
			}
		}
		if writing > 1 {
			return make(contents)
		}
	}
	return nil
}

// of returns a copy of a content that does not hold on to the log entry it came in.
func (cs contents) of(c *content) *content {
	if copied := cs[c]; copied != nil {
		return copied
	}
	copied := *c
	both := append(append(make([]byte, 0, len(c.properties)+len(c.body)), c.properties...), c.body...)
	n := len(c.properties)
	copied.properties, copied.body = both[:n:n], both[n:]
	copied.exchange, copied.routingKey = strings.Clone(c.exchange), strings.Clone(c.routingKey)
	if cs != nil {
		cs[c] = &copied
	}
	return &copied
}

// nearHead is how many bytes from the head of a queue on stay in memory once they are written, if there is room for them.
// Copying more would cost a tenth of a processor under full load, for messages that are read from their file before a
// consumer gets to them.
const nearHead = 16 << 20

// install tells the queue where its newly written messages are. The contents of those near the head stay in memory as copies
// of their own, the others leave it; either way the log entries they came in are free.
func (j *job) install(keep bool, shared contents, hold func(uint64, func(*messages))) {
	places := j.places
	var ahead uint64 // bytes in front of the chunk, if all messages were alike
	for _, c := range j.view.chunks {
		near := ahead < nearHead
		ahead += uint64(c.count) * (contentBytes + j.view.bytes/max(j.view.count, 1))
		if c.unwritten == 0 {
			continue
		}
		n := c.unwritten
		copies := make([]*content, n)
		if keep && near {
			at := 0
			for i := range c.slots {
				if c.keeps(i) && c.slots[i].file == 0 {
					copies[at] = shared.of(c.slots[i].content)
					at++
				}
			}
		}
		hold(j.view.number, func(m *messages) {
			for i, p := range places[:n] {
				m.written(p, 0, copies[i])
			}
			m.packAt(c.first())
		})
		places = places[n:]
	}
}
