package native

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestPublishRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOf := func(name string) []byte {
			if b := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, name); len(b) > 0 {
				return b
			}
			return nil
		}
		p := Publish{Head: Head{rapid.Uint64().Draw(t, "rid"), rapid.Uint32().Draw(t, "channel")},
			Exchange: rapid.String().Draw(t, "exchange"), RoutingKey: rapid.String().Draw(t, "key"),
			Properties: bytesOf("properties"), Body: bytesOf("body"), Mandatory: rapid.Bool().Draw(t, "mandatory"),
			Producer: bytesOf("producer"), Sequence: rapid.Uint64().Draw(t, "sequence")}
		var got Publish
		if err := DecodePublish(AppendPublish(nil, &p)[HeaderBytes:], &got); err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("%+v, %v; want %+v", got, err, p)
		}
	})
}
