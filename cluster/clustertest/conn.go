package clustertest

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// window is how many bytes a direction holds before a writer waits.
const window = 1 << 20

// pipe is one direction of a connection.
type pipe struct {
	n        *Network
	from, to string

	// Guarded by n.mu.
	chunks  []chunk
	size    int
	err     error         // why nothing more is written; set once
	closed  error         // why nothing more is read; set once
	changed chan struct{} // closed and replaced when something happened
}

type chunk struct {
	at time.Time // when it arrives
	b  []byte
}

func (n *Network) newPipe(from, to string) *pipe {
	p := &pipe{n: n, from: from, to: to, changed: make(chan struct{})}
	n.pipes[p] = struct{}{}
	return p
}

// wake is called with n.mu held.
func (p *pipe) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// endWriter says that nothing more will be written, endReader that nothing more will be read. Both are called with
// n.mu held. An abrupt end loses what is on its way; io.EOF comes after it. Neither crosses a cut before it is healed.
func (p *pipe) endWriter(err error) {
	if p.err == nil {
		if p.err = err; err != io.EOF {
			p.chunks, p.size = nil, 0
		}
		p.wake()
	}
}

func (p *pipe) endReader(err error) {
	if p.closed == nil {
		p.closed = err
		delete(p.n.pipes, p)
		p.wake()
	}
}

// conn is one end of a connection. Its deadlines are as net.Conn's.
type conn struct {
	in, out       *pipe
	local, remote net.Addr
	read, write   deadline
	once          sync.Once
}

func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p := c.in
	for {
		expired, late := c.read.get()
		if expired {
			return 0, os.ErrDeadlineExceeded
		}
		p.n.mu.Lock()
		changed := p.changed
		var arrives time.Duration
		cut := p.n.isCut(p.from, p.to)
		switch {
		case p.closed != nil || p.err != nil && len(p.chunks) == 0 && !cut:
			err := p.closed
			if err == nil {
				err = p.err
			}
			p.n.mu.Unlock()
			return 0, err
		case len(p.chunks) > 0 && !cut:
			if arrives = time.Until(p.chunks[0].at); arrives <= 0 {
				n := copy(b, p.chunks[0].b)
				if p.chunks[0].b = p.chunks[0].b[n:]; len(p.chunks[0].b) == 0 {
					p.chunks = p.chunks[1:]
				}
				p.size -= n
				p.wake()
				p.n.mu.Unlock()
				return n, nil
			}
		}
		p.n.mu.Unlock()
		var after <-chan time.Time
		if arrives > 0 {
			after = time.After(arrives)
		}
		select {
		case <-changed:
		case <-after:
		case <-late:
		}
	}
}

func (c *conn) Write(b []byte) (int, error) {
	p := c.out
	for {
		expired, late := c.write.get()
		if expired {
			return 0, os.ErrDeadlineExceeded
		}
		p.n.mu.Lock()
		if p.err != nil || p.closed != nil && !p.n.isCut(p.from, p.to) {
			p.n.mu.Unlock()
			return 0, io.ErrClosedPipe
		}
		if p.size < window {
			p.chunks = append(p.chunks, chunk{time.Now().Add(p.n.delay), append([]byte(nil), b...)})
			p.size += len(b)
			p.wake()
			p.n.mu.Unlock()
			return len(b), nil
		}
		changed := p.changed
		p.n.mu.Unlock()
		select {
		case <-changed:
		case <-late:
		}
	}
}

func (c *conn) Close() error {
	c.once.Do(func() {
		n := c.in.n
		n.mu.Lock()
		defer n.mu.Unlock()
		c.out.endWriter(io.EOF)
		c.in.endReader(net.ErrClosed)
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error  { c.read.set(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.write.set(t); return nil }

// deadline wakes whoever waits when it passes or is set anew.
type deadline struct {
	mu    sync.Mutex // guards everything below
	at    time.Time
	timer *time.Timer
	wake  chan struct{}
}

// get reports whether it has passed; the channel closes when it may have.
func (d *deadline) get() (bool, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wake == nil {
		d.wake = make(chan struct{})
	}
	return !d.at.IsZero() && !time.Now().Before(d.at), d.wake
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.signal()
	if left := time.Until(t); !t.IsZero() && left > 0 {
		d.timer = time.AfterFunc(left, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.signal()
		})
	}
}

func (d *deadline) signal() {
	if d.wake != nil {
		close(d.wake)
		d.wake = nil
	}
}
