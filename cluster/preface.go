package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/vmihailenco/msgpack/v5"
)

// Every connection to the Raft port begins with a preface, which says who dials whom, and an answer:
//
//	preface = "WRRN" version kind length(2) hello      answer = "WRRN" version status length(2) welcome
//
// hello and welcome are msgpack arrays.
const (
	prefaceMagic   = "WRRN"
	prefaceVersion = 1
	prefaceHead    = 8
	maxPreface     = 4096 // bytes of hello or welcome
)

// Stream kinds of the node's own.
const (
	streamRaft    StreamKind = 1 // hashicorp/raft's transport
	streamRequest StreamKind = 2 // one request and its reply, see request.go
	firstAppKind  StreamKind = 16
)

const (
	statusOK      = 0
	statusRefused = 1
)

type hello struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // read by msgpack
	From     wireMember
	To       string // the server id that is meant
	Boot     [16]byte
}

type welcome struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack struct{} `msgpack:",as_array"` //nolint:unused // read by msgpack
	From     wireMember
	Boot     [16]byte
	Reason   string // why refused
	Known    uint64 // the highest boot counter known of the one who dialled (rule 18)
}

// wireMember is a Member as gossip and prefaces carry it: an array, for memberlist allows 512 bytes.
type wireMember struct {
	//lint:ignore U1000 msgpack reads its tag
	_msgpack            struct{} `msgpack:",as_array"` //nolint:unused // read by msgpack
	NodeID, Incarnation string
	ClusterID           string
	Raft, Gossip        string
	Native, AMQP, HTTP  string
	Version             string
	Commands            uint16
	Empty               bool
	Boots               uint64
}

func toWire(m Member) wireMember {
	w := wireMember{NodeID: m.NodeID, ClusterID: m.ClusterID, Raft: m.Raft, Gossip: m.Gossip, Native: m.Clients.Native,
		AMQP: m.Clients.AMQP, HTTP: m.Clients.HTTP, Version: m.Version, Commands: m.Commands, Empty: m.Empty, Boots: m.Boots}
	if len(m.Server) > len(m.NodeID) {
		w.Incarnation = m.Server[len(m.NodeID)+1:]
	}
	return w
}

func (w wireMember) member() Member {
	return Member{NodeID: w.NodeID, Server: w.NodeID + "@" + w.Incarnation, ClusterID: w.ClusterID, Raft: w.Raft, Gossip: w.Gossip,
		Clients: Addresses{w.Native, w.AMQP, w.HTTP}, Version: w.Version, Commands: w.Commands, Empty: w.Empty, Boots: w.Boots}
}

// EncodeMember and DecodeMember are the gossip form of a member.
func encodeMember(m Member) ([]byte, error) { return msgpack.Marshal(toWire(m)) }

func decodeMember(b []byte) (Member, error) {
	var w wireMember
	if err := msgpack.Unmarshal(b, &w); err != nil {
		return Member{}, fmt.Errorf("a member's gossip: %w", err)
	}
	return w.member(), nil
}

var errPreface = errors.New("not a Warren node's connection")

// writePreface writes a preface (second is the kind) or an answer (second is the status).
func writePreface(w io.Writer, second byte, body any) error {
	b, err := msgpack.Marshal(body)
	if err != nil {
		return err
	}
	if len(b) > maxPreface {
		return fmt.Errorf("preface of %d bytes exceeds %d", len(b), maxPreface)
	}
	out := make([]byte, 0, prefaceHead+len(b))
	out = append(out, prefaceMagic...)
	out = append(out, prefaceVersion, second)
	out = binary.BigEndian.AppendUint16(out, uint16(len(b)))
	_, err = w.Write(append(out, b...))
	return err
}

// readPreface reads no byte beyond the preface, and allocates only once the head has been found right.
func readPreface(r io.Reader, body any) (second byte, err error) {
	var head [prefaceHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, err
	}
	if string(head[:4]) != prefaceMagic {
		return 0, errPreface
	}
	if head[4] != prefaceVersion {
		return 0, fmt.Errorf("%w: preface version %d, this node speaks %d", errPreface, head[4], prefaceVersion)
	}
	n := binary.BigEndian.Uint16(head[6:])
	if n > maxPreface {
		return 0, fmt.Errorf("%w: preface of %d bytes exceeds %d", errPreface, n, maxPreface)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, err
	}
	if err := msgpack.Unmarshal(b, body); err != nil {
		return 0, fmt.Errorf("%w: %v", errPreface, err)
	}
	return head[5], nil
}
