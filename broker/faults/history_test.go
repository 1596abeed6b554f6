package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/warrenmq/warren/broker/server"
	"github.com/warrenmq/warren/client"
)

// model is what a node must have: the bodies of each queue in order, and the names of its exchanges' bindings.
type model struct {
	queues   map[string][]string
	bindings []string
}

func (m model) clone() model {
	c := model{maps.Clone(m.queues), slices.Clone(m.bindings)}
	for q := range c.queues {
		c.queues[q] = slices.Clone(c.queues[q])
	}
	return c
}

func (m model) String() string {
	var b strings.Builder
	for _, q := range slices.Sorted(maps.Keys(m.queues)) {
		fmt.Fprintf(&b, "%s:", q)
		for _, body := range m.queues[q] {
			fmt.Fprintf(&b, " %.6s", body)
		}
		b.WriteString("; ")
	}
	fmt.Fprintf(&b, "%v", slices.Sorted(slices.Values(m.bindings)))
	return b.String()
}

func (m model) equal(other model) bool {
	return maps.EqualFunc(m.queues, other.queues, slices.Equal) &&
		slices.Equal(slices.Sorted(slices.Values(m.bindings)), slices.Sorted(slices.Values(other.bindings)))
}

// actual reads a node's state.
func actual(s *server.Server) (model, error) {
	machine := s.Machine()
	m := model{queues: map[string][]string{}}
	for _, q := range machine.Queues(1) {
		out, _, err := machine.Read(q.Number, 1, 1000, 1<<30, nil)
		if err != nil {
			return m, err
		}
		m.queues[q.Name] = []string{}
		for _, msg := range out {
			m.queues[q.Name] = append(m.queues[q.Name], string(msg.Body))
		}
		if uint64(len(out)) != q.Messages {
			return m, fmt.Errorf("queue %s counts %d messages and has %d", q.Name, q.Messages, len(out))
		}
	}
	for _, b := range machine.Bindings(1) {
		m.bindings = append(m.bindings, b.Source+">"+b.Destination)
	}
	if damaged, missing := machine.Damaged(); missing || len(damaged) > 0 {
		return m, fmt.Errorf("damaged: %v, missing %t", damaged, missing)
	}
	return m, nil
}

// user is a client and the node that it is connected to.
type user struct {
	server *server.Server
	conn   *client.Connection
	ch     *client.Channel
}

// step is a part of the history with one outcome: after it, the node has what model makes of what it had.
type step struct {
	name  string
	do    func(context.Context, *user) error
	model func(*model)
}

func body(id string, size int) []byte {
	return append([]byte(id+"|"), bytes.Repeat([]byte(id[:1]), size)...)
}

func publish(exchange, key, id string, size int, to ...string) step {
	return step{"publish " + id, func(ctx context.Context, u *user) error {
		_, err := u.ch.Publish(ctx, exchange, key, client.Message{Body: body(id, size)})
		return err
	}, func(m *model) {
		for _, q := range to {
			m.queues[q] = append(m.queues[q], string(body(id, size)))
		}
	}}
}

// settle takes the message at the head of a queue and ends it.
func settle(queue, how string, end func(context.Context, *client.Delivery) error) step {
	return step{how + " from " + queue, func(ctx context.Context, u *user) error {
		d, err := u.ch.Get(ctx, queue, false)
		if err != nil {
			return err
		}
		if d == nil {
			return fmt.Errorf("%w: %s is empty", errWrong, queue)
		}
		return end(ctx, d)
	}, func(m *model) { m.queues[queue] = m.queues[queue][1:] }}
}

// errWrong is an answer that no fault excuses.
var errWrong = errors.New("wrong answer")

func ack(queue string) step {
	return settle(queue, "ack", func(ctx context.Context, d *client.Delivery) error { return d.Ack(ctx) })
}

func reject(queue string) step {
	return settle(queue, "reject", func(ctx context.Context, d *client.Delivery) error { return d.Reject(ctx) })
}

