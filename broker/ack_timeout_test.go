package broker

import (
	"testing"
	"time"
)

// TestRow193AcknowledgementTimeout: what is held too long returns, its consumer ends, and nobody else's does.
func TestRow193AcknowledgementTimeout(t *testing.T) {
	a := startAlone(t, Config{ConsumerTimeout: time.Hour})
	w, other := a.connect(), a.connect()
	ch := w.channel(1)
	w.declare(Queue{Name: "q"})
	w.declare(Queue{Name: "slow"})
	w.consume(ch, Consumer{Queue: "slow", Tag: "patient"})
	w.publish("slow", "s")
	w.next("patient", "s")
	w.consume(ch, Consumer{Queue: "q", Tag: "hasty", Timeout: 100 * time.Millisecond})
	w.publish("q", "1", "2")
	w.next("hasty", "1")
	w.next("hasty", "2")
	other.consume(other.channel(1), Consumer{Queue: "q", Tag: "o"})
	select {
	case c := <-w.cancelled:
		if c != (Cancellation{Channel: 1, ConsumerTag: "hasty", Cause: AckTimeout, Timeout: 100 * time.Millisecond}) {
			t.Fatalf("%+v", c)
		}
	case <-within(t).Done():
		t.Fatal("nobody was told")
	}
	for _, body := range []string{"1", "2"} {
		if d := other.next("o", body); !d.Redelivered {
			t.Fatalf("%+v", d)
		}
	}
	if rows := w.session.Consumers("patient"); len(rows) != 1 || rows[0].Unacked != 1 || rows[0].Timeout != time.Hour {
		t.Fatalf("%+v", rows)
	}
	if rows := w.session.Consumers("hasty"); len(rows) != 0 || len(w.cancelled) != 0 {
		t.Fatalf("%+v", rows)
	}
}

func TestAQueuesTimeoutGoesBeforeTheBrokers(t *testing.T) {
	w := startAlone(t, Config{ConsumerTimeout: time.Hour}).connect()
	ch := w.channel(1)
	arguments := append(append([]byte{}, quorum...), "\x12x-consumer-timeoutI\x00\x00\x03\xe8"...)
	w.declare(Queue{Name: "q", Durable: true, Arguments: arguments})
	w.consume(ch, Consumer{Queue: "q", Tag: "queues"})
	w.consume(ch, Consumer{Queue: "q", Tag: "own", Timeout: time.Minute})
	rows := w.session.Consumers("q")
	if len(rows) != 2 || rows[0].Timeout != time.Minute || rows[1].Timeout != time.Second {
		t.Fatalf("%+v", rows)
	}
}
