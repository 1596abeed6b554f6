package fsm

import (
	"errors"
	"fmt"
)

// ErrEntry says that a log entry is not one that a Batch of a known version makes.
var ErrEntry = errors.New("malformed log entry")

// decodePublish reads a publish into p.
func (d *decoder) decodePublish(p *Publish) {
	n := d.array()
	if n != 5 && n != 10 {
		d.fail()
	}
	*p = Publish{Vhost: d.uint(), Exchange: d.string(), RoutingKey: d.string()}
	properties, body := d.uint(), d.uint()
	if n == 10 {
		p.Upload, p.Session, p.Producer, p.Sequence = d.uint(), d.session(), d.bin(), d.uint()
		if p.Upload == 0 && len(p.Producer) == 0 { // the short form says that
			d.fail()
		}
	}
	p.Properties, p.Body = d.take(properties), d.take(body)
}

// decodeSettle reads a settle into s, whose runs are used again.
func (d *decoder) decodeSettle(s *Settle) {
	d.want(3)
	s.Queue = d.uint()
	kind := d.uint()
	if kind > uint64(Unclaim) {
		d.fail()
	}
	s.Kind, s.Runs = SettleKind(kind), d.runs(s.Runs[:0])
}

func (d *decoder) decodeTransaction() *Transaction {
	d.want(1)
	n := d.uint()
	if n > MaxTransactionOperations || n*2 > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	t := &Transaction{}
	for ; n > 0 && !d.bad; n-- {
		switch Opcode(d.byte()) {
		case OpPublish:
			p := new(Publish)
			d.decodePublish(p)
			t.Operations = append(t.Operations, p)
		case OpSettle:
			s := new(Settle)
			d.decodeSettle(s)
			t.Operations = append(t.Operations, s)
		default:
			d.fail()
		}
	}
	return t
}

func (d *decoder) decodeBinding() *PutBinding {
	d.want(8)
	c := &PutBinding{Vhost: d.uint(), Source: d.string()}
	kind := d.uint()
	if kind > uint64(ToExchange) {
		d.fail()
	}
	c.Kind = DestinationKind(kind)
	c.Destination, c.Key, c.Arguments, c.Session = d.string(), d.string(), d.bin(), d.session()
	return c
}

func (d *decoder) boots() (boots []MemberBoot) {
	n := d.array()
	if n%2 != 0 || n > uint64(len(d.b)) {
		d.fail()
	}
	for ; n > 1 && !d.bad; n -= 2 {
		boot := MemberBoot{Server: d.string()}
		id := d.bin()
		if len(id) != len(boot.Boot) {
			d.fail()
			return nil
		}
		copy(boot.Boot[:], id)
		boots = append(boots, boot)
	}
	return boots
}

