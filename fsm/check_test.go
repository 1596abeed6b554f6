package fsm

import (
	"errors"
	"testing"
)

func TestCheckFindsWhatCannotBeDecoded(t *testing.T) {
	for _, c := range []Command{PutBinding{Kind: 7}, DeleteBinding{Kind: 2}, Settle{Kind: 9}} {
		if err := Check(c); !errors.Is(err, ErrEntry) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []Command{PutBinding{Kind: ToExchange, Key: "k"}, PutQueue{Name: "q"}, MemberBoots{}, Purge{Held: []Run{{1, 2}, {4, 4}}}} {
		if err := Check(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
