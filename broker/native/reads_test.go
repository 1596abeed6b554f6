package native

import (
	"errors"
	"net"
	"os"
	"testing"
)

// pair returns the two ends of a connection over loopback.
func pair(t *testing.T) (client, server net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

// TestReadsAfterAStandstill: a timeout that passed while the node itself stood still, as in a paused virtual machine, does
// not outrank what the client sent in that time.
func TestReadsAfterAStandstill(t *testing.T) {
	client, server := pair(t)
	r := &deadlineReader{conn: server, timeout: 1} // one nanosecond: it is over before each read
	if _, err := client.Write([]byte("beat")); err != nil {
		t.Fatal(err)
	}
	var b [8]byte
	if n, err := r.Read(b[:]); err != nil || string(b[:n]) != "beat" {
		t.Fatalf("read %q, %v", b[:n], err)
	}
	if n, err := r.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %q, %v from a client that says nothing", b[:n], err)
	}
}
