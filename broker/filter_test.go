package broker

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/warrenmq/warren/fsm"
	"github.com/warrenmq/warren/protocol/amqp091"
)

// slowTopic is the definition of a topic match.
func slowTopic(pattern, key []string) bool {
	switch {
	case len(pattern) == 0:
		return len(key) == 0
	case pattern[0] == "#":
		return slowTopic(pattern[1:], key) || len(key) > 0 && slowTopic(pattern, key[1:])
	case len(key) == 0:
		return false
	}
	return (pattern[0] == "*" || pattern[0] == key[0]) && slowTopic(pattern[1:], key[1:])
}

func TestKeysMatchAsInATopicExchange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "*", "#", ""}), 0, 5)
		pattern, key := words.Draw(t, "pattern"), words.Draw(t, "key")
		p, k := strings.Join(pattern, "."), strings.Join(key, ".")
		if got, want := matchesTopic(p, k), slowTopic(split(p), split(k)); got != want {
			t.Fatalf("%q matches %q: %v, want %v", p, k, got, want)
		}
	})
}

func TestFilterComparesHeadersAsTheyAreWritten(t *testing.T) {
	properties, err := amqp091.AppendProperties(nil, &amqp091.Properties{Headers: amqp091.Map{"s": "x", "n": int32(-3), "b": true, "f": 1.5, "v": nil}})
	if err != nil {
		t.Fatal(err)
	}
	m := &fsm.Message{RoutingKey: "a.b", Properties: properties}
	for _, c := range []struct {
		filter Filter
		want   bool
	}{
		{Filter{}, true},
		{Filter{Headers: []HeaderFilter{{"s", "x", false}, {"n", "-3", false}, {"b", "true", false}, {"f", "1.5", false}}}, true},
		{Filter{Headers: []HeaderFilter{{"s", "x", false}, {"n", "3", false}}}, false},
		{Filter{Headers: []HeaderFilter{{"v", "", true}}}, true},
		{Filter{Headers: []HeaderFilter{{"w", "", true}}}, false},
		{Filter{Headers: []HeaderFilter{{"w", "", false}}}, false},
		{Filter{Key: "a.b"}, true},
		{Filter{Key: "a.*"}, true},
		{Filter{Key: "b.*"}, false},
		{Filter{Key: "a.b", Headers: []HeaderFilter{{"s", "y", false}}}, false},
	} {
		if c.filter.matches(m) != c.want {
			t.Errorf("%+v: %v", c.filter, !c.want)
		}
	}
}

func FuzzFirstDeath(f *testing.F) {
	f.Add([]byte{0, 0})
	properties, _ := amqp091.AppendProperties(nil, &amqp091.Properties{Headers: amqp091.Map{"x-first-death-queue": "q", "x-first-death-reason": "expired",
		"x-death": []any{amqp091.Map{"queue": "q", "reason": "expired", "count": int64(2), "routing-keys": []any{"k"}}}}})
	f.Add(properties)
	f.Fuzz(func(t *testing.T, p []byte) {
		if first, ok := firstDeath(p); !ok && first.hasKey || len(first.queue)+len(first.exchange)+len(first.key) > 3*fsm.MaxNameBytes {
			t.Fatalf("%+v", first)
		}
		deaths(p)
	})
}
