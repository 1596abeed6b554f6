package broker

import (
	"context"
	"testing"

	"github.com/warrenmq/warren/fsm"
)

// TestLanesTakeTurns cuts an entry while one session floods: another session's publish is in it.
func TestLanesTakeTurns(t *testing.T) {
	p := newProposer(&leadership{broker: New(Config{}), term: 1}, 0, &counters{})
	flood, calm := p.newLane(), p.newLane()
	publish := func(body int) submission {
		s := submission{publish: fsm.Publish{Vhost: 1, RoutingKey: "q", Body: make([]byte, body)}}
		s.size = fsm.Size(&s.publish)
		return s
	}
	for range 4000 {
		if err := flood.submit(context.Background(), false, publish(1000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := calm.submit(context.Background(), false, publish(10)); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &flight{}
	cut := p.cut(nil, f)
	bytes, found := 0, false
	for i := range cut {
		bytes += cut[i].size
		found = found || f.waiters[i].lane == calm
	}
	if !found {
		t.Fatalf("%d commands of a flood went into the entry and the other session's one did not", len(cut))
	}
	if bytes > maxEntryBytes {
		t.Fatalf("the entry has %d bytes", bytes)
	}
}

// TestALaneIsBounded fills a lane until it has no room.
func TestALaneIsBounded(t *testing.T) {
	p := newProposer(&leadership{broker: New(Config{}), term: 1}, 0, &counters{})
	l := p.newLane()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := submission{publish: fsm.Publish{Body: make([]byte, 1<<20)}, size: 1 << 20}
	for range 4 {
		if err := l.submit(ctx, true, s); err != nil {
			t.Fatalf("a lane with room refused: %v", err)
		}
	}
	if err := l.submit(ctx, true, s); err == nil {
		t.Fatal("a full lane took another command")
	}
}
