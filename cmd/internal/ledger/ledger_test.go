package ledger

import "testing"

func TestLedgerCounts(t *testing.T) {
	l := New(7, 2)
	body := make([]byte, StampBytes)
	for seq := range uint64(200) {
		l.Confirmed(1, seq)
		if seq == 150 {
			continue // lost
		}
		Stamp{7, 1, seq, 5}.Put(body)
		s, ok := Read(body)
		if !ok || s.Sequence != seq || !l.Delivered(s, false) {
			t.Fatalf("stamp %+v, %v", s, ok)
		}
	}
	l.Delivered(Stamp{Run: 7, Publisher: 1, Sequence: 3}, true)
	l.Delivered(Stamp{Run: 7, Publisher: 1, Sequence: 4}, false)
	l.Delivered(Stamp{Run: 7, Publisher: 0, Sequence: 9}, false) // unconfirmed: neither lost nor wrong
	for _, foreign := range []Stamp{{Run: 8}, {Run: 7, Publisher: 2}, {Run: 7, Sequence: maxSequence}} {
		if l.Delivered(foreign, false) {
			t.Errorf("%+v counts as this run's", foreign)
		}
	}
	if got, want := l.Totals(), (Totals{Confirmed: 200, Delivered: 200, Duplicated: 2, Unmarked: 1, Lost: 1}); got != want {
		t.Errorf("totals %+v, want %+v", got, want)
	}
	if _, ok := Read(body[:StampBytes-1]); ok {
		t.Error("a short body has a stamp")
	}
}
