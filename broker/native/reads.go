package native

import (
	"errors"
	"net"
	"os"
	"time"
)

// afterStandstill is how long a read goes on once its time is over: what came in while the node itself stood still has
// not been read, though it was in time.
const afterStandstill = 100 * time.Millisecond

// deadlineReader gives each read of the socket the same time.
type deadlineReader struct {
	conn    net.Conn
	timeout time.Duration // 0: none
}

func (r *deadlineReader) Read(b []byte) (int, error) {
	if r.timeout == 0 {
		return r.conn.Read(b)
	}
	if err := r.conn.SetReadDeadline(time.Now().Add(r.timeout)); err != nil {
		return 0, err
	}
	n, err := r.conn.Read(b)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if err := r.conn.SetReadDeadline(time.Now().Add(afterStandstill)); err != nil {
		return 0, err
	}
	return r.conn.Read(b)
}
