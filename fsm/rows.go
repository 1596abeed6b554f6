package fsm

import "slices"

const rowsTogether = 256

// rows is a list of pointers to things that never change. A snapshot shares it at the cost of one reference for every
// rowsTogether of them; a part that is shared is copied before it is changed. The order means nothing.
type rows[T any] struct {
	parts []*rowsPart[T]
	count int
	epoch uint64 // raised by each view
}

type rowsPart[T any] struct {
	epoch uint64
	of    [rowsTogether]*T
}

func (r *rows[T]) writable(part int) *rowsPart[T] {
	p := r.parts[part]
	if p.epoch != r.epoch {
		copied := *p
		copied.epoch = r.epoch
		p, r.parts[part] = &copied, &copied
	}
	return p
}

func (r *rows[T]) set(at int, x *T) { r.writable(at / rowsTogether).of[at%rowsTogether] = x }

// add returns the place of what it adds.
func (r *rows[T]) add(x *T) int {
	if r.count == len(r.parts)*rowsTogether {
		r.parts = append(r.parts, &rowsPart[T]{epoch: r.epoch})
	}
	r.set(r.count, x)
	r.count++
	return r.count - 1
}

// remove lets the last take the place of the one removed, and returns it; nil when that was the last.
func (r *rows[T]) remove(at int) (moved *T) {
	r.count--
	if last := r.parts[r.count/rowsTogether].of[r.count%rowsTogether]; at != r.count {
		moved = last
		r.set(at, last)
	}
	if r.count%rowsTogether == 0 {
		r.parts[len(r.parts)-1] = nil
		r.parts = r.parts[:len(r.parts)-1]
	} else {
		r.set(r.count, nil)
	}
	return moved
}

// rowsView is what the rows were at one moment. It may be read by any goroutine without a lock.
type rowsView[T any] struct {
	parts []*rowsPart[T]
	count int
}

func (r *rows[T]) view() rowsView[T] {
	r.epoch++
	return rowsView[T]{slices.Clone(r.parts), r.count}
}

func (v rowsView[T]) all(yield func(*T) bool) {
	for i := range v.count {
		if !yield(v.parts[i/rowsTogether].of[i%rowsTogether]) {
			return
		}
	}
}
