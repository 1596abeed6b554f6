package fsm

import (
	"pgregory.net/rapid"
)

// limits draws the arguments of a queue whose length is limited.
func (d drawer) limits() []byte {
	var pairs []any
	if d.bool("x-max-length") {
		pairs = append(pairs, "x-max-length", drawOf(d, "x-max-length", int32(0), 1, 2, 5))
	}
	if len(pairs) == 0 || drawOf(d, "x-max-length-bytes", 0, 0, 1) == 1 {
		pairs = append(pairs, "x-max-length-bytes", drawOf(d, "x-max-length-bytes", int32(0), 20, 301, 700))
	}
	if overflow := drawOf(d, "x-overflow", "", "drop-head", "reject-publish", "reject-publish-dlx"); overflow != "" {
		pairs = append(pairs, "x-overflow", overflow)
	}
	if d.bool("dead") {
		pairs = append(pairs, "x-dead-letter-exchange", "amq.fanout")
		if drawOf(d, "kept", 0, 0, 1) == 1 {
			pairs = append(pairs, "x-dead-letter-strategy", "at-least-once")
		}
	}
	return table(pairs...)
}

// limits reads what a queue was declared with.
func (q *modelQueue) limits(arguments []byte) {
	q.length, q.bytes = -1, -1
	fields, _ := parseTable(arguments, nil)
	for i := range fields {
		switch f := &fields[i]; f.name {
		case "x-max-length":
			q.length, _ = f.integer()
		case "x-max-length-bytes":
			q.bytes, _ = f.integer()
		case "x-overflow":
			q.overflow = string(f.value)
		}
	}
}

// exceeds reports whether a queue with so many more ready messages and bytes has more than its limits let it have.
func (q *modelQueue) exceeds(messages, size int) bool {
	for _, x := range q.live {
		if !x.claimed {
			messages, size = messages+1, size+len(x.Body)
		}
	}
	for _, x := range q.dying {
		if q.keep {
			messages, size = messages+1, size+len(x.Body)
		}
	}
	return q.length >= 0 && messages > int(q.length) || q.bytes >= 0 && size > int(q.bytes)
}

func (q *modelQueue) hasRoom(messages, size int) bool {
	if q.length < 0 && q.bytes < 0 || q.overflow == "" || q.overflow == "drop-head" || int(q.awaited) >= messages {
		return true
	}
	return !q.exceeds(messages-int(q.awaited), size)
}

// makeRoom drops the oldest ready messages that are too many.
func (m *model) makeRoom(q *modelQueue) {
	for (q.overflow == "" || q.overflow == "drop-head") && q.exceeds(0, 0) {
		first, lowest := uint64(0), 256
		for i := range q.live {
			if x := &q.live[i]; !x.claimed && q.level(x) < lowest {
				first, lowest = x.Sequence, q.level(x)
			}
		}
		q.kill(MaxLength, func(x *modelMessage) bool { return x.Sequence == first })
		m.counters.droppedMaxLength++
	}
}

// roomFor reports whether no queue refuses what a transaction publishes.
func (m *model) roomFor(c *Transaction) bool {
	messages, size := map[*modelQueue]int{}, map[*modelQueue]int{}
	for _, o := range c.Operations {
		p, ok := o.(*Publish)
		if !ok {
			continue
		}
		if known := m.producers[string(p.Producer)]; known != nil {
			if _, ok := known.seen[p.Sequence]; ok {
				continue
			}
		}
		body := len(p.Body)
		if p.Upload != 0 {
			body = len(m.uploads[modelUpload{p.Session, p.Upload}])
		}
		reached := map[*modelQueue]bool{}
		m.route(m.exchange(m.vhost(p.Vhost), p.Exchange), p, map[*modelExchange]bool{}, reached)
		for q := range reached {
			messages[q], size[q] = messages[q]+1, size[q]+body
			if !q.hasRoom(messages[q], size[q]) {
				return false
			}
		}
	}
	return true
}

func (m *model) abandon(c *Transaction) {
	for _, o := range c.Operations {
		if p, ok := o.(*Publish); ok {
			m.dropUpload(modelUpload{p.Session, p.Upload})
		}
	}
}

func (m *model) claim(c *Claim) Result {
	q := m.numbered(c.Queue)
	if q == nil {
		return Result{}
	}
	n := uint64(0)
	for i := range q.live {
		if x := &q.live[i]; !x.claimed && inRuns(c.Runs, x.Sequence) {
			x.claimed = true
			n++
		}
	}
	q.awaited += c.More
	if c.Less > 0 {
		n = min(c.Less, q.awaited)
		q.awaited -= n
	}
	return Result{Messages: n}
}

func (d drawer) claim() *Claim {
	switch drawOf(d, "claim", 0, 0, 1, 2) {
	case 1:
		return &Claim{Queue: d.queue(), More: rapid.Uint64Range(0, 4).Draw(d.T, "more")}
	case 2:
		return &Claim{Queue: d.queue(), Less: rapid.Uint64Range(1, 4).Draw(d.T, "less")}
	}
	return &Claim{Queue: d.queue(), Runs: d.runs()}
}

// checkLimits says that a queue which drops never has a ready message too many, and that what is kept of its claims
// follows from its messages.
func checkLimits(t *rapid.T, q *queue) {
	if q.rules.overflow == dropHead && q.rules.exceeded(q.ready()) {
		count, size := q.ready()
		t.Fatalf("queue '%s' has %d ready messages of %d bytes: %+v", q.name, count, size, q.rules.limits)
	}
	m := &q.messages
	var count, size, first uint64
	for at, ok := m.first(); ok; at, ok = m.next(at + 1) {
		where, position, _ := m.at(at)
		var open opened
		s := open.slots(m.chunks[where])[position]
		if claimed := s.state&slotClaimed != 0; claimed != m.claimed(at) {
			t.Fatalf("message %d is claimed: %v", at, claimed)
		} else if claimed {
			count, size = count+1, size+uint64(s.body)
		} else if first == 0 {
			first = at
		}
	}
	if got, _ := m.firstReady(); count != m.claims.count || size != m.claims.bytes || got != first {
		t.Fatalf("%d claims of %d bytes, the first ready is %d; kept as %+v, %d", count, size, first, m.claims, got)
	}
	for index := range m.claims.chunks {
		if _, ok := m.find(index); !ok {
			t.Fatalf("claims of a chunk that is gone")
		}
	}
}
