package broker

import (
	"testing"

	"github.com/warrenmq/warren/fsm"
)

func ended(t *testing.T, s *Session, reason string) {
	t.Helper()
	select {
	case <-s.Ended():
	case <-within(t).Done():
		t.Fatal("the session goes on")
	}
	if s.Reason() != reason {
		t.Fatalf("it ended because of %q, want %q", s.Reason(), reason)
	}
}

// TestRow34OperatorsCloseConnections by name and by label, and list them.
func TestRow34OperatorsCloseConnections(t *testing.T) {
	a := startAlone(t, Config{})
	one, two := a.connect(), a.connect()
	two.session.Client.Peer = "127.0.0.1:2"
	ch := one.channel(7)
	ch.Qos(5, false)
	ch.SetMode(Mode{Confirm: true})
	one.declare(Queue{Name: "q"})
	one.consume(ch, Consumer{Queue: "q", Tag: "t", Priority: 3, Arguments: []byte("\x01xt\x01")})
	connections, err := a.broker.Connections()
	check(t, err)
	if len(connections) != 2 || connections[0].State != StateRunning || connections[0].Channels != 1 || connections[0].Client.Label() != "127.0.0.1:1 -> 127.0.0.1:5672" {
		t.Fatalf("%+v", connections)
	}
	channels, err := a.broker.Channels()
	check(t, err)
	if len(channels) != 1 || channels[0].Number != 7 || channels[0].Consumers != 1 || channels[0].Prefetch != 5 || !channels[0].Confirm || channels[0].Session != one.session.Name() {
		t.Fatalf("%+v", channels)
	}
	consumers, err := a.broker.Consumers()
	check(t, err)
	if len(consumers) != 1 || !consumers[0].Active || consumers[0].Priority != 3 || len(consumers[0].Arguments) != 4 || consumers[0].Vhost != "/" {
		t.Fatalf("%+v", consumers)
	}
	refused(t, a.broker.CloseSession("9-9", "x"), fsm.NotFound, "no connection '9-9'")
	check(t, a.broker.CloseSession(one.session.Name(), "go away"))
	ended(t, one.session, "go away")
	if connections, _ = a.broker.Connections(); connections[0].State != StateClosing {
		t.Fatalf("%+v", connections)
	}
	check(t, a.broker.CloseSession("127.0.0.1:2 -> 127.0.0.1:5672", "you too"))
	ended(t, two.session, "you too")
	own := a.connect()
	own.session.Close()
	ended(t, own.session, "")
}

// TestRow35DeletingAVhostEndsItsSessions and no others.
func TestRow35DeletingAVhostEndsItsSessions(t *testing.T) {
	a := startAlone(t, Config{})
	w := a.connect()
	check(t, w.session.PutVhost(within(t), "v"))
	inside, err := a.broker.Open(Client{}, "v", w)
	check(t, err)
	defer inside.Close()
	check(t, w.session.DeleteVhost(within(t), "v"))
	ended(t, inside, "vhost 'v' is deleted")
	select {
	case <-w.session.Ended():
		t.Fatal("a session of another vhost ended")
	default:
	}
	_, err = a.broker.Open(Client{}, "v", w)
	refused(t, err, fsm.NotAllowed, "NOT_ALLOWED - vhost v not found")
}

func TestFindExchangeSeesWhatWasDeclaredAndDeleted(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	for range 3 {
		if _, ok := w.session.FindExchange("e"); ok {
			t.Fatal("an exchange is there that is not")
		}
		check(t, w.session.DeclareExchange(within(t), Exchange{Name: "e", Kind: "fanout", Internal: true}))
		for range 2 {
			if e, ok := w.session.FindExchange("e"); !ok || !e.Internal {
				t.Fatalf("%+v", e)
			}
		}
		check(t, w.session.DeleteExchange(within(t), "e", false))
	}
	if e, ok := w.session.FindExchange(""); !ok || e.Type != "direct" {
		t.Fatalf("%+v", e)
	}
	if n := testing.AllocsPerRun(100, func() { w.session.FindExchange("amq.topic") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestRow95NamesThatBeginWithAmq are not declared again, and found passively.
func TestRow95NamesThatBeginWithAmq(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	made := w.declare(Queue{Exclusive: true})
	for _, name := range []string{made.Name, "amq.mine"} {
		_, err := w.session.DeclareQueue(within(t), Queue{Name: name, Exclusive: true})
		refused(t, err, fsm.AccessRefused, "queue name '"+name+"' contains reserved prefix 'amq.*'")
	}
	state, err := w.session.QueueExists(within(t), made.Name)
	if err != nil || state.Name != made.Name {
		t.Fatalf("%+v %v", state, err)
	}
}

// TestRow102LockedQueues refuse everything another connection asks of them.
func TestRow102LockedQueues(t *testing.T) {
	a := startAlone(t, Config{})
	owner, other := a.connect(), a.connect()
	owner.declare(Queue{Name: "mine", Exclusive: true})
	s, ctx, ch := other.session, within(t), other.channel(1)
	_, declared := s.DeclareQueue(ctx, Queue{Name: "mine", Exclusive: true})
	_, open := owner.session.DeclareQueue(ctx, Queue{Name: "mine"})
	_, passive := s.QueueExists(ctx, "mine")
	_, got := ch.Get(ctx, "mine", true, nil)
	_, purged := s.Purge(ctx, "mine")
	_, deleted := s.DeleteQueue(ctx, "mine", true, true)
	for what, err := range map[string]error{"declare": declared, "redeclare": open, "passive": passive, "get": got, "purge": purged, "delete": deleted,
		"consume": ch.Consume(ctx, Consumer{Queue: "mine"}, nil), "bind": s.Bind(ctx, Binding{Destination: "mine", Source: "amq.direct"})} {
		t.Run(what, func(t *testing.T) {
			refused(t, err, fsm.ResourceLocked, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.")
		})
	}
	check(t, s.Unbind(ctx, Binding{Destination: "mine", Source: "amq.direct"}))
	other.publish("mine", "row 103")
}

// TestRow112IfUnusedBeforeIfEmpty.
func TestRow112IfUnusedBeforeIfEmpty(t *testing.T) {
	w := startAlone(t, Config{}).connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q"})
	w.consume(ch, Consumer{Queue: "q", Tag: "t"})
	w.publish("q", "held")
	w.next("t", "held")
	check(t, ch.Cancel(within(t), "t"))
	ch.Qos(1, false)
	w.consume(ch, Consumer{Queue: "q", Tag: "t"})
	w.publish("q", "1", "2")
	_, err := w.session.DeleteQueue(within(t), "q", true, true)
	refused(t, err, fsm.PreconditionFailed, "queue 'q' in vhost '/' in use")
	check(t, ch.Cancel(within(t), "t"))
	_, err = w.session.DeleteQueue(within(t), "q", true, true)
	refused(t, err, fsm.PreconditionFailed, "queue 'q' in vhost '/' not empty")
	if n, err := w.session.DeleteQueue(within(t), "q", true, false); err != nil || n != 1 {
		t.Fatalf("%d ready, %v", n, err)
	}
	check(t, ch.SettleTag(fsm.Acknowledge, 0, true)) // row 114
	if n, err := w.session.DeleteQueue(within(t), "q", true, true); err != nil || n != 0 {
		t.Fatalf("%d ready, %v", n, err)
	}
}
