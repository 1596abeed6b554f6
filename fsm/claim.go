package fsm

// Claim says, of a queue whose length is limited, what consumers are about to get (rule 3): a claimed message is none of
// the ready ones, which alone the limits count, and neither a publish nor an operator takes it away. The delivery leaves
// when this is applied. Settling a message ends its claim, and so does a new leadership.
//
// The messages in Runs are claimed, those that are not live any more or claimed already passed over; Result.Messages is
// how many were. More is for consumers that wait: so many of the messages that come next are claimed as they come, until
// a later Less takes that back; then Result.Messages is how many of them had not come. A command has Runs, More or both,
// or Less.
type Claim struct {
	Queue      uint64
	Runs       []Run
	More, Less uint64
}

// MaxAwaited bounds the messages of a queue that are to be claimed as they come.
const MaxAwaited = 1 << 20

func (Claim) opcode() Opcode { return OpClaim }

func (c Claim) appendTo(b []byte) []byte {
	b = appendRuns(appendUint(appendArray(b, 4), c.Queue), ascending(c.Runs))
	return appendUint(appendUint(b, c.More), c.Less)
}

func (d *decoder) decodeClaim() *Claim {
	d.want(4)
	return &Claim{Queue: d.uint(), Runs: d.runs(nil), More: d.uint(), Less: d.uint()}
}

func (s *state) applyClaim(c *Claim) Result {
	q := s.queues[c.Queue]
	if q == nil {
		return Result{}
	}
	s.touch(q)
	var n uint64
	for _, r := range c.Runs {
		for at, ok := q.messages.next(r.From); ok && at <= r.To; at, ok = q.messages.next(at + 1) {
			if q.messages.claim(at) {
				n++
			}
		}
	}
	q.awaited += min(c.More, MaxAwaited-q.awaited)
	if c.Less > 0 {
		n = min(c.Less, q.awaited)
		q.awaited -= n
	}
	return Result{Messages: n}
}

// claimNext claims a message that has just come if a consumer waits for it.
func (q *queue) claimNext(sequence uint64) {
	if q.awaited > 0 {
		q.awaited--
		q.messages.claim(sequence)
	}
}
