package cluster

import (
	"bytes"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

func someMember() Member {
	return Member{NodeID: strings.Repeat("n", 63), Server: strings.Repeat("n", 63) + "@0123456789abcdef", ClusterID: "0123456789abcdef",
		Raft: "broker-1.warren.example.internal:5680", Gossip: "broker-1.warren.example.internal:5690", Version: "v1.2.3-rc.4+0123456789",
		Clients:  Addresses{"broker-1.warren.example.internal:5670", "broker-1.warren.example.internal:5672", "broker-1.warren.example.internal:15672"},
		Commands: 7, Boots: 12, Empty: true}
}

func TestAMembersGossipFitsMemberlistsLimit(t *testing.T) {
	m := someMember()
	b, err := encodeMember(m)
	if err != nil || len(b) > maxGossipMeta {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	if back, err := decodeMember(b); err != nil || back != m {
		t.Errorf("%+v, %v", back, err)
	}
}

func FuzzPreface(f *testing.F) {
	var b bytes.Buffer
	if err := writePreface(&b, byte(streamRaft), &hello{From: toWire(someMember()), To: "n1@0"}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("WRRN\x01\x01\x00\x03\x93\xc0\xc0"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var h hello
		if kind, err := readPreface(bytes.NewReader(data), &h); err == nil {
			var again bytes.Buffer
			var h2 hello
			if err := writePreface(&again, kind, &h); err != nil {
				return // longer than allowed once fields are written in full
			}
			if k2, err := readPreface(&again, &h2); err != nil || k2 != kind || h2 != h {
				t.Errorf("%+v came back as %+v, %v", h, h2, err)
			}
		}
		var w welcome
		_, _ = readPreface(bytes.NewReader(data), &w)
		_, _ = decodeMember(data)
		var r reply
		_ = readMessage(bytes.NewReader(data), &r)
		_, _ = decodeIdentity(data)
	})
}

func TestIdentityIsRefusedWhenDamaged(t *testing.T) {
	disk := vfs.NewMem()
	id, isNew, err := openIdentity(disk, "/data", "n1")
	if err != nil || !isNew {
		t.Fatal(isNew, err)
	}
	disk.Crash(nil)
	again, isNew, err := openIdentity(disk, "/data", "")
	if err != nil || isNew || again.server() != id.server() || again.get().Boots != 2 {
		t.Fatalf("after a crash: %+v, %v", again, err)
	}
	if _, _, err := openIdentity(disk, "/data", "n2"); err == nil {
		t.Error("another node's directory was taken")
	}
	if err := vfs.FlipBit(disk, "/data/identity", 8*40); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openIdentity(disk, "/data", "n1"); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	if _, err := disk.OpenFile("/data/identity", os.O_RDONLY, 0); err != nil {
		t.Error("the damaged file is gone:", err)
	}
}

// An install runs on the receiver's main goroutine, which can neither vote nor shut down meanwhile.
func TestRule20ATransferThatStandsStillEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		c := &progressConn{Conn: near, incoming: true}
		defer c.Close()
		go func() {
			<-time.After(time.Hour) // silence between requests is allowed
			_, _ = far.Write([]byte("begin"))
		}()
		b := make([]byte, 8)
		if n, err := c.Read(b); err != nil || n != 5 {
			t.Fatal(n, err)
		}
		began := time.Now()
		if _, err := c.Read(b); err == nil {
			t.Error("it read on")
		}
		if took := time.Since(began); took != progressLimit {
			t.Errorf("a transfer stood still for %v", took)
		}
		out := &progressConn{Conn: near}
		_ = out.SetDeadline(time.Now().Add(time.Hour))
		began = time.Now()
		if _, err := out.Write(b); err == nil || time.Since(began) != progressLimit {
			t.Errorf("a write that nobody takes: %v after %v", err, time.Since(began))
		}
	})
}
