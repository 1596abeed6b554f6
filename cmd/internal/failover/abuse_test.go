package failover

import (
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// TestNonsenseOnEveryPort: random bytes, oversized lengths and half-open connections on every port of every node
// disturb no client and cost no memory that stays.
func TestNonsenseOnEveryPort(t *testing.T) {
	lasting := 5 * time.Second
	if *long {
		lasting = time.Minute
	}
	c := startCluster(t, 3)
	c.fanout()
	counter := c.startCounter("live")
	load := c.startLoad("all", "", 1, 200, 2)
	load.AwaitConfirms(200, 10*time.Second)
	began := time.Now()
	before := c.memory()
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	var attack sync.WaitGroup
	for _, n := range c.nodes {
		for _, address := range []string{n.addr.native, n.addr.raft, n.addr.gossip, n.addr.http} {
			attack.Go(func() { repeat(ctx, func() { nonsense(ctx, address) }) })
			attack.Go(func() { repeat(ctx, func() { silence(ctx, address) }) })
		}
		attack.Go(func() { datagrams(ctx, n.addr.gossip) })
	}
	attack.Wait()
	load.AwaitConfirms(200, 10*time.Second)
	gap := load.Gap(began)
	published := load.Stop()
	counter.Expect(published, 20*time.Second)
	counter.Stop()
	c.ExpectKept("kept", published)
	c.Agree()
	after := c.memory()
	for i, n := range c.nodes {
		t.Logf("%s: resident %d MiB before, %d MiB after", n.id, before[i]>>20, after[i]>>20)
		if after[i] > before[i]+128<<20 {
			t.Errorf("%s grew from %d to %d MiB", n.id, before[i]>>20, after[i]>>20)
		}
	}
	t.Logf("longest gap between confirms %v", gap.Round(time.Millisecond))
}

func (c *cluster) memory() (rss []int64) {
	for _, n := range c.nodes {
		rss = append(rss, n.RSS())
	}
	return rss
}

func repeat(ctx context.Context, f func()) {
	for ctx.Err() == nil {
		f()
	}
}

// beginnings are what a well-meant connection would start with, so that the nonsense behind them gets further in.
var beginnings = [][]byte{
	nil,
	[]byte("GET / HTTP/1.1\r\nX: "),
	[]byte("AMQP\x00\x00\x09\x01"),
	{0, 0, 0, 0x12},             // native: hello
	{0, 0, 0, 9, 0, 0xff, 0xff}, // native: a publish before hello
	{0, 0, 0, 0x12, 0xff, 0xff, 0xff, 0xff},
	{0, 0, 0, 0x12, 0x7f, 0xff, 0xff, 0xff},
	{0, 0, 0, 0x12, 0, 0, 0xff, 0xff, 0x9f, 0xdb, 0xff, 0xff, 0xff, 0xff}, // a string of 4 GiB
	{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	[]byte("WARREN"),
	[]byte("warren"),
	{0, 0, 0, 1}, {1}, {2}, {3}, {4}, {9}, {244}, // message types of Raft and gossip
	{0xdd, 0xff, 0xff, 0xff, 0xff}, {0xdf, 0xff, 0xff, 0xff, 0xff}, {0xc6, 0xff, 0xff, 0xff, 0xff}, // msgpack: 4 Gi elements
}

// nonsense writes something wrong and up to 64 KiB of random bytes behind it, and reads what comes back.
func nonsense(ctx context.Context, address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		pause(ctx)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(200 * time.Millisecond))
	_, _ = conn.Write(append([]byte(nil), beginnings[rand.IntN(len(beginnings))]...))
	_, _ = conn.Write(random(rand.IntN(64 << 10)))
	_, _ = io.CopyN(io.Discard, conn, 1<<20)
}

// silence leaves connections half open: a few bytes, then nothing.
func silence(ctx context.Context, address string) {
	var held []net.Conn
	for range 20 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break
		}
		_, _ = conn.Write(beginnings[rand.IntN(len(beginnings))])
		held = append(held, conn)
	}
	pause(ctx)
	for _, conn := range held {
		conn.Close()
	}
}

// datagrams sends random packets of every kind that gossip knows.
func datagrams(ctx context.Context, address string) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return
	}
	defer conn.Close()
	for ctx.Err() == nil {
		for range 20 {
			packet := random(1 + rand.IntN(1400))
			packet[0] = byte(rand.IntN(16))
			_, _ = conn.Write(packet)
		}
		pause(ctx)
	}
}

// pause waits for a tenth of a second or the end.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

func random(n int) []byte {
	b := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], rand.Uint64())
	}
	return b[:n]
}
