package store

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

func sampleManifest() *Manifest {
	return &Manifest{State: []byte("state"), Queues: []Queue{
		{Number: 1, Last: 10, Count: 3, Bytes: 99, Sum: 1 << 63, NextFile: 4, Changes: []Change{{2, 1, 0}, {9, 3, 1 << 41}},
			Files: []File{{Number: 1, Length: 1000, Index: 900, Records: 9, Valid: 3, Live: []Extent{{32, 100}, {300, 400}}}}},
		{Number: 7, Last: 0, NextFile: 1},
	}}
}

func TestManifestRoundTrip(t *testing.T) {
	want := sampleManifest()
	in := bytes.NewReader(append(want.Append(nil), "rest"...))
	got, err := ReadManifest(in)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if in.Len() != len("rest") {
		t.Errorf("%d bytes are left, want 4", in.Len())
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(sampleManifest().Append(nil)[manifestHead:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decodeManifest(body)
		if err != nil {
			if !errors.Is(err, ErrManifest) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again, err := ReadManifest(bytes.NewReader(m.Append(nil)))
		if err != nil || !reflect.DeepEqual(again.Queues, m.Queues) {
			t.Fatalf("a decoded manifest does not survive: %v", err)
		}
	})
}

func FuzzRecord(f *testing.F) {
	r := Record{Sequence: 5, Hash: 7, ID: [2]uint64{1, 2}, Transient: true, Exchange: "e", RoutingKey: "key", Properties: []byte{0, 0}, Body: []byte("body")}
	f.Add(r.AppendFrame(nil)[frameHead:])
	f.Fuzz(func(t *testing.T, payload []byte) {
		b := sealFrame(append(make([]byte, frameHead), payload...), 0)
		var r Record
		n, what := DecodeFrame(b, &r)
		if what != "" {
			return
		}
		if n != len(b) || r.FrameSize() != int64(n) {
			t.Fatalf("took %d of %d bytes, its size says %d", n, len(b), r.FrameSize())
		}
		var again Record
		if _, what := DecodeFrame(r.AppendFrame(nil), &again); what != "" || !reflect.DeepEqual(r, again) {
			t.Fatalf("a decoded record does not survive: %s", what)
		}
	})
}

func FuzzFrame(f *testing.F) {
	r := Record{Body: []byte("body")}
	f.Add(r.AppendFrame(nil))
	f.Fuzz(func(_ *testing.T, b []byte) {
		var r Record
		DecodeFrame(b, &r)
		if p, what := openFrame(b); what == "" {
			readBlock(p)
		}
		readBlock(b)
	})
}

func readBlock(p []byte) {
	if _, _, what := blockOf(p); what == "" {
		decodeBlock(p, nil)
	}
}