func giveBack(queue string) step {
	s := settle(queue, "give back", func(ctx context.Context, d *client.Delivery) error { return d.Nack(ctx, true) })
	s.model = func(*model) {}
	return s
}

func declare(queue string) step {
	return step{"declare " + queue, func(ctx context.Context, u *user) error {
		_, err := u.ch.DeclareQueue(ctx, client.Queue{Name: queue, Durable: true})
		return err
	}, func(m *model) {
		m.queues[queue] = []string{}
	}}
}

// snapshot may fail without harm: the next one has everything.
var snapshot = step{"snapshot", func(ctx context.Context, u *user) error {
	done := make(chan struct{})
	go func() {
		_ = u.server.Node().Snapshot()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}, func(*model) {}}

// restart is done by whoever plays the history.
var restart = step{"restart", nil, func(*model) {}}

// history has declarations, publishes of all sizes, settlements of all kinds, a transaction, purges and deletions, and
// between them snapshots, with collections, and restarts.
func history() (steps []step) {
	add := func(s ...step) { steps = append(steps, s...) }
	add(declare("a"), declare("b"), step{"declare fan", func(ctx context.Context, u *user) error {
		return u.ch.DeclareExchange(ctx, client.Exchange{Name: "fan", Kind: "fanout", Durable: true})
	}, func(*model) {}})
	for _, q := range []string{"a", "b"} {
		add(step{"bind " + q, func(ctx context.Context, u *user) error { return u.ch.Bind(ctx, "fan", q, "", nil) },
			func(m *model) { m.bindings = append(m.bindings, "fan>"+q) }})
	}
	for i := range 10 {
		add(publish("", "a", fmt.Sprintf("a%d", i), 20+i*i*30, "a"))
	}
	add(ack("a"), ack("a"), reject("a"), giveBack("a"), snapshot)
	for i := range 4 {
		add(publish("fan", "", fmt.Sprintf("f%d", i), 700, "a", "b"))
	}
	add(publish("", "b", "large", 20<<10, "b"))
	add(step{"transaction", func(ctx context.Context, u *user) error {
		d, err := u.ch.Get(ctx, "b", false)
		if err != nil {
			return err
		}
		if d == nil {
			return fmt.Errorf("%w: b is empty", errWrong)
		}
		tx := u.ch.Tx()
		tx.Publish("", "a", client.Message{Body: body("t1", 900)})
		tx.Publish("", "b", client.Message{Body: body("t2", 900)})
		tx.Ack(d)
		_, err = tx.Commit(ctx)
		return err
	}, func(m *model) {
		m.queues["a"] = append(m.queues["a"], string(body("t1", 900)))
		m.queues["b"] = append(m.queues["b"][1:], string(body("t2", 900)))
	}})
	add(snapshot, restart)
	for range 6 {
		add(ack("a"))
	}
	add(step{"purge b", func(ctx context.Context, u *user) error { _, err := u.ch.Purge(ctx, "b"); return err },
		func(m *model) { m.queues["b"] = []string{} }})
	add(publish("", "b", "b1", 300, "b"), publish("", "b", "b2", 300, "b"), snapshot, publish("", "a", "g1", 2000, "a"), declare("c"),
		publish("", "c", "c1", 3000, "c"), publish("", "c", "c2", 0, "c"), ack("a"), snapshot, ack("c"), restart)
	add(step{"delete b", func(ctx context.Context, u *user) error {
		_, err := u.ch.DeleteQueue(ctx, "b", false, false)
		return err
	},
		func(m *model) {
			delete(m.queues, "b")
			m.bindings = slices.DeleteFunc(m.bindings, func(b string) bool { return strings.HasSuffix(b, ">b") })
		}})
	add(publish("fan", "", "h1", 1500, "a"), snapshot, ack("a"), ack("a"), publish("", "c", "c3", 5000, "c"), snapshot, restart,
		giveBack("a"), giveBack("c"), ack("c"), publish("", "a", "end", 1, "a"))
	return steps
}
