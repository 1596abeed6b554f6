package client

import (
	"net"
	"sync"
	"testing"

	"github.com/warrenmq/warren/protocol/native"
)

// fake is a cluster of listeners with one state: enough of a broker for the client to meet every failure.
type fake struct {
	t         *testing.T
	listeners []net.Listener
	wg        sync.WaitGroup

	mu     sync.Mutex // guards all below
	leader int        // -1: none
	conns  map[net.Conn]int
	seen   map[string]uint32 // producer and sequence → routed
	queues map[string][]native.Delivery
	order  []uint64 // sequences in the order in which they took effect
	// loseAfter ends the connection after so many publishes have taken effect, their answers lost; 0 never.
	loseAfter int
	// refuse answers so many publishes with refuseCode.
	refuse     int
	refuseCode uint16
	txs        int
	loseTx     bool // end the connection instead of answering a tx
	// consumeWaits holds the answer to a consume back until a delivery of the connection is acknowledged.
	consumeWaits bool
	// afterLoss runs, with mu held, when loseAfter strikes.
	afterLoss func()
}

func startFake(t *testing.T, n int) *fake {
	f := &fake{t: t, conns: map[net.Conn]int{}, seen: map[string]uint32{}, queues: map[string][]native.Delivery{}}
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		f.listeners = append(f.listeners, l)
		f.wg.Add(1)
		go func() {
			defer f.wg.Done()
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				f.mu.Lock()
				f.conns[conn] = i
				f.mu.Unlock()
				f.wg.Add(1)
				go f.serve(i, conn)
			}
		}()
	}
	t.Cleanup(f.stop)
	return f
}

func (f *fake) stop() {
	for _, l := range f.listeners {
		l.Close()
	}
	f.dropAll()
	f.wg.Wait()
}

func (f *fake) dropAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
}

// lead makes another node the leader and ends the connections to the old one.
func (f *fake) lead(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leader = n
	for c, node := range f.conns {
		if node != n {
			c.Close()
		}
	}
}

func (f *fake) addrs() (out []string) {
	for _, l := range f.listeners {
		out = append(out, l.Addr().String())
	}
	return out
}

