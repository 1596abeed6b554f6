package broker

import (
	"cmp"
	"slices"
	"time"
)

// outstanding is what a channel has delivered and not settled, in the order of the tags. Adding a delivery and taking
// one cost the same however many there are, finding where a range begins costs their logarithm, and memory follows
// what is there. The zero value is empty.
type outstanding struct {
	list []entry // ascending by tag; what was taken stays, without a view, until compact
	n    int     // entries that are there
}

// entry is an unacknowledged delivery. In one that was taken, sequence is how many entries from it on are taken, as far
// as is known: at least 1.
type entry struct {
	tag uint64
	unacked
}

func (e entry) taken() bool { return e.view == nil }

type unacked struct {
	view     *view
	consumer *consumer // nil for a get
	sequence uint64
	since    time.Duration // the leadership's age at the delivery, or shortly before when the consumer has no timeout
}

// outstandingSlack is how many taken entries are kept besides as many as there are others.
const outstandingSlack = 64

// add appends a delivery, whose tag is above all before it.
func (o *outstanding) add(tag uint64, u unacked) {
	o.list = append(o.list, entry{tag, u})
	o.n++
}

// take removes the deliveries with tags from from to to, ascending, and hands each to found. It returns how many.
func (o *outstanding) take(from, to uint64, found func(entry)) (n int) {
	first, _ := slices.BinarySearchFunc(o.list, from, func(e entry, tag uint64) int { return cmp.Compare(e.tag, tag) })
	end := first
	for end < len(o.list) && o.list[end].tag <= to {
		e := &o.list[end]
		if e.taken() {
			end += int(e.sequence)
			continue
		}
		found(*e)
		e.unacked = unacked{sequence: 1}
		end++
		n++
	}
	for i := first; i < end; { // whoever comes this way again passes over all of it at once
		e := &o.list[i]
		i, e.sequence = i+int(e.sequence), uint64(end-i)
	}
	o.n -= n
	o.compact()
	return n
}

// has reports whether a tag is there.
func (o *outstanding) has(tag uint64) bool {
	i, found := slices.BinarySearchFunc(o.list, tag, func(e entry, tag uint64) int { return cmp.Compare(e.tag, tag) })
	return found && !o.list[i].taken()
}

// compact lets go of taken entries once they are most of the list.
func (o *outstanding) compact() {
	if len(o.list) <= 2*o.n+outstandingSlack {
		return
	}
	o.list = slices.DeleteFunc(o.list, entry.taken)
	if cap(o.list) > 4*(o.n+outstandingSlack) {
		o.list = slices.Clone(o.list)
	}
}

// putBack adds deliveries again that were taken.
func (o *outstanding) putBack(entries []entry) {
	o.list = append(slices.DeleteFunc(o.list, entry.taken), entries...)
	slices.SortFunc(o.list, func(a, b entry) int { return cmp.Compare(a.tag, b.tag) })
	o.n = len(o.list)
}

// all yields every delivery in the order of the tags.
func (o *outstanding) all(yield func(entry) bool) {
	for i := 0; i < len(o.list); {
		e := o.list[i]
		if e.taken() {
			i += int(e.sequence)
			continue
		}
		if !yield(e) {
			return
		}
		i++
	}
}
