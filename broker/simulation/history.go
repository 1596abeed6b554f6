package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxAlike bounds the sentences kept of one kind of violation.
const maxAlike = 4

// History is what clients saw, checked as it comes in and at the end. Safe for concurrent use.
type History struct {
	start time.Time

	mu         sync.Mutex // guards everything below
	messages   map[string]*message
	copies     map[[2]string]*queued // by queue and message
	order      map[[3]string]int     // consumer, queue, publisher: number of the last first delivery
	groups     map[string]*group     // transactions
	violations []string
	alike      map[string]int // by format
	counts     Counts
}

// Counts says how much happened.
type Counts struct{ Published, Confirmed, Delivered, Redelivered, Acked, Transactions, Emptied, Abandoned int }

// message is one publish.
type message struct {
	id        string
	publisher string
	number    int
	queues    []string
	confirmed bool
	settles   [2]string // the queue and message whose acknowledgement is in the same transaction
}

// queued is one message in one queue.
type queued struct {
	deliveries int
	firsts     int       // deliveries that were not marked as redelivered
	acked      time.Time // when its acknowledgement was known to be applied, zero while it is not
}

// group is a transaction's messages.
type group struct {
	ids       []string
	committed bool
}

// NewHistory returns an empty history that begins now.
func NewHistory() *History {
	return &History{start: time.Now(), messages: map[string]*message{}, copies: map[[2]string]*queued{},
		order: map[[3]string]int{}, groups: map[string]*group{}, alike: map[string]int{}}
}

func (h *History) violation(format string, args ...any) {
	if h.alike[format]++; h.alike[format] <= maxAlike {
		h.violations = append(h.violations, fmt.Sprintf("%9.4fs ", time.Since(h.start).Seconds())+fmt.Sprintf(format, args...))
	}
}

// Violation notes that something did not hold.
func (h *History) Violation(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.violation(format, args...)
}

// Publishing notes a publish before it is sent.
func (h *History) Publishing(publisher string, number int, queues ...string) (id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	id = fmt.Sprintf("%s.%d", publisher, number)
	h.messages[id] = &message{id: id, publisher: publisher, number: number, queues: queues}
	h.counts.Published++
	return id
}

// Confirmed notes a confirm.
func (h *History) Confirmed(id string, routed uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.messages[id]
	m.confirmed = true
	h.counts.Confirmed++
	if int(routed) != len(m.queues) {
		h.violation("message %s was confirmed as routed to %d queues, not to %v", id, routed, m.queues)
	}
}

// Emptied notes that a queue was purged or deleted; abandoned is how many were left for the broker to delete.
func (h *History) Emptied(abandoned int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.Emptied++
	h.counts.Abandoned += abandoned
}

// Transaction notes a transaction before it is sent; settles is the queue and message that it acknowledges, if any.
func (h *History) Transaction(name string, settles [2]string, ids ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.groups[name] = &group{ids: ids}
	for _, id := range ids {
		h.messages[id].settles = settles
	}
	h.counts.Transactions++
}

// Committed notes that a transaction was answered with success.
func (h *History) Committed(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := h.groups[name]
	g.committed = true
	for _, id := range g.ids {
		m := h.messages[id]
		m.confirmed = true
		h.counts.Confirmed++
		h.ack(m.settles)
	}
}

// Delivered notes a delivery to a consumer over a network connection that was opened at a time, zero if unknown.
func (h *History) Delivered(consumer, queue, id string, redelivered bool, opened time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.messages[id]
	if m == nil || !slices.Contains(m.queues, queue) {
		h.violation("queue %s delivered %q, which nobody published there", queue, id)
		return
	}
	q := h.copy(queue, id)
	q.deliveries++
	h.counts.Delivered++
	if !q.acked.IsZero() && opened.After(q.acked) {
		h.violation("message %s of queue %s, whose acknowledgement was known at %.4fs, was delivered to %s over a connection opened at %.4fs (redelivered %t)",
			id, queue, q.acked.Sub(h.start).Seconds(), consumer, opened.Sub(h.start).Seconds(), redelivered)
	}
	if q.deliveries == 1 {
		h.ack(m.settles)
	}
	if redelivered {
		h.counts.Redelivered++
		return
	}
	if q.firsts++; q.firsts > 1 || q.deliveries > 1 {
		h.violation("message %s of queue %s was delivered to %s as if for the first time, but that was delivery %d", id, queue, consumer, q.deliveries)
	}
	key := [3]string{consumer, queue, m.publisher}
	if last := h.order[key]; m.number <= last {
		h.violation("queue %s delivered message %s to %s after number %d of the same publisher", queue, id, consumer, last)
	}
	h.order[key] = m.number
}

// Acked notes that an acknowledgement or rejection is known to be applied.
func (h *History) Acked(queue, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ack([2]string{queue, id})
}

func (h *History) ack(of [2]string) {
	if of[0] == "" {
		return
	}
	if q := h.copy(of[0], of[1]); q.acked.IsZero() {
		q.acked = time.Now()
		h.counts.Acked++
	}
}

func (h *History) copy(queue, id string) *queued {
	key := [2]string{queue, id}
	q := h.copies[key]
	if q == nil {
		q = &queued{}
		h.copies[key] = q
	}
	return q
}

// Finish checks the whole, after all queues were drained. enqueued is how many messages each queue ever took.
func (h *History) Finish(enqueued map[string]uint64) (violations []string, counts Counts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delivered := map[string]uint64{}
	for key, q := range h.copies {
		if q.deliveries > 0 {
			delivered[key[0]]++
		}
	}
	for _, m := range slices.SortedFunc(maps.Values(h.messages), func(a, b *message) int {
		return cmp.Or(cmp.Compare(a.publisher, b.publisher), cmp.Compare(a.number, b.number))
	}) {
		for _, queue := range m.queues {
			if q := h.copies[[2]string{queue, m.id}]; m.confirmed && (q == nil || q.deliveries == 0) {
				h.violation("LOST: message %s was confirmed but never delivered from queue %s", m.id, queue)
			}
		}
	}
	for _, queue := range slices.Sorted(maps.Keys(enqueued)) {
		if enqueued[queue] != delivered[queue] {
			h.violation("queue %s took %d messages, but %d different ones were delivered from it", queue, enqueued[queue], delivered[queue])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.groups)) {
		g := h.groups[name]
		var seen, missing []string
		for _, id := range g.ids {
			for _, queue := range h.messages[id].queues {
				if q := h.copies[[2]string{queue, id}]; q != nil && q.deliveries > 0 {
					seen = append(seen, id)
				} else {
					missing = append(missing, id)
				}
			}
		}
		if len(seen) > 0 && len(missing) > 0 {
			h.violation("transaction %s took effect in part: %v were delivered, %v were not", name, seen, missing)
		}
	}
	return h.violations, h.counts
}