func (f *fake) serve(node int, conn net.Conn) {
	defer f.wg.Done()
	defer conn.Close()
	defer func() { f.mu.Lock(); delete(f.conns, conn); f.mu.Unlock() }()
	r := native.NewReader(conn, native.DefaultFrameMax)
	var out []byte
	consumers := map[string]native.Consume{}
	unacked := map[uint64]native.Delivery{}
	uploads := map[uint64][]byte{}
	var tag uint64
	var heldBack []native.Frame
	refusing := false // once begun, for the rest of the connection, as when a leadership ends
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, d := range unacked {
			d.Redelivered = true
			f.queues[d.Queue] = append([]native.Delivery{d}, f.queues[d.Queue]...)
		}
	}()
	for {
		t, payload, err := r.Next()
		if err != nil {
			return
		}
		head, _ := native.PeekHead(payload)
		reply := native.Reply{Head: head, Of: t}
		f.mu.Lock()
		leading := f.leader == node
		switch {
		case t == native.TypeHello:
			ok := native.HelloOK{Reply: reply, NodeID: "n", ClusterID: "c", Members: f.addrs(), FrameMax: native.DefaultFrameMax, Heartbeat: 1}
			if f.leader >= 0 {
				ok.Leader = f.addrs()[f.leader]
			}
			out = native.Append(out, &ok)
			if !leading {
				out = native.Append(out, &native.Redirect{Leader: ok.Leader, Members: ok.Members})
			}
		case t == native.TypeHeartbeat:
		case !leading:
			reply.Code = native.NotLeader
			out = native.AppendReply(out, &reply)
		case t == native.TypePublish:
			var p native.Publish
			if err := native.DecodePublish(payload, &p); err != nil {
				f.t.Error(err)
			}
			if p.Upload != 0 {
				p.Body = uploads[p.Upload]
			}
			ok := native.PublishOK{Reply: reply}
			if f.refuse > 0 || refusing {
				refusing = true
				f.refuse--
				ok.Code = f.refuseCode
				out = native.AppendPublishOK(out, &ok)
				break
			}
			key := string(p.Producer) + string(rune(p.Sequence))
			if routed, dup := f.seen[key]; dup && p.Producer != nil {
				ok.Duplicate, ok.Routed = true, routed
			} else {
				if _, there := f.queues[p.RoutingKey]; there {
					ok.Routed = 1
					f.queues[p.RoutingKey] = append(f.queues[p.RoutingKey], native.Delivery{Exchange: p.Exchange,
						RoutingKey: p.RoutingKey, Queue: p.RoutingKey, Properties: p.Properties, Body: p.Body})
				}
				f.seen[key] = ok.Routed
				f.order = append(f.order, p.Sequence)
			}
			if f.loseAfter > 0 {
				if f.loseAfter--; f.loseAfter == 0 {
					if f.afterLoss != nil {
						f.afterLoss()
					}
					f.mu.Unlock()
					return
				}
			}
			out = native.AppendPublishOK(out, &ok)
		case t == native.TypeTx:
			f.txs++
			if f.loseTx {
				f.mu.Unlock()
				return
			}
			out = native.Append(out, &native.TxOK{Reply: reply, Routed: []uint32{1}})
		case t == native.TypeBodyPart:
			var p native.BodyPart
			native.Decode(payload, &p)
			uploads[p.Upload] = append(uploads[p.Upload], p.Bytes...)
			out = native.AppendReply(out, &reply)
		case t == native.TypeQueueDeclare:
			var q native.QueueDeclare
			native.Decode(payload, &q)
			if _, there := f.queues[q.Name]; !there && q.Passive {
				reply.Code, reply.Message = native.NotFound, "NOT_FOUND - no queue"
			} else if !there {
				f.queues[q.Name] = []native.Delivery{}
			}
			out = native.Append(out, &native.QueueDeclareOK{Reply: reply, Name: q.Name, Messages: uint64(len(f.queues[q.Name]))})
		case t == native.TypeConsume:
			var q native.Consume
			native.Decode(payload, &q)
			consumers[q.ConsumerTag] = q
			ok := &native.ConsumeOK{Reply: reply, ConsumerTag: q.ConsumerTag}
			if f.consumeWaits {
				heldBack = append(heldBack, ok)
				break
			}
			out = native.Append(out, ok)
		case t == native.TypeAck:
			var a native.Ack
			native.DecodeAck(payload, &a)
			for _, g := range a.Ranges {
				for n := g.From; n <= g.To; n++ {
					delete(unacked, n)
				}
			}
			for _, ok := range heldBack {
				out = native.Append(out, ok)
			}
			heldBack = nil
			out = native.AppendReply(out, &reply)
		case t == native.TypeGet:
			var g native.Get
			native.Decode(payload, &g)
			ok := native.GetOK{Reply: reply}
			if q := f.queues[g.Queue]; len(q) > 0 {
				ok.Found, ok.Delivery = true, q[0]
				f.queues[g.Queue] = q[1:]
				if !g.AutoAck {
					tag++
					ok.Delivery.DeliveryTag = tag
					unacked[tag] = q[0]
				}
			}
			out = native.Append(out, &ok)
		default:
			out = native.AppendReply(out, &reply)
		}
		for _, q := range consumers {
			for len(f.queues[q.Queue]) > 0 && len(unacked) < 100 {
				tag++
				d := f.queues[q.Queue][0]
				f.queues[q.Queue] = f.queues[q.Queue][1:]
				d.ConsumerTag, d.DeliveryTag = q.ConsumerTag, tag
				unacked[tag] = d
				out = native.AppendDeliver(out, &native.Deliver{Head: native.Head{Channel: q.Channel}, Delivery: d})
			}
		}
		f.mu.Unlock()
		if !r.Ready() {
			if _, err := conn.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
	}
}
