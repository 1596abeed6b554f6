package broker

import (
	"math"

	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// firstDied is where a dead letter died first, as its headers say.
type firstDied struct {
	queue, exchange string
	key             string
	hasKey          bool // the header x-death has it
}

func (f *firstDied) keyOr(other string) string {
	if f.hasKey {
		return f.key
	}
	return other
}

// firstDeath reads it from property bytes; ok is false for what is no dead letter.
func firstDeath(properties []byte) (f firstDied, ok bool) {
	headers := amqp091.PropertyBytes(properties).Headers()
	if f.queue, ok = text(headers, "x-first-death-queue"); !ok {
		return f, false
	}
	f.exchange, _ = text(headers, "x-first-death-exchange")
	reason, _ := text(headers, "x-first-death-reason")
	list, _ := headers.Lookup("x-death")
	deaths, _ := list.Array()
	for value := range deaths.All() {
		death, isTable := value.Table()
		queue, _ := text(death, "queue")
		why, _ := text(death, "reason")
		if !isTable || queue != f.queue || why != reason {
			continue
		}
		keys, _ := death.Lookup("routing-keys")
		array, _ := keys.Array()
		for value := range array.All() {
			key, isText := value.Text()
			if isText && len(key) <= fsm.MaxNameBytes {
				f.key, f.hasKey = string(key), true
			}
			break
		}
	}
	return f, true
}

// deaths adds up the counts of an x-death header.
func deaths(properties []byte) (n uint32) {
	list, _ := amqp091.PropertyBytes(properties).Headers().Lookup("x-death")
	array, _ := list.Array()
	for value := range array.All() {
		death, _ := value.Table()
		count, _ := death.Lookup("count")
		if c, ok := count.Int(); ok && c > 0 {
			n += uint32(min(c, math.MaxUint32-int64(n)))
		}
	}
	return n
}

func text(t amqp091.Table, name string) (string, bool) {
	value, _ := t.Lookup(name)
	s, ok := value.Text()
	return string(s), ok && len(s) <= fsm.MaxNameBytes
}
