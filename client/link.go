package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warrenmq/warren/protocol/native"
)

// link is one network connection. It has one reader and one writer goroutine, which end when dead is closed; the
// supervisor (Connection.run) waits for them. out is guarded by the Connection's mu.
type link struct {
	conn     net.Conn
	frames   *native.Reader
	addr     string
	epoch    uint64 // which link of the Connection, from 1
	welcome  native.HelloOK
	blocked  string       // what the broker said of flow before it opened the control channel
	lastRead atomic.Int64 // Unix ns
	lastSent atomic.Int64

	out     []byte        // frames to be written
	wake    chan struct{} // capacity 1: there is something to write
	uploads map[uint64][]byte
	held    int // bytes in uploads; reader only

	once  sync.Once
	dead  chan struct{} // closed by fail
	cause error         // set before dead is closed
	wg    sync.WaitGroup
}

// Bounds of bodies that arrive in parts on a link.
const (
	maxBody        = 512 << 20
	maxUploadBytes = 1 << 30
)

func (l *link) fail(err error) {
	l.once.Do(func() {
		l.cause = err
		close(l.dead)
		l.conn.Close()
	})
}

func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// follower is why an address is not the place to be: what its node said about the cluster.
type follower struct {
	leader  string
	members []string
}

func (f *follower) Error() string {
	if f.leader == "" {
		return "no leader"
	}
	return "the leader is " + f.leader
}

// open dials an address, says hello and asks by opening the control channel whether the node leads. It returns a
// *follower error when it does not, and an *Error when it refuses hello.
func open(ctx context.Context, o *options, addr string) (made *link, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.connectTimeout)
	defer cancel()
	conn, err := o.dial(ctx, addr)
	if err != nil {
		var failed *net.OpError // which says the address once more
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			made = nil
			conn.Close()
		}
	}()
	l := &link{conn: conn, frames: native.NewReader(conn, native.DefaultFrameMax), addr: addr,
		wake: make(chan struct{}, 1), dead: make(chan struct{}), uploads: map[uint64][]byte{}}
	hello := native.Append(nil, &native.Hello{Head: native.Head{RID: 2}, Version: native.ProtocolVersion, ClientName: o.name,
		Vhost: o.vhost, Mechanism: o.mechanism, Response: o.response, FrameMax: native.DefaultFrameMax,
		Heartbeat: uint32((o.heartbeat + time.Second - 1) / time.Second)})
	hello = native.Append(hello, &native.ChannelOpen{Head: native.Head{RID: 4, Channel: controlChannel}})
	if _, err := conn.Write(hello); err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	for {
		t, payload, err := l.frames.Next()
		if err != nil {
			return nil, fmt.Errorf("%s: waiting for hello: %w", addr, err)
		}
		switch t {
		case native.TypeHello.Response():
			if err := native.Decode(payload, &l.welcome); err != nil {
				return nil, fmt.Errorf("%s: %w", addr, err)
			}
			if code := l.welcome.Code; retryable(code) {
				return nil, &follower{l.welcome.Leader, l.welcome.Members}
			}
			if err := refusal(&l.welcome.Reply); err != nil {
				return nil, err
			}
		case native.TypeFlow:
			var f native.Flow
			if err := native.Decode(payload, &f); err != nil {
				return nil, fmt.Errorf("%s: %w", addr, err)
			}
			l.blocked = f.Reason
		case native.TypeRedirect:
			var r native.Redirect
			if err := native.Decode(payload, &r); err != nil {
				return nil, fmt.Errorf("%s: %w", addr, err)
			}
			return nil, &follower{r.Leader, append(r.Members, l.welcome.Members...)}
		case native.TypeChannelOpen.Response():
			var r native.Reply
			if err := native.DecodeReply(t, payload, &r); err != nil {
				return nil, fmt.Errorf("%s: %w", addr, err)
			}
			if retryable(r.Code) {
				return nil, &follower{l.welcome.Leader, l.welcome.Members}
			}
			if err := refusal(&r); err != nil {
				return nil, err
			}
			now := time.Now().UnixNano()
			l.lastRead.Store(now)
			l.lastSent.Store(now)
			return l, nil
		}
	}
}

// write sends what gathers in out, everything that is there with one call, and the acks that wait.
func (c *Connection) write(l *link) {
	defer l.wg.Done()
	var spare []byte
	for {
		select {
		case <-l.wake:
		case <-l.dead:
			return
		}
		for {
			c.mu.Lock()
			acks := c.takeAcks(l, spare[:0])
			out := l.out
			if len(acks) > 0 {
				out = append(acks, out...)
				l.out = l.out[:0]
			} else {
				l.out = spare[:0]
			}
			c.mu.Unlock()
			if len(out) == 0 {
				spare = out
				break
			}
			if _, err := l.conn.Write(out); err != nil {
				l.fail(fmt.Errorf("write to %s: %w", l.addr, err))
				return
			}
			l.lastSent.Store(time.Now().UnixNano())
			if spare = out; cap(spare) > 4<<20 {
				spare = nil
			}
		}
	}
}

// read hands each frame that arrives to its place.
func (c *Connection) read(l *link) {
	defer l.wg.Done()
	for {
		t, payload, err := l.frames.Next()
		if err == nil {
			if !l.frames.Ready() {
				l.lastRead.Store(time.Now().UnixNano())
			}
			err = c.receive(l, t, payload)
		}
		if err != nil {
			l.fail(fmt.Errorf("read from %s: %w", l.addr, err))
			return
		}
	}
}

func (l *link) addPart(p *native.BodyPart) error {
	body := l.uploads[p.Upload]
	if p.Offset != uint64(len(body)) || p.Total > maxBody || p.Offset+uint64(len(p.Bytes)) > p.Total ||
		l.held+len(p.Bytes) > maxUploadBytes {
		return fmt.Errorf("%w: body part of upload %d at %d of %d", ErrProtocol, p.Upload, p.Offset, p.Total)
	}
	l.uploads[p.Upload] = append(body, p.Bytes...)
	l.held += len(p.Bytes)
	return nil
}

// body returns a delivery's body, put together when it came in parts.
func (l *link) body(d *native.Delivery) []byte {
	if d.Upload == 0 {
		return d.Body
	}
	return l.takeParts(d.Upload)
}

func (l *link) takeParts(upload uint64) []byte {
	body := l.uploads[upload]
	delete(l.uploads, upload)
	l.held -= len(body)
	return body
}