// command reads a command whose opcode has been read. Its strings and slices alias the entry.
func (d *decoder) command(op Opcode) (Command, error) {
	var c Command
	switch op {
	case OpPutVhost:
		d.want(1)
		c = &PutVhost{Name: d.string()}
	case OpDeleteVhost:
		d.want(1)
		c = &DeleteVhost{Name: d.string()}
	case OpPutExchange:
		d.want(7)
		c = &PutExchange{Vhost: d.uint(), Name: d.string(), Type: d.string(), Durable: d.bool(), AutoDelete: d.bool(),
			Internal: d.bool(), Arguments: d.bin()}
	case OpDeleteExchange:
		d.want(3)
		c = &DeleteExchange{Vhost: d.uint(), Name: d.string(), IfUnused: d.bool()}
	case OpPutQueue:
		d.want(8)
		c = &PutQueue{Vhost: d.uint(), Name: d.string(), Durable: d.bool(), Exclusive: d.bool(), AutoDelete: d.bool(),
			Arguments: d.bin(), Owner: d.session()}
	case OpDeleteQueue:
		d.want(7)
		c = &DeleteQueue{Vhost: d.uint(), Name: d.string(), Number: d.uint(), IfEmpty: d.bool(), Held: d.runs(nil),
			Session: d.session()}
	case OpPutBinding:
		c = d.decodeBinding()
	case OpDeleteBinding:
		c = (*DeleteBinding)(d.decodeBinding())
	case OpPurge:
		d.want(2)
		c = &Purge{Queue: d.uint(), Held: d.runs(nil)}
	case OpPublish:
		p := new(Publish)
		d.decodePublish(p)
		c = p
	case OpSettle:
		s := new(Settle)
		d.decodeSettle(s)
		c = s
	case OpTransaction:
		c = d.decodeTransaction()
	case OpClientGone:
		d.want(2)
		c = &ClientGone{Session: d.session()}
	case OpLeaderStarted:
		d.want(3)
		c = &LeaderStarted{Leader: d.string(), Cold: d.bool(), Boots: d.boots()}
	case OpMemberBoots:
		d.want(1)
		c = &MemberBoots{Boots: d.boots()}
	case OpDropExclusive:
		d.want(1)
		c = &DropExclusive{Limit: d.uint32()}
	case OpDropTransient:
		d.want(1)
		c = &DropTransient{Limit: d.uint32()}
	case OpConsumerPresence:
		d.want(2)
		c = &ConsumerPresence{Queue: d.uint(), Present: d.bool()}
	case OpDeleteUnused:
		d.want(2)
		c = &DeleteUnused{Queue: d.uint(), Since: int64(d.uint())}
	case OpExpire:
		d.want(2)
		c = &Expire{Queue: d.uint(), Runs: d.runs(nil)}
	case OpDeadLetter:
		d.want(3)
		dead := &DeadLetter{Queue: d.uint(), Sequence: d.uint()}
		deaths := d.uint()
		if dead.Deaths = uint8(deaths); deaths > maxDeaths {
			d.fail()
		}
		d.decodePublish(&dead.Message)
		c = dead
	case OpClaim:
		c = d.decodeClaim()
	case OpTrim:
		d.want(2)
		c = &Trim{Queue: d.uint(), Limit: d.uint32()}
	case OpMove:
		c = d.decodeMove()
	case OpDeleteMessages:
		d.want(2)
		c = &DeleteMessages{Queue: d.uint(), Runs: d.runs(nil)}
	case OpRelease:
		d.want(2)
		r := &Release{Queue: d.uint(), Sequence: d.uint()}
		d.decodePublish(&r.Message)
		c = r
	case OpUseQueue:
		d.want(1)
		c = &UseQueue{Queue: d.uint()}
	case OpBodyPart:
		d.want(6)
		c = &BodyPart{Session: d.session(), Upload: d.uint(), Offset: d.uint(), Total: d.uint(), Bytes: d.bin()}
	case OpDropUpload:
		d.want(3)
		c = &DropUpload{Session: d.session(), Upload: d.uint()}
	case OpMark:
		d.want(2)
		c = &Mark{Queue: d.uint(), Upto: d.uint()}
	case OpAudit:
		d.want(3)
		a := &Audit{Index: d.uint()}
		version := d.uint()
		if a.Version = uint16(version); uint64(a.Version) != version {
			d.fail()
		}
		a.Hash, c = d.uint(), a
	case OpPutPolicy:
		d.want(7)
		c = &PutPolicy{Vhost: d.uint(), Operator: d.bool(), Name: d.string(), Pattern: d.string(), ApplyTo: d.string(),
			Priority: int64(d.uint()), Definition: d.bin()}
	case OpDeletePolicy:
		d.want(3)
		c = &DeletePolicy{Vhost: d.uint(), Operator: d.bool(), Name: d.string()}
	case OpPutLimit:
		d.want(4)
		c = &PutLimit{Vhost: d.uint(), User: d.string(), Name: d.string(), Value: int64(d.uint())}
	case OpFoundCluster:
		d.want(1)
		c = &FoundCluster{ID: d.string()}
	default:
		return nil, fmt.Errorf("%w: command %d is unknown to this version of Warren: upgrade this node to the version the leader runs", ErrEntry, op)
	}
	if d.bad {
		return nil, fmt.Errorf("%w: command %d cannot be decoded", ErrEntry, op)
	}
	return c, nil
}
