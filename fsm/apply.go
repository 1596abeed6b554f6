package fsm

import "fmt"

// apply applies one entry. The results are the machine's answer; what else the entry did is in s.grown and so on.
// After an error the state is unusable.
func (s *state) apply(index, term uint64, entry []byte, ring *hashRing) (Header, []Result, error) {
	d := decoder{b: entry}
	h := d.header()
	if h.Version != entryVersion && len(entry) > 0 {
		return h, nil, fmt.Errorf("%w: entry %d has format version %d, this version of Warren knows %d: upgrade this node", ErrEntry, index, entry[0], entryVersion)
	}
	if d.bad {
		return h, nil, fmt.Errorf("%w: entry %d has a damaged header", ErrEntry, index)
	}
	s.index, s.term, s.position = index, term, 0
	s.grown, s.deleted, s.died, s.suspect, s.overran, s.limited = nil, nil, nil, nil, false, nil
	results := make([]Result, h.Count)
	if h.Term != term { // rule 1
		for i := range results {
			results[i] = Result{Code: StaleTerm, Message: "STALE_TERM - the leadership that made this ended before it was committed"}
		}
		ring.put(index, s.hash())
		return h, results, nil
	}
	s.clock = max(s.clock, h.Clock)
	s.dropIdleProducers()
	s.dropOldRemembered()
	for i := range results {
		var err error
		if results[i], err = s.next(&d, ring); err != nil {
			return h, nil, fmt.Errorf("entry %d, command %d: %w", index, i, err)
		}
	}
	if len(d.b) > 0 {
		return h, nil, fmt.Errorf("%w: entry %d has %d bytes after its last command", ErrEntry, index, len(d.b))
	}
	for _, number := range s.grown {
		if q := s.queues[number]; q != nil {
			q.grown = false
		}
	}
	for _, number := range s.died {
		if q := s.queues[number]; q != nil {
			q.died = false
		}
	}
	s.settleUp()
	ring.put(index, s.hash())
	return h, results, nil
}

// next decodes and applies one command. The frequent ones are decoded into the same struct again.
func (s *state) next(d *decoder, ring *hashRing) (Result, error) {
	switch op := Opcode(d.byte()); op {
	case OpPublish:
		if d.decodePublish(&s.publish); d.bad {
			return Result{}, fmt.Errorf("%w: a publish cannot be decoded", ErrEntry)
		}
		return s.applyPublish(&s.publish), nil
	case OpSettle:
		if d.decodeSettle(&s.settle); d.bad {
			return Result{}, fmt.Errorf("%w: a settle cannot be decoded", ErrEntry)
		}
		return s.applySettle(&s.settle), nil
	default:
		c, err := d.command(op)
		if err != nil {
			return Result{}, err
		}
		if a, ok := c.(*Audit); ok {
			s.audit(a, ring)
			return Result{}, nil
		}
		return s.dispatch(c), nil
	}
}

// audit compares a stated hash with this node's own. What is not known gives no verdict (rule 15).
func (s *state) audit(a *Audit, ring *hashRing) {
	if own, ok := ring.get(a.Index); ok && a.Version == HashVersion && own != a.Hash {
		s.suspect = a
	}
}

func (s *state) dispatch(c Command) Result {
	switch c := c.(type) {
	case *PutVhost:
		return s.applyPutVhost(c)
	case *DeleteVhost:
		return s.applyDeleteVhost(c)
	case *PutExchange:
		return s.applyPutExchange(c)
	case *DeleteExchange:
		return s.applyDeleteExchange(c)
	case *PutQueue:
		return s.applyPutQueue(c)
	case *DeleteQueue:
		return s.applyDeleteQueue(c)
	case *PutBinding:
		return s.applyPutBinding(c)
	case *DeleteBinding:
		return s.applyDeleteBinding(c)
	case *Purge:
		return s.applyPurge(c)
	case *Publish:
		return s.applyPublish(c)
	case *Settle:
		return s.applySettle(c)
	case *Expire:
		return s.applyExpire(c)
	case *DeadLetter:
		return s.applyDeadLetter(c)
	case *Claim:
		return s.applyClaim(c)
	case *Trim:
		return s.applyTrim(c)
	case *Move:
		return s.applyMove(c)
	case *DeleteMessages:
		return s.applyDeleteMessages(c)
	case *Release:
		return s.applyRelease(c)
	case *Transaction:
		return s.applyTransaction(c)
	case *ClientGone:
		return s.applyClientGone(c)
	case *LeaderStarted:
		return s.applyLeaderStarted(c)
	case *MemberBoots:
		s.recordBoots(c.Boots)
	case *DropExclusive:
		return s.applyDropExclusive(c, s.term)
	case *DropTransient:
		return s.applyDropTransient(c)
	case *ConsumerPresence:
		return s.applyConsumerPresence(c)
	case *DeleteUnused:
		return s.applyDeleteUnused(c)
	case *UseQueue:
		s.applyUseQueue(c)
	case *BodyPart:
		return s.applyBodyPart(c)
	case *DropUpload:
		return s.applyDropUpload(c)
	case *Mark:
		return s.applyMark(c)
	case *PutLimit:
		return s.applyPutLimit(c)
	case *PutPolicy:
		return s.applyPutPolicy(c)
	case *DeletePolicy:
		return s.applyDeletePolicy(c)
	case *FoundCluster:
		if s.cluster == "" {
			s.cluster = string([]byte(c.ID))
		}
	}
	return Result{}
}
