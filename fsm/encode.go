package fsm

import "slices"

func (PutVhost) opcode() Opcode         { return OpPutVhost }
func (DeleteVhost) opcode() Opcode      { return OpDeleteVhost }
func (PutExchange) opcode() Opcode      { return OpPutExchange }
func (DeleteExchange) opcode() Opcode   { return OpDeleteExchange }
func (PutQueue) opcode() Opcode         { return OpPutQueue }
func (DeleteQueue) opcode() Opcode      { return OpDeleteQueue }
func (PutBinding) opcode() Opcode       { return OpPutBinding }
func (DeleteBinding) opcode() Opcode    { return OpDeleteBinding }
func (Purge) opcode() Opcode            { return OpPurge }
func (Publish) opcode() Opcode          { return OpPublish }
func (Settle) opcode() Opcode           { return OpSettle }
func (Expire) opcode() Opcode           { return OpExpire }
func (DeadLetter) opcode() Opcode       { return OpDeadLetter }
func (Release) opcode() Opcode          { return OpRelease }
func (Transaction) opcode() Opcode      { return OpTransaction }
func (ClientGone) opcode() Opcode       { return OpClientGone }
func (LeaderStarted) opcode() Opcode    { return OpLeaderStarted }
func (MemberBoots) opcode() Opcode      { return OpMemberBoots }
func (DropExclusive) opcode() Opcode    { return OpDropExclusive }
func (DropTransient) opcode() Opcode    { return OpDropTransient }
func (ConsumerPresence) opcode() Opcode { return OpConsumerPresence }
func (DeleteUnused) opcode() Opcode     { return OpDeleteUnused }
func (UseQueue) opcode() Opcode         { return OpUseQueue }
func (BodyPart) opcode() Opcode         { return OpBodyPart }
func (DropUpload) opcode() Opcode       { return OpDropUpload }
func (Mark) opcode() Opcode             { return OpMark }
func (Audit) opcode() Opcode            { return OpAudit }
func (FoundCluster) opcode() Opcode     { return OpFoundCluster }

func (PutPolicy) opcode() Opcode    { return OpPutPolicy }
func (DeletePolicy) opcode() Opcode { return OpDeletePolicy }

func (c PutPolicy) appendTo(b []byte) []byte {
	b = appendString(appendBool(appendUint(appendArray(b, 7), c.Vhost), c.Operator), c.Name)
	b = appendUint(appendString(appendString(b, c.Pattern), c.ApplyTo), uint64(c.Priority))
	return appendBin(b, c.Definition)
}

func (c DeletePolicy) appendTo(b []byte) []byte {
	return appendString(appendBool(appendUint(appendArray(b, 3), c.Vhost), c.Operator), c.Name)
}

func (c PutVhost) appendTo(b []byte) []byte    { return appendString(appendArray(b, 1), c.Name) }
func (c DeleteVhost) appendTo(b []byte) []byte { return appendString(appendArray(b, 1), c.Name) }

func (c PutExchange) appendTo(b []byte) []byte {
	b = appendString(appendString(appendUint(appendArray(b, 7), c.Vhost), c.Name), c.Type)
	return appendBin(appendBool(appendBool(appendBool(b, c.Durable), c.AutoDelete), c.Internal), c.Arguments)
}

func (c DeleteExchange) appendTo(b []byte) []byte {
	return appendBool(appendString(appendUint(appendArray(b, 3), c.Vhost), c.Name), c.IfUnused)
}

func (c PutQueue) appendTo(b []byte) []byte {
	b = appendString(appendUint(appendArray(b, 8), c.Vhost), c.Name)
	b = appendBool(appendBool(appendBool(b, c.Durable), c.Exclusive), c.AutoDelete)
	return appendSession(appendBin(b, c.Arguments), c.Owner)
}

func (c DeleteQueue) appendTo(b []byte) []byte {
	b = appendString(appendUint(appendArray(b, 7), c.Vhost), c.Name)
	b = appendBool(appendUint(b, c.Number), c.IfEmpty)
	return appendSession(appendRuns(b, ascending(c.Held)), c.Session)
}

func appendBinding(b []byte, c *PutBinding) []byte {
	b = appendString(appendUint(appendArray(b, 8), c.Vhost), c.Source)
	b = appendString(appendString(appendUint(b, uint64(c.Kind)), c.Destination), c.Key)
	return appendSession(appendBin(b, c.Arguments), c.Session)
}

func (c PutBinding) appendTo(b []byte) []byte    { return appendBinding(b, &c) }
func (c DeleteBinding) appendTo(b []byte) []byte { return appendBinding(b, (*PutBinding)(&c)) }

func (c Purge) appendTo(b []byte) []byte {
	return appendRuns(appendUint(appendArray(b, 2), c.Queue), ascending(c.Held))
}

func (c Publish) appendTo(b []byte) []byte { return c.encode(b) }

