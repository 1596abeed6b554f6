package httpapi

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds on what clients can hold. Requests carry no bodies that matter, so all are small.
const (
	MaxConnections    = 256 // connections at once; more are closed when they arrive
	maxHeaderBytes    = 16 << 10
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 20 * time.Second // above barrierTimeout and statusTimeout together
	idleTimeout       = 30 * time.Second
)

// NewServer returns a server whose clients cannot hold it up: every phase of a request has a time limit and headers
// have a size limit. Limit its listener with Limit.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          log.New(io.Discard, "", 0), // what clients do wrong is not worth a line of our log
	}
}

// Limit returns a listener that has at most n connections open and closes those beyond as they arrive.
func Limit(l net.Listener, n int) net.Listener { return &limited{Listener: l, most: int64(n)} }

type limited struct {
	net.Listener
	most int64
	open atomic.Int64
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &counted{Conn: c, gone: func() { l.open.Add(-1) }}, nil
		}
		l.open.Add(-1)
		_ = c.Close()
	}
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn
	once sync.Once
	gone func()
}

func (c *counted) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.gone)
	return err
}
