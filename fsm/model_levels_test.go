package fsm

import (
	"bytes"
	"cmp"
	"slices"

	"pgregory.net/rapid"
)

// level returns the level of priority of a message in a queue.
func (q *modelQueue) level(x *modelMessage) int {
	highest, missing := 0, 0
	switch {
	case bytes.Equal(q.arguments, drawnLevels):
		highest = 4
	case q.keepAll:
		highest, missing = 31, 4
	}
	level := missing
	if p := x.Properties; len(p) > 1 && p[0]&(priorityFlag>>8) != 0 {
		at := 2
		if p[0]&(headersFlag>>8) != 0 {
			at += 4 + int(big.Uint32(p[2:]))
		}
		if p[0]&(deliveryModeFlag>>8) != 0 {
			at++
		}
		level = int(p[at])
	}
	return min(level, highest)
}

// checkLevels reads a queue level by level: the highest first, each in the order of its sequences.
func (q *modelQueue) checkLevels(t *rapid.T, machine *Machine) {
	want := slices.Clone(q.live)
	slices.SortStableFunc(want, func(a, b modelMessage) int { return cmp.Compare(q.level(&b), q.level(&a)) })
	at := 0
	for _, l := range machine.Levels(q.number, nil) {
		got, _, err := machine.ReadLevel(q.number, l.Code, 0, 1<<20, 1<<30, nil)
		if err != nil || len(got) == 0 || got[len(got)-1].Sequence > l.Last {
			t.Fatalf("level %+v has %d messages, %v", l, len(got), err)
		}
		for _, g := range got {
			if at == len(want) || g.Sequence != want[at].Sequence {
				t.Fatalf("queue %s: message %d is number %d by levels; the model has %+v", q.name, g.Sequence, at, want)
			}
			if machine.LevelOf(q.number, g.Sequence) != l.Code {
				t.Fatalf("message %d is of level %d", g.Sequence, l.Code)
			}
			at++
		}
	}
	if at != len(want) {
		t.Fatalf("queue %s: by levels there are %d messages, not %d", q.name, at, len(want))
	}
}