// encode writes the short form when there is neither an upload nor a producer.
func (p *Publish) encode(b []byte) []byte {
	long := p.Upload != 0 || len(p.Producer) > 0
	if long {
		b = appendArray(b, 10)
	} else {
		b = appendArray(b, 5)
	}
	b = appendString(appendString(appendUint(b, p.Vhost), p.Exchange), p.RoutingKey)
	b = appendUint(appendUint(b, uint64(len(p.Properties))), uint64(len(p.Body)))
	if long {
		b = appendSession(appendUint(b, p.Upload), p.Session)
		b = appendUint(appendBin(b, p.Producer), p.Sequence)
	}
	return append(append(b, p.Properties...), p.Body...)
}

func (c Settle) appendTo(b []byte) []byte {
	return appendRuns(appendUint(appendUint(appendArray(b, 3), c.Queue), uint64(c.Kind)), ascending(c.Runs))
}

func (c Expire) appendTo(b []byte) []byte {
	return appendRuns(appendUint(appendArray(b, 2), c.Queue), ascending(c.Runs))
}

func (c DeadLetter) appendTo(b []byte) []byte {
	b = appendUint(appendUint(appendArray(b, 3), c.Queue), c.Sequence)
	return c.Message.encode(appendUint(b, uint64(c.Deaths)))
}

func (c Release) appendTo(b []byte) []byte {
	return c.Message.encode(appendUint(appendUint(appendArray(b, 2), c.Queue), c.Sequence))
}

func (c Transaction) appendTo(b []byte) []byte {
	b = appendUint(appendArray(b, 1), uint64(len(c.Operations)))
	for _, o := range c.Operations {
		b = o.appendTo(append(b, byte(o.opcode())))
	}
	return b
}

func (c ClientGone) appendTo(b []byte) []byte { return appendSession(appendArray(b, 2), c.Session) }

func appendBoots(b []byte, boots []MemberBoot) []byte {
	b = appendArray(b, 2*len(boots))
	for i := range boots {
		b = appendBin(appendString(b, boots[i].Server), boots[i].Boot[:])
	}
	return b
}

func (c LeaderStarted) appendTo(b []byte) []byte {
	return appendBoots(appendBool(appendString(appendArray(b, 3), c.Leader), c.Cold), c.Boots)
}

func (c MemberBoots) appendTo(b []byte) []byte { return appendBoots(appendArray(b, 1), c.Boots) }

func (c DropExclusive) appendTo(b []byte) []byte {
	return appendUint(appendArray(b, 1), uint64(c.Limit))
}
func (c DropTransient) appendTo(b []byte) []byte {
	return appendUint(appendArray(b, 1), uint64(c.Limit))
}

func (c ConsumerPresence) appendTo(b []byte) []byte {
	return appendBool(appendUint(appendArray(b, 2), c.Queue), c.Present)
}

func (c DeleteUnused) appendTo(b []byte) []byte {
	return appendUint(appendUint(appendArray(b, 2), c.Queue), uint64(c.Since))
}

func (c UseQueue) appendTo(b []byte) []byte { return appendUint(appendArray(b, 1), c.Queue) }

func (c BodyPart) appendTo(b []byte) []byte {
	b = appendUint(appendSession(appendArray(b, 6), c.Session), c.Upload)
	return appendBin(appendUint(appendUint(b, c.Offset), c.Total), c.Bytes)
}

func (c DropUpload) appendTo(b []byte) []byte {
	return appendUint(appendSession(appendArray(b, 3), c.Session), c.Upload)
}

func (c Mark) appendTo(b []byte) []byte {
	return appendUint(appendUint(appendArray(b, 2), c.Queue), c.Upto)
}

func (c Audit) appendTo(b []byte) []byte {
	return appendUint(appendUint(appendUint(appendArray(b, 3), c.Index), uint64(c.Version)), c.Hash)
}

func (c FoundCluster) appendTo(b []byte) []byte { return appendString(appendArray(b, 1), c.ID) }

// ascending returns the runs ascending and disjoint, which they mostly are.
func ascending(runs []Run) []Run {
	good := true
	for i, r := range runs {
		good = good && r.From <= r.To && (i == 0 || r.From > runs[i-1].To)
	}
	if good {
		return runs
	}
	sorted := slices.Clone(runs)
	sorted = slices.DeleteFunc(sorted, func(r Run) bool { return r.From > r.To })
	slices.SortFunc(sorted, func(a, b Run) int {
		if a.From < b.From {
			return -1
		}
		return 1
	})
	out := sorted[:0]
	for _, r := range sorted {
		if n := len(out); n > 0 && r.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, r.To)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// Size returns an upper bound of what Append(c) adds, in bytes.
func Size(c Command) int {
	const fixed = 128 // opcode, heads and numbers of any command
	switch c := c.(type) {
	case *Publish:
		return fixed + len(c.Exchange) + len(c.RoutingKey) + len(c.Properties) + len(c.Body) + len(c.Producer)
	case Publish:
		return Size(&c)
	case *Settle:
		return fixed + 20*len(c.Runs)
	case Settle:
		return Size(&c)
	case *Claim:
		return fixed + 20*len(c.Runs)
	case Claim:
		return fixed + 20*len(c.Runs)
	case *Move:
		return fixed + c.size()
	case Move:
		return fixed + c.size()
	case *Transaction:
		n := fixed
		for _, o := range c.Operations {
			n += Size(o)
		}
		return n
	case Transaction:
		return Size(&c)
	}
	return len(c.appendTo(nil)) + 1
}
