package simulation

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHistoryFinds tells the history a small story for each kind of violation, and one that is fine.
func TestHistoryFinds(t *testing.T) {
	publish := func(h *History, numbers ...int) {
		for _, n := range numbers {
			h.Confirmed(h.Publishing("p", n, "q"), 1)
		}
	}
	var opened time.Time
	for _, c := range []struct {
		name, finds string
		took        uint64
		story       func(h *History)
	}{
		{"nothing", "", 2, func(h *History) {
			publish(h, 1, 2)
			h.Delivered("c", "q", "p.1", false, opened)
			h.Delivered("c", "q", "p.1", true, opened)
			h.Acked("q", "p.1")
			h.Delivered("d", "q", "p.1", true, opened) // on its way when it was acknowledged
			h.Delivered("c", "q", "p.2", false, opened)
		}},
		{"a loss", "LOST: message p.2", 1, func(h *History) {
			publish(h, 1, 2)
			h.Delivered("c", "q", "p.1", false, opened)
		}},
		{"a ghost", "nobody published", 0, func(h *History) { h.Delivered("c", "q", "p.7", false, opened) }},
		{"another queue's", "nobody published there", 0, func(h *History) {
			h.Publishing("p", 1, "q")
			h.Delivered("c", "r", "p.1", false, opened)
		}},
		{"a second first delivery", "as if for the first time", 1, func(h *History) {
			publish(h, 1)
			h.Delivered("c", "q", "p.1", false, opened)
			h.Delivered("d", "q", "p.1", false, opened)
		}},
		{"a first delivery after a marked one", "as if for the first time", 1, func(h *History) {
			publish(h, 1)
			h.Delivered("c", "q", "p.1", true, opened)
			h.Delivered("d", "q", "p.1", false, opened)
		}},
		{"disorder", "after number 2", 2, func(h *History) {
			publish(h, 1, 2)
			h.Delivered("c", "q", "p.2", false, opened)
			h.Delivered("c", "q", "p.1", false, opened)
		}},
		{"an ack forgotten", "whose acknowledgement was known", 1, func(h *History) {
			publish(h, 1)
			h.Delivered("c", "q", "p.1", false, opened)
			h.Acked("q", "p.1")
			h.Delivered("c", "q", "p.1", true, time.Now().Add(time.Millisecond))
		}},
		{"a message twice in its queue", "took 2 messages, but 1", 2, func(h *History) {
			publish(h, 1)
			h.Delivered("c", "q", "p.1", false, opened)
		}},
		{"half a transaction", "in part", 1, func(h *History) {
			h.Transaction("t", [2]string{}, h.Publishing("t", 1, "q"), h.Publishing("t", 2, "q"))
			h.Delivered("c", "q", "t.1", false, opened)
		}},
		{"an ack of a transaction that did not happen", "whose acknowledgement was known", 1, func(h *History) {
			publish(h, 1)
			h.Delivered("c", "q", "p.1", false, opened)
			h.Transaction("t", [2]string{"q", "p.1"}, h.Publishing("t", 1, "r"))
			h.Delivered("c", "r", "t.1", false, opened)
			h.Delivered("c", "q", "p.1", true, time.Now().Add(time.Millisecond))
		}},
		{"a wrong count", "routed to 2", 1, func(h *History) {
			h.Confirmed(h.Publishing("p", 1, "q"), 2)
			h.Delivered("c", "q", "p.1", false, opened)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := NewHistory()
				c.story(h)
				violations, _ := h.Finish(map[string]uint64{"q": c.took})
				got := strings.Join(violations, "\n")
				if c.finds == "" && got != "" || !strings.Contains(got, c.finds) {
					t.Errorf("found %q, want %q", got, c.finds)
				}
			})
		})
	}
}
