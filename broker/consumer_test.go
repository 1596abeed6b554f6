package broker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/warrenmq/warren/fsm"
)

// Field tables of queue arguments.
var (
	singleActive = []byte("\x18x-single-active-consumert\x01")
	quorum       = []byte("\x0cx-queue-typeS\x00\x00\x00\x06quorum")
)

// TestRow171And172PrioritiesAndTurns: the highest priority is served first until its prefetch is full, equals strictly in turn.
func TestRow171And172PrioritiesAndTurns(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	w.declare(Queue{Name: "q"})
	ch := w.channel(1)
	ch.Qos(2, false)
	w.consume(ch, Consumer{Queue: "q", Tag: "high", Priority: 10})
	ch.Qos(0, false)
	for _, tag := range []string{"a", "b", "c"} {
		w.consume(ch, Consumer{Queue: "q", Tag: tag})
	}
	w.consume(ch, Consumer{Queue: "q", Tag: "low", Priority: -1})
	var highest uint64
	for i, tag := range []string{"high", "high", "a", "b", "c", "a", "b", "c"} {
		w.publish("q", fmt.Sprint(i))
		if d := w.next(tag, fmt.Sprint(i)); tag == "high" {
			highest = d.Tag
		}
	}
	check(t, ch.SettleTag(fsm.Acknowledge, highest, false))
	w.publish("q", "again")
	w.next("high", "again")
}

// TestRow175To177And180Prefetch: each consumer's own window and the channel's, which its queues share.
func TestRow175To177And180Prefetch(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q"})
	w.declare(Queue{Name: "other"})
	ch.Qos(3, false)
	ch.Qos(4, true)
	w.consume(ch, Consumer{Queue: "q", Tag: "a"})
	w.consume(ch, Consumer{Queue: "other", Tag: "b"})
	w.publish("q", "1", "2", "3", "4")
	first := w.next("a", "1")
	w.next("a", "2")
	w.next("a", "3")
	w.blocked("q")
	w.publish("other", "5", "6", "7")
	w.next("b", "5")
	w.blocked("other")
	w.nothing()
	check(t, ch.SettleTag(fsm.Acknowledge, first.Tag, false)) // one slot, for either of the two
	got := w.next("", "")
	w.blocked("q")
	w.blocked("other")
	w.nothing()
	ch.Qos(0, true)
	// Each has what its own window still allows: "b" the last two, or one and "a" one, in whatever order.
	tags := []string{w.next("", "").ConsumerTag, w.next("", "").ConsumerTag}
	slices.Sort(tags)
	want := []string{"a", "b"}
	if got.ConsumerTag == "a" {
		want[0] = "b"
	}
	if !slices.Equal(tags, want) {
		t.Fatalf("the rest went to %v, want %v", tags, want)
	}
	w.nothing()
	w.blocked("q")
	w.blocked("other")
}

// TestTheChannelsCreditReachesItsOtherQueues: an acknowledgement of one queue lets another one deliver.
func TestTheChannelsCreditReachesItsOtherQueues(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q"})
	w.declare(Queue{Name: "other"})
	ch.Qos(1, true)
	w.consume(ch, Consumer{Queue: "q", Tag: "a"})
	w.consume(ch, Consumer{Queue: "other", Tag: "b"})
	w.publish("q", "1")
	for range 100 {
		d := w.next("a", "1")
		w.publish("other", "2")
		w.blocked("other")
		w.nothing()
		check(t, ch.SettleTag(fsm.Acknowledge, d.Tag, false))
		d = w.next("b", "2")
		w.publish("q", "1")
		w.blocked("q")
		check(t, ch.SettleTag(fsm.Acknowledge, d.Tag, false))
	}
}

