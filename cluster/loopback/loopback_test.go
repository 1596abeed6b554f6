package loopback

import (
	"net"
	"slices"
	"testing"
)

func TestAddressesAreFreeAndNotGivenTwice(t *testing.T) {
	all := map[string]bool{}
	for range 20 {
		some, err := Addresses(15)
		if err != nil || len(some) != 15 {
			t.Fatal(some, err)
		}
		for _, a := range some {
			if all[a] {
				t.Errorf("%s was given twice", a)
			}
			all[a] = true
			l, err := net.Listen("tcp", a)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
		}
	}
}

func TestPortsComeAgainWhenAllAreUsedUp(t *testing.T) {
	first, err := Addresses(1)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", first[0]) // it is passed over
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for range 3 {
		some, err := Addresses(400)
		if err != nil || slices.Contains(some, first[0]) {
			t.Fatal(len(some), err)
		}
	}
	if len(held) > maxBlocks {
		t.Errorf("%d blocks are held", len(held))
	}
}

func TestMoreAddressesThanOneProcessMayHaveAreRefused(t *testing.T) {
	if some, err := Addresses(maxBlocks * blockSize * 2); err == nil {
		t.Errorf("%d addresses", len(some))
	}
}
