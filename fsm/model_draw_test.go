package fsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// table encodes a field table of strings; a nil value is void.
func table(pairs ...any) (b []byte) {
	for i := 0; i+1 < len(pairs); i += 2 {
		name := pairs[i].(string)
		b = append(append(b, byte(len(name))), name...)
		switch v := pairs[i+1].(type) {
		case nil:
			b = append(b, 'V')
		case string:
			b = append(binary.BigEndian.AppendUint32(append(b, 'S'), uint32(len(v))), v...)
		case int32:
			b = binary.BigEndian.AppendUint32(append(b, 'I'), uint32(v))
		case int64:
			b = binary.BigEndian.AppendUint64(append(b, 'l'), uint64(v))
		case int8:
			b = append(b, 'b', byte(v))
		case bool:
			b = append(b, 't', map[bool]byte{true: 1}[v])
		default:
			panic(fmt.Sprintf("%T", v))
		}
	}
	return b
}

// properties makes property bytes with headers and a delivery mode, either of which may be absent.
func properties(headers []byte, mode byte) []byte {
	b := []byte{0, 0}
	if headers != nil {
		b[0] |= 1 << 5
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(headers))), headers...)
	}
	if mode != 0 {
		b[0] |= 1 << 4
		b = append(b, mode)
	}
	return b
}

// drawer draws commands that mostly mean something to a model.
type drawer struct {
	*rapid.T
	m *model
}

func drawOf[T any](d drawer, what string, list ...T) T {
	return rapid.SampledFrom(list).Draw(d.T, what)
}

func (d drawer) vhost() uint64 {
	list := []uint64{1}
	for _, v := range d.m.vhosts {
		list = append(list, v.number, v.number)
	}
	return drawOf(d, "vhost", append(list, 9999)...)
}

func (d drawer) queue() uint64 {
	list := []uint64{9999}
	for _, q := range d.m.queues {
		list = append(list, q.number, q.number, q.number)
	}
	return drawOf(d, "queue", list...)
}

func (d drawer) queueName() string {
	return drawOf(d, "queue name", "q0", "q1", "q2", "x0", "x1", "a0", "t0", "k0")
}

func (d drawer) exchangeName() string {
	return drawOf(d, "exchange name", "e0", "e1", "e2", "e3", "amq.topic", "amq.fanout", "amq.headers", "amq.direct", "")
}

func (d drawer) key() string {
	return drawOf(d, "key", "a", "a.b", "a.b.c", "#", "*", "a.*", "#.c", "a.#.c", "*.*", "#.#", "", "q0", "q1", "x0", "k0")
}

func (d drawer) session() Session {
	return Session{rapid.Uint64Range(1, d.m.term).Draw(d.T, "session term"), rapid.Uint64Range(1, 3).Draw(d.T, "session")}
}

func (d drawer) runs() (runs []Run) {
	at := uint64(0)
	for range rapid.IntRange(0, 3).Draw(d.T, "runs") {
		at += rapid.Uint64Range(0, 12).Draw(d.T, "gap")
		to := at + rapid.Uint64Range(0, 9).Draw(d.T, "length")
		runs = append(runs, Run{at, to})
		at = to + 1
	}
	return runs
}

func (d drawer) bool(what string) bool { return rapid.Bool().Draw(d.T, what) }

func (d drawer) arguments() []byte {
	return drawOf(d, "arguments", nil, nil, table("x-match", "any", "h", "1", "g", "2"), table("h", "1"), table("g", "2", "x-match", "any", "h", "1"), table("x-match", "all", "h", nil),
		table("x-match", "any-with-x", "x-h", "1"), table("x-match", "all-with-x", "x-h", "1", "h", "1"), table("x-match", "neither"))
}

func (d drawer) binding() *PutBinding {
	b := &PutBinding{Vhost: d.vhost(), Source: d.exchangeName(), Key: d.key(), Arguments: d.arguments(), Session: d.session()}
	if d.bool("to exchange") {
		b.Kind, b.Destination = ToExchange, d.exchangeName()
	} else {
		b.Destination = d.queueName()
	}
	return b
}