func TestRow162To165WhoMayConsume(t *testing.T) {
	a := startAlone(t, Config{})
	w, other := a.connect(), a.connect()
	w.declare(Queue{Name: "q"})
	w.declare(Queue{Name: "mine", Exclusive: true})
	w.declare(Queue{Name: "single", Arguments: singleActive})
	ch, second := w.channel(1), w.channel(2)
	consume := func(c Consumer) error { return ch.Consume(within(t), c, func(string) {}) }
	w.consume(ch, Consumer{Queue: "q", Tag: "t"})
	refused(t, consume(Consumer{Queue: "missing", Tag: "t"}), fsm.NotAllowed, "NOT_ALLOWED - attempt to reuse consumer tag 't'")
	w.consume(second, Consumer{Queue: "q", Tag: "t"})
	refused(t, consume(Consumer{Queue: "missing"}), fsm.NotFound, "NOT_FOUND - no queue 'missing' in vhost '/'")
	refused(t, other.channel(1).Consume(within(t), Consumer{Queue: "mine", Exclusive: true}, func(string) {}), fsm.ResourceLocked, "does not match that of the original declaration")
	refused(t, consume(Consumer{Queue: "q", Exclusive: true}), fsm.AccessRefused, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use")
	refused(t, consume(Consumer{Queue: "single", Exclusive: true}), fsm.AccessRefused, "queue 'single' in vhost '/' in exclusive use")
	w.consume(ch, Consumer{Queue: "mine", Exclusive: true})
	refused(t, consume(Consumer{Queue: "mine"}), fsm.AccessRefused, "queue 'mine' in vhost '/' in exclusive use")
}

// TestRow196And197SingleActiveConsumer: one receives; the next takes over on cancel at once, a newcomer of a higher
// priority when the active one holds nothing.
func TestRow196And197SingleActiveConsumer(t *testing.T) {
	a := startAlone(t, Config{})
	w, other := a.connect(), a.connect()
	w.declare(Queue{Name: "q", Arguments: singleActive})
	ch := w.channel(1)
	w.consume(ch, Consumer{Queue: "q", Tag: "first"})
	w.consume(ch, Consumer{Queue: "q", Tag: "second"})
	w.publish("q", "1", "2")
	one, two := w.next("first", "1"), w.next("first", "2")
	w.consume(ch, Consumer{Queue: "q", Tag: "high", Priority: 5})
	w.publish("q", "3")
	w.blocked("q") // the active one is to give way and gets nothing new
	check(t, ch.SettleTag(fsm.Acknowledge, one.Tag, false))
	w.blocked("q")
	w.nothing()
	if rows := w.session.Consumers("first"); len(rows) != 1 || !rows[0].Active {
		t.Fatalf("%+v", rows)
	}
	check(t, ch.SettleTag(fsm.Acknowledge, two.Tag, false))
	w.next("high", "3")
	check(t, ch.Cancel(within(t), "high"))
	w.publish("q", "4")
	w.next("first", "4") // at once, although the cancelled one still holds a message
	otherChannel := other.channel(1)
	other.consume(otherChannel, Consumer{Queue: "q", Tag: "last"})
	ch.Close()
	check(t, w.session.Settled(within(t)))
	other.next("last", "3")
	other.next("last", "4")
}

func TestRow198GetOnASingleActiveQueue(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q", Durable: true, Arguments: append(append([]byte{}, quorum...), singleActive...)})
	w.declare(Queue{Name: "k", Arguments: singleActive})
	_, err := ch.Get(within(t), "q", true, func(*Delivery, uint64) {})
	refused(t, err, fsm.ResourceLocked, "basic.get operations are not supported by quorum queues with single active consumer")
	_, err = ch.Get(within(t), "k", true, func(*Delivery, uint64) {})
	check(t, err)
}

// TestRow106AutoDeleteQueueIsGoneWhenTheAnswerComes: after cancel and after close nobody finds it any more.
func TestRow106AutoDeleteQueueIsGoneWhenTheAnswerComes(t *testing.T) {
	a := startAlone(t, Config{})
	watcher := a.connect()
	gone := func(name string) {
		t.Helper()
		_, err := watcher.session.QueueExists(within(t), name)
		refused(t, err, fsm.NotFound, "no queue '"+name+"' in vhost '/'")
	}
	for i := range 20 {
		w := a.connect()
		ch := w.channel(1)
		for _, name := range []string{"cancelled", "closed", "ended"} {
			w.declare(Queue{Name: name, AutoDelete: true})
		}
		w.consume(ch, Consumer{Queue: "cancelled", Tag: "t"})
		w.consume(ch, Consumer{Queue: "closed"})
		check(t, ch.Cancel(within(t), "t"))
		gone("cancelled")
		if i%2 == 0 {
			w.consume(w.channel(2), Consumer{Queue: "ended"})
		}
		ch.Close()
		check(t, w.session.Settled(within(t)))
		gone("closed")
		if _, err := watcher.session.QueueExists(within(t), "ended"); err != nil {
			t.Fatal(err)
		}
		w.session.Close()
		check(t, w.session.Settled(within(t)))
		if i%2 == 0 {
			gone("ended")
		}
	}
}

func TestRow168ATagIsFreeAfterItsQueueWent(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q"})
	w.consume(ch, Consumer{Queue: "q", Tag: "t"})
	_, err := w.session.DeleteQueue(within(t), "q", false, false)
	check(t, err)
	select {
	case c := <-w.cancelled:
		if c.ConsumerTag != "t" || c.Channel != 1 || c.Cause != QueueGone {
			t.Fatalf("%+v", c)
		}
	case <-within(t).Done():
		t.Fatal("the consumer was not told")
	}
	w.declare(Queue{Name: "q"})
	w.consume(ch, Consumer{Queue: "q", Tag: "t"})
}

// BenchmarkPickAmongBlocked finds the one of 5,000 consumers that can take a message.
func BenchmarkPickAmongBlocked(b *testing.B) {
	const consumers = 5000
	l := &leadership{broker: New(Config{}), term: 1}
	v := newView(l, fsm.QueueInfo{Number: 1})
	s := &Session{leadership: l, receiver: &wire{}}
	var all []*consumer
	for range consumers {
		c := &consumer{channel: &Channel{session: s}, view: v, prefetch: 1, unacked: 1}
		v.turns.add(c)
		all = append(all, c)
	}
	for i := 0; b.Loop(); i++ {
		c := all[i*2503%consumers]
		c.channel.mu.Lock()
		c.release()
		c.channel.mu.Unlock()
		if v.turns.pick() != c {
			b.Fatal("another one was picked")
		}
		v.turns.served(c)
		c.use()
	}
}

// TestWhoWaitsComesFirst: what was published before a request goes to the consumers that were there, not to the request.
func TestWhoWaitsComesFirst(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q"})
	for i := range 200 {
		w.consume(ch, Consumer{Queue: "q", Tag: "a", AutoAck: true})
		for _, body := range []string{"1", "2", "3"} {
			check(t, w.session.Publish(t.Context(), []Publication{{RoutingKey: "q", Body: []byte(body)}}, CompleterFunc(func(fsm.Result) {})))
		}
		switch i % 3 {
		case 0:
			check(t, ch.Cancel(t.Context(), "a"))
		case 1:
			found, err := ch.Get(t.Context(), "q", true, func(*Delivery, uint64) {})
			check(t, err)
			if found {
				t.Fatal("a get took what a consumer waited for")
			}
		case 2:
			if n, err := w.session.Purge(t.Context(), "q"); err != nil || n != 0 {
				t.Fatal("a purge took what a consumer waited for", n, err)
			}
		}
		w.next("a", "1")
		w.next("a", "2")
		w.next("a", "3")
		check(t, ch.Cancel(t.Context(), "a"))
	}
}

// TestTheChannelsLimitHoldsAcrossQueues: queues that deliver at the same moment do not exceed it, and a consumer that
// does not acknowledge waits for it as well.
func TestTheChannelsLimitHoldsAcrossQueues(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	ch := w.channel(1)
	ch.Qos(1, true)
	var all []Publication
	for i := range 8 {
		q := string(rune('a' + i))
		w.declare(Queue{Name: q})
		w.consume(ch, Consumer{Queue: q, Tag: q})
		for range 25 {
			all = append(all, Publication{RoutingKey: q, Body: []byte("m")})
		}
	}
	w.declare(Queue{Name: "unacknowledged"})
	w.consume(ch, Consumer{Queue: "unacknowledged", Tag: "n", AutoAck: true})
	check(t, w.session.Publish(t.Context(), all, CompleterFunc(func(fsm.Result) {})))
	d := w.next("", "")
	w.publish("unacknowledged", "n")
	for range len(all) - 1 {
		select {
		case early := <-w.delivered:
			t.Fatalf("%s got a message while %s held the only one that the channel may have", early.ConsumerTag, d.ConsumerTag)
		default:
		}
		check(t, ch.SettleTag(fsm.Acknowledge, d.Tag, false))
		if d = w.next("", ""); d.ConsumerTag == "n" {
			d = w.next("", "")
		}
	}
}
