package cluster

import (
	"context"
	"net"
	"sync"
	"time"
)

// progressLimit is how long a connection between nodes may stand still in the middle of a transfer (rule 20).
const progressLimit = 5 * time.Second

// tcp is the Network of a real node.
type tcp struct{}

func (tcp) Listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

func (tcp) Dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}
	return d.DialContext(ctx, "tcp", address)
}

// progressConn breaks a transfer that stands still. An incoming connection may be silent between requests; once a
// request has begun, which it has until something is written in reply, each read must bring a byte in time. Writes
// must always take bytes in time. Deadlines that raft sets for whole calls stay in force where they are shorter.
type progressConn struct {
	net.Conn
	incoming bool
	onClose  func()
	once     sync.Once

	begun    bool       // owned by the reader and writer, which are one goroutine on an incoming connection
	broken   error      // of a read that failed; owned likewise. raft drains an install after an error, which must not wait again
	mu       sync.Mutex // guards deadline
	deadline time.Time  // of the whole call, zero for none
}

func (c *progressConn) Read(b []byte) (int, error) {
	if c.broken != nil {
		return 0, c.broken
	}
	if c.incoming {
		limit := time.Time{}
		if c.begun {
			limit = time.Now().Add(progressLimit)
		}
		if err := c.Conn.SetReadDeadline(limit); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(b)
	if c.incoming && n > 0 {
		c.begun = true
	}
	if c.incoming {
		c.broken = err
	}
	return n, err
}

// writeStep is the most that one limit must suffice for.
const writeStep = 64 << 10

func (c *progressConn) Write(b []byte) (total int, err error) {
	if c.incoming {
		c.begun = false
	}
	for len(b) > 0 {
		limit := time.Now().Add(progressLimit)
		c.mu.Lock()
		if !c.deadline.IsZero() && c.deadline.Before(limit) {
			limit = c.deadline
		}
		c.mu.Unlock()
		if err := c.Conn.SetWriteDeadline(limit); err != nil {
			return total, err
		}
		n, err := c.Conn.Write(b[:min(len(b), writeStep)])
		total += n
		if err != nil {
			return total, err
		}
		b = b[n:]
	}
	return total, nil
}

func (c *progressConn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *progressConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	return nil
}

func (c *progressConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		if c.onClose != nil {
			c.onClose()
		}
	})
	return err
}