func (d drawer) publish() *Publish {
	p := &Publish{Vhost: d.vhost(), Exchange: d.exchangeName(), RoutingKey: d.key(),
		Properties: properties(drawOf(d, "headers", nil, table("h", "1"), table("g", "2", "x-h", "1"), table("h", "3"),
			append(table("h", "1"), drawnCC...), append(bytes.Clone(drawnBCC), table("h", "1")...), append(bytes.Clone(drawnBCC), drawnCC...), table("CC", "text"), drawnDelay, drawnDelay, append(bytes.Clone(drawnBCC), drawnDelay...), table("x-delay", int8(-9))), drawOf[byte](d, "mode", 0, 1, 2, 2)),
		Body: make([]byte, drawOf(d, "size", 0, 1, 20, 300))}
	if priority := drawOf(d, "priority", -1, -1, 0, 3, 4, 9, 200); priority >= 0 {
		p.Properties[0] |= priorityFlag >> 8
		p.Properties = append(p.Properties, byte(priority))
	}
	if len(d.m.queues) > 0 && drawOf(d, "to a queue", 0, 1, 1) == 1 {
		q := rapid.SampledFrom(d.m.queues).Draw(d.T, "reached")
		p.Vhost, p.Exchange, p.RoutingKey = q.vhost.number, "", q.name
	}
	for i := range p.Body {
		p.Body[i] = byte(i) ^ byte(d.m.index)
	}
	if drawOf(d, "producer", 0, 1) == 1 {
		p.Producer = []byte(drawOf(d, "producer", "p0", "p1"))
		p.Sequence = drawOf[uint64](d, "base", 0, 0, 0, 70_000, 140_000) + rapid.Uint64Range(0, 20).Draw(d.T, "sequence")
	}
	if drawOf(d, "upload", 0, 0, 1) == 1 {
		p.Session, p.Upload, p.Body = d.session(), 1, []byte{}
		for key, body := range d.m.uploads {
			if d.m.totals[key] == uint64(len(body)) && len(d.m.uploads) == 1 {
				p.Session, p.Upload = key.session, key.number
			}
		}
	}
	return p
}

func (d drawer) settle() *Settle {
	c := &Settle{Queue: d.queue(), Kind: drawOf(d, "kind", Acknowledge, Reject, Return, Return, Unclaim), Runs: d.runs()}
	if q := d.m.numbered(c.Queue); q != nil && len(q.live) > 0 && d.bool("live") {
		from := q.live[rapid.IntRange(0, min(2, len(q.live)-1)).Draw(d.T, "which")].Sequence
		c.Runs = []Run{{from, from + rapid.Uint64Range(0, 3).Draw(d.T, "length")}}
	}
	return c
}

func (d drawer) part() *BodyPart {
	s := d.session()
	c := &BodyPart{Session: s, Upload: rapid.Uint64Range(0, 2).Draw(d.T, "upload"), Total: 20, Bytes: make([]byte, drawOf(d, "part", 0, 10, 20, 20, 30))}
	if have, ok := d.m.uploads[modelUpload{s, c.Upload}]; ok && drawOf(d, "wrong", 0, 0, 0, 1) == 0 {
		c.Offset = uint64(len(have))
	}
	return c
}

func (d drawer) queueArguments() []byte {
	return drawOf(d, "arguments", nil, nil, d.limits(), d.limits(), d.limits(), drawnOnce, drawnOnce, drawnEver, drawnPlain, table("x-queue-type", "quorum"), table("x-queue-type", "classic"),
		table("x-expires", int32(40)), table("x-queue-type", "quorum", "x-expires", int32(40)), drawnDead, drawnDead, drawnKept, drawnLevels, drawnRetry, drawnRetry)
}

