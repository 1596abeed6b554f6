package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// A stream of kind 2 carries one request and its reply, each a length (4 bytes) and msgpack.

type requestOp uint8

const (
	opStatus     requestOp = 1 // how are you?
	opReadIndex  requestOp = 2 // leader: which index must be applied to see all that was acknowledged?
	opLeaderGone requestOp = 3 // is this leader's process gone as you see it? (rule 21)
)

const (
	maxRequest   = 4096            // bytes
	requestLimit = 5 * time.Second // for one request, on the side that serves it
)

type request struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // read by msgpack
	Op       requestOp
	Server   string // opLeaderGone: whom
}

type reply struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack           struct{} `msgpack:",as_array"` //nolint:unused // read by msgpack
	Error              string
	Member             wireMember
	Voter, Leader      bool
	AppliedIndex       uint64
	CommitIndex        uint64
	LastIndex          uint64
	LastTerm           uint64
	Term               uint64
	StateHash          uint64
	HashIndex          uint64
	Quarantined        string
	KnowsLeader, Heard bool   // a leader is known; one was heard of since the start
	Index              uint64 // opReadIndex
	Gone               bool   // opLeaderGone
	Resources          wireResources
}

type wireResources struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack              struct{} `msgpack:",as_array"` //nolint:unused // read by msgpack
	Alarm, Short          string
	DiskFree, MinDiskFree uint64
}

func writeMessage(w io.Writer, v any) error {
	b, err := msgpack.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxRequest {
		return fmt.Errorf("message of %d bytes exceeds %d", len(b), maxRequest)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func readMessage(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxRequest {
		return fmt.Errorf("message of %d bytes exceeds %d", n, maxRequest)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return err
	}
	return msgpack.Unmarshal(b, v)
}

// ask sends one request to a server.
func (n *Node) ask(ctx context.Context, server string, q request) (r reply, err error) {
	c, err := n.streams.open(ctx, server, streamRequest)
	if err != nil {
		return r, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	_ = c.SetDeadline(time.Now().Add(requestLimit))
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err := writeMessage(c, &q); err != nil {
		return r, err
	}
	if err := readMessage(c, &r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

// answer serves one request.
func (n *Node) answer(from Member, c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(requestLimit))
	var q request
	if err := readMessage(c, &q); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, requestLimit)
	defer cancel()
	var r reply
	switch q.Op {
	case opStatus:
		r = n.report()
	case opReadIndex:
		index, err := n.readIndex(ctx)
		if r.Index = index; err != nil {
			r.Error = err.Error()
		}
	case opLeaderGone:
		r.Gone = !n.streams.connected(q.Server) && n.dialRefused(ctx, q.Server)
		if r.Gone {
			n.letGoFirst(from.Server)
		}
	default:
		r.Error = fmt.Sprintf("request %d is not known here", q.Op)
	}
	_ = writeMessage(c, &r)
}
