package broker

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
)

// counted is a Pending that says how often it was asked, and adds what it has.
type counted struct {
	text  string
	asked int
}

func (c *counted) AppendPending(b []byte) []byte {
	c.asked++
	return append(b, c.text...)
}

func read(t *testing.T, from io.Reader, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(from, b); err != nil || string(b) != want {
		t.Fatalf("read %q, %v; want %q", b, err, want)
	}
}

// TestPendingIsAskedWhenTheWriterTakesTheBuffer, once, behind what was appended.
func TestPendingIsAskedWhenTheWriterTakesTheBuffer(t *testing.T) {
	client, server := net.Pipe()
	o := NewOutgoing(server, nil)
	var work sync.WaitGroup
	p, q := &counted{text: "p"}, &counted{text: "q"}
	o.Pend(p)
	o.Append(func(b []byte) []byte { return append(b, "a"...) })
	o.Pend(q)
	if p.asked != 0 {
		t.Fatal("asked before anything is written")
	}
	work.Go(func() { _ = o.Run() })
	read(t, client, "apq")
	o.Pend(p) // an idle writer is woken
	read(t, client, "p")
	if p.asked != 2 || q.asked != 1 {
		t.Fatalf("asked %d and %d times", p.asked, q.asked)
	}
	o.Close()
	o.Pend(p)
	work.Wait()
	if p.asked != 2 {
		t.Fatal("asked after Close")
	}
}

// TestAppendBehindComesAfterWhatIsPending, as the close of a channel after its confirms.
func TestAppendBehindComesAfterWhatIsPending(t *testing.T) {
	client, server := net.Pipe()
	o := NewOutgoing(server, nil)
	p := &counted{text: "confirms "}
	o.Append(func(b []byte) []byte { return append(b, "return "...) })
	o.Pend(p)
	o.AppendBehind(func(b []byte) []byte { return append(b, "close"...) })
	var work sync.WaitGroup
	work.Go(func() { _ = o.Run() })
	o.Close()
	read(t, client, "return confirms close")
	work.Wait()
	if p.asked != 1 {
		t.Fatalf("asked %d times", p.asked)
	}
}

// TestPendingComesTogether: while a write is under way what is pending gathers, and costs no allocation.
func TestPendingComesTogether(t *testing.T) {
	o := NewOutgoing(nil, nil)
	p := &counted{}
	turn := func() {
		for range 10 {
			o.Pend(p)
		}
		o.mu.Lock()
		o.collect()
		o.buf = o.buf[:0]
		o.mu.Unlock()
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestNothingIsAddedAfterAFailedWrite(t *testing.T) {
	client, server := net.Pipe()
	_ = client.Close()
	o := NewOutgoing(server, nil)
	p := &counted{text: "x"}
	o.Pend(p)
	if err := o.Run(); err == nil {
		t.Fatal("a write to a closed connection succeeded")
	}
	o.Pend(p)
	o.AppendBehind(func(b []byte) []byte { panic(fmt.Sprint("appended to ", b)) })
	if p.asked != 1 || !o.Full() {
		t.Fatalf("asked %d times, full %v", p.asked, o.Full())
	}
}