// town draws what most of a history needs to be about something: queues that a fanout reaches.
func (d drawer) town() (commands []Command) {
	for _, q := range []PutQueue{{Name: "q0", Arguments: drawnDead}, {Name: "q1", Arguments: drawnKept}, {Name: "k0", Arguments: d.queueArguments()}, {Name: "q2", Arguments: drawnRetry}, {Name: "x0", Arguments: drawnOnce}} {
		q.Vhost, q.Durable = 1, true
		commands = append(commands, &q, &PutBinding{Vhost: 1, Source: "amq.fanout", Destination: q.Name})
	}
	return commands
}

// command draws any command but Audit. Publishes and settles are the most frequent.
func (d drawer) command() Command {
	switch rapid.IntRange(0, 66).Draw(d.T, "command") {
	case 0:
		return &PutVhost{Name: drawOf(d, "vhost name", "v1", "v2")}
	case 1:
		return &DeleteVhost{Name: drawOf(d, "vhost name", "v1", "v2", "none")}
	case 2, 3, 4:
		c := &PutExchange{Vhost: d.vhost(), Name: d.exchangeName(), Type: drawOf(d, "type", direct, fanout, topic, topic, headers, delays, delays, "odd"),
			Durable: d.bool("durable"), AutoDelete: drawOf(d, "auto-delete", false, false, true), Internal: drawOf(d, "internal", false, false, false, true)}
		if d.bool("alternate") {
			c.Arguments = table("alternate-exchange", drawOf(d, "alternate", "e0", "e1", "amq.fanout", "none"))
		} else {
			c.Arguments = drawOf(d, "window", nil, nil, drawnOnce, drawnEver, drawnPlain)
		}
		if inner := drawOf(d, "inner", "", fanout, fanout, topic, direct, headers, delays, "odd"); inner != "" {
			c.Arguments = slices.Concat(c.Arguments, table("x-delayed-type", inner))
		}
		return c
	case 5:
		return &DeleteExchange{Vhost: d.vhost(), Name: d.exchangeName(), IfUnused: d.bool("if-unused")}
	case 6, 7, 8, 9:
		return &PutQueue{Vhost: d.vhost(), Name: d.queueName(), Durable: drawOf(d, "durable", true, true, false),
			AutoDelete: drawOf(d, "auto-delete", false, false, true), Exclusive: drawOf(d, "exclusive", false, false, true), Owner: d.session(),
			Arguments: d.queueArguments()}
	case 10:
		c := &DeleteQueue{Vhost: d.vhost(), Name: d.queueName(), IfEmpty: d.bool("if-empty"), Held: d.runs(), Session: d.session()}
		if d.bool("numbered") {
			c.Number = d.queue()
		}
		return c
	case 11, 12, 13, 14, 15, 16:
		return d.binding()
	case 17:
		c := DeleteBinding(*d.binding())
		if len(d.m.bindings) > 0 && d.bool("existing") {
			b := rapid.SampledFrom(d.m.bindings).Draw(d.T, "binding")
			c = DeleteBinding{Vhost: b.source.vhost.number, Source: b.source.name, Key: b.key, Arguments: b.arguments, Session: c.Session}
			if b.queue != nil {
				c.Destination = b.queue.name
			} else {
				c.Kind, c.Destination = ToExchange, b.exchange.name
			}
		}
		return &c
	case 18:
		return &Purge{Queue: d.queue(), Held: d.runs()}
	case 19, 20:
		t := &Transaction{}
		for range rapid.IntRange(0, 4).Draw(d.T, "operations") {
			if d.bool("publish") {
				t.Operations = append(t.Operations, d.publish())
			} else {
				t.Operations = append(t.Operations, d.settle())
			}
		}
		return t
	case 21:
		return &ClientGone{Session: d.session()}
	case 22:
		return &LeaderStarted{Leader: drawOf(d, "leader", "n1", "n2"), Cold: d.bool("cold"), Boots: d.boots()}
	case 23:
		return &MemberBoots{Boots: d.boots()}
	case 24:
		return &DropExclusive{Limit: rapid.Uint32Range(0, 3).Draw(d.T, "limit")}
	case 25:
		return &DropTransient{Limit: rapid.Uint32Range(0, 8).Draw(d.T, "limit")}
	case 26, 27:
		return &ConsumerPresence{Queue: d.queue(), Present: d.bool("present")}
	case 28:
		if d.bool("use") {
			return &UseQueue{Queue: d.queue()}
		}
		return &DeleteUnused{Queue: d.queue(), Since: rapid.Int64Range(0, max(d.m.clock, 0)).Draw(d.T, "since")}
	case 29, 30, 31:
		return d.part()
	case 32:
		return &DropUpload{Session: d.session(), Upload: rapid.Uint64Range(0, 2).Draw(d.T, "upload")}
	case 43, 44:
		if d.bool("all") {
			return &Expire{Queue: d.queue(), Runs: []Run{{1, 1000}}}
		}
		return &Expire{Queue: d.queue(), Runs: d.runs()}
	case 45, 46, 47, 48:
		return d.deadLetter()
	case 49, 50:
		return d.move()
	case 66:
		c := &PutLimit{Vhost: d.vhost(), Name: drawOf(d, "limit", "max-queues", "max-queues", "max-channels", "max-connections"), Value: drawOf[int64](d, "value", -1, 3, 6, 9)}
		if d.bool("of a user") {
			c.Vhost, c.User = 0, drawOf(d, "user", "u", "v")
		}
		return c
	case 62, 63, 64, 65:
		return d.policy()
	case 51:
		return &DeleteMessages{Queue: d.queue(), Runs: d.runs()}
	case 52, 53, 54, 55:
		return d.release()
	case 56, 57, 58, 59, 60:
		return d.claim()
	case 61:
		return &Trim{Queue: d.queue(), Limit: 3}
	case 33:
		return &Mark{Queue: d.queue(), Upto: rapid.Uint64Range(0, 60).Draw(d.T, "upto")}
	case 34:
		return &FoundCluster{ID: drawOf(d, "cluster", "c1", "c2")}
	case 35, 36, 37:
		return d.settle()
	}
	return d.publish()
}

