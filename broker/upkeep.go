package broker

import (
	"context"
	"time"

	"github.com/warrenmq/warren/fsm"
)

// upkeep does what a leader does from time to time, until the leadership ends: boot ids of members that came (rule
// 13), audits (rule 15), auto-delete queues whose consumers did not return (rule 12), queues that nobody uses
// (x-expires), acknowledgements that did not come.
func (l *leadership) upkeep(ctx context.Context) {
	tick := time.NewTicker(upkeepInterval)
	defer tick.Stop()
	audited, auditedAt := uint64(0), time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		l.recordBoots()
		l.dropAbandoned()
		l.dropUnused()
		l.expireDeliveries()
		if time.Since(auditedAt) >= l.broker.config.AuditEvery {
			auditedAt = time.Now()
			index, hash := l.broker.machine.Hash()
			if index > audited+1 { // an audit is an entry too: none follows upon itself
				audited = index + 1
				l.send(fsm.Audit{Index: index, Version: fsm.HashVersion, Hash: hash})
			}
		}
	}
}

func (l *leadership) send(c fsm.Command) {
	_ = l.system.submit(l.context, false, submission{command: c, size: fsm.Size(c)})
}

// recordBoots writes the boot ids that the state does not know yet.
func (l *leadership) recordBoots() {
	recorded := map[fsm.MemberBoot]bool{}
	for _, b := range l.broker.machine.Boots() {
		recorded[b] = true
	}
	var fresh []fsm.MemberBoot
	for _, b := range l.knownBoots() {
		if !recorded[b] {
			fresh = append(fresh, b)
		}
	}
	if len(fresh) > 0 {
		l.send(fsm.MemberBoots{Boots: fresh})
	}
}

// dropUnused deletes queues that were not used for as long as their x-expires says. A use that is in the log before
// the command keeps the queue.
func (l *leadership) dropUnused() {
	for _, q := range l.broker.machine.UnusedQueues(l.broker.clock.now(), dropStep) {
		l.send(fsm.DeleteUnused{Queue: q.Number, Since: q.Since})
	}
}

// dropAbandoned deletes auto-delete queues that had a consumer under an earlier leader and got none since.
func (l *leadership) dropAbandoned() {
	m := l.broker.machine
	before := l.broker.clock.now() - l.broker.config.AbandonedAfter.Milliseconds()
	for _, n := range m.AbandonedQueues(before, dropStep) {
		l.send(fsm.DeleteUnused{Queue: n, Since: before})
	}
}
