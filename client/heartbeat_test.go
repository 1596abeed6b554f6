package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a server's end of a connection that, once hung, neither reads nor writes.
type stuck struct {
	net.Conn
	hung chan struct{}
}

func (s *stuck) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	select {
	case <-s.hung:
		return 0, errors.New("hung")
	default:
		return n, err
	}
}

// TestHungLeaderIsLeftInTime: a leader that falls silent without closing is given up after two heartbeats.
func TestHungLeaderIsLeftInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := make(chan struct{})
		var ends []net.Conn
		dials := 0
		c, err := Dial(t.Context(), []string{"a"}, WithDialer(func(context.Context, string) (net.Conn, error) {
			near, far := net.Pipe()
			ends = append(ends, far)
			if dials++; dials == 1 {
				go confirmAll(&stuck{far, hung})
			} else {
				go confirmAll(far)
			}
			return near, nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		ch, err := c.Channel(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		close(hung)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := ch.Publish(ctx, "", "q", Message{}); err != nil {
			t.Fatal(err)
		}
		if gap := time.Since(start); gap > 2500*time.Millisecond {
			t.Errorf("took %v", gap)
		}
		c.Close(ctx)
		for _, end := range ends {
			end.Close()
		}
	})
}