var drawnLevels = table("x-max-priority", int8(4))

// Queues with dead letters, whose exchange is amq.fanout.
var (
	drawnDead  = table("x-dead-letter-exchange", "amq.fanout", "x-message-ttl", int32(30), "x-delivery-limit", int32(0))
	drawnRetry = table("x-dead-letter-exchange", "amq.fanout", "x-delayed-retry-min", int32(10), "x-delayed-retry-max", int32(70), "x-delayed-retry-multiplier", int8(2))
	drawnKept  = table("x-dead-letter-exchange", "amq.fanout", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
)

func (d drawer) deadLetter() Command {
	for _, q := range d.m.queues {
		if len(q.dying) > 0 && d.bool("this") {
			x := rapid.SampledFrom(q.dying).Draw(d.T, "dying")
			return &DeadLetter{Queue: q.number, Sequence: x.Sequence, Deaths: x.Deaths,
				Message: Publish{Exchange: x.Exchange, RoutingKey: x.RoutingKey, Properties: x.Properties, Body: x.Body}}
		}
	}
	c := &DeadLetter{Queue: d.queue(), Sequence: rapid.Uint64Range(0, 9).Draw(d.T, "sequence"), Message: *d.publish()}
	for _, q := range d.m.queues {
		for _, x := range q.dying {
			if q.number == c.Queue && x.Sequence == c.Sequence { // a leader sends nothing else than what died
				c.Deaths, c.Message.Exchange, c.Message.RoutingKey, c.Message.Properties = x.Deaths, x.Exchange, x.RoutingKey, x.Properties
			}
		}
	}
	return c
}

func (d drawer) boots() (boots []MemberBoot) {
	for range rapid.IntRange(0, 2).Draw(d.T, "boots") {
		boots = append(boots, MemberBoot{Server: drawOf(d, "server", "n1", "n2", "n3"), Boot: [16]byte{drawOf[byte](d, "boot", 1, 2)}})
	}
	return boots
}
