package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/warrenmq/warren/cluster"
)

// A relayed connection begins with the client's address and the one it connected to, each as a length and text; the
// leader answers with one byte, once it can serve.
const maxAddress = 64 // bytes of "[address%zone]:port"

const (
	statusServing = 0
	statusNot     = 1 // it does not lead, or not in time
)

var errNotServing = errors.New("the leader does not serve yet")

// peer is a connection whose addresses are those of the client's own, and whose first bytes may have been read already.
type peer struct {
	net.Conn
	first         []byte // read before; only Read uses it
	remote, local net.Addr
}

func (p *peer) Read(b []byte) (int, error) {
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// RemoteAddr returns the client's address.
func (p *peer) RemoteAddr() net.Addr { return p.remote }

// LocalAddr returns the address that the client connected to, maybe another node's.
func (p *peer) LocalAddr() net.Addr { return p.local }

// CloseWrite ends one direction, where the connection can do that.
func (p *peer) CloseWrite() error { return closeWrite(p.Conn) }

// closeWrite says that nothing more comes. A connection that cannot is closed.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

type textAddr string

func (textAddr) Network() string  { return "relay" }
func (a textAddr) String() string { return string(a) }

// introduce tells the leader who the client is and waits until it serves.
func introduce(upstream, client net.Conn) error {
	var b []byte
	for _, a := range []net.Addr{client.RemoteAddr(), client.LocalAddr()} {
		text := a.String()
		if len(text) > maxAddress {
			return fmt.Errorf("the address %.80q is longer than %d bytes", text, maxAddress)
		}
		b = append(b, byte(len(text)))
		b = append(b, text...)
	}
	if _, err := upstream.Write(b); err != nil {
		return err
	}
	var status [1]byte
	if _, err := io.ReadFull(upstream, status[:]); err != nil {
		return err
	}
	if status[0] != statusServing {
		return errNotServing
	}
	return nil
}

// readPeer reads what introduce wrote.
func readPeer(c net.Conn) (*peer, error) {
	p := &peer{Conn: c}
	for _, a := range []*net.Addr{&p.remote, &p.local} {
		var b [maxAddress + 1]byte
		if _, err := io.ReadFull(c, b[:1]); err != nil {
			return nil, err
		}
		n := int(b[0])
		if n > maxAddress {
			return nil, fmt.Errorf("an address of %d bytes exceeds %d", n, maxAddress)
		}
		if _, err := io.ReadFull(c, b[1:1+n]); err != nil {
			return nil, err
		}
		text := string(b[1 : 1+n])
		if address, err := netip.ParseAddrPort(text); err == nil {
			*a = net.TCPAddrFromAddrPort(address)
		} else { // a network of its own
			*a = textAddr(text)
		}
	}
	return p, nil
}

// arrive serves a connection that another node relays to this one.
func (s *Server) arrive(_ cluster.Member, c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(dialLimit))
	p, err := readPeer(c)
	if err != nil {
		s.log.Debug("a relayed connection did not say whose it is", "error", err)
		return
	}
	status := byte(statusServing)
	if !s.serves() {
		status = statusNot
	}
	if _, err := c.Write([]byte{status}); err != nil || status != statusServing {
		return
	}
	_ = c.SetDeadline(time.Time{})
	s.front.ServeConn(p)
}

// serves waits a moment while this node takes over, and reports whether it serves.
func (s *Server) serves() bool {
	if s.context.Err() != nil {
		return false
	}
	limit := time.NewTimer(dialLimit / 2)
	defer limit.Stop()
	for {
		changed := s.broker.Changed()
		if s.broker.Where().Serving {
			return true
		}
		if !s.node.Leadership().Local {
			return false
		}
		select {
		case <-changed:
		case <-limit.C:
			return false
		case <-s.context.Done():
			return false
		}
	}
}
