package main

import (
	"bytes"
	"os"
	"testing"
)

// TestGeneratedCodeIsFresh: what is checked in is what methods.txt says.
func TestGeneratedCodeIsFresh(t *testing.T) {
	text, err := os.ReadFile("../methods.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, err := generate(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile("../" + name)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what methods.txt describes (%v): run go generate ./protocol/amqp091", name, err)
		}
	}
}

func TestDescriptionErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"10 open C":                        `line 1: neither a class nor a method of one: "10 open C"`,
		"class a 1\n\n10 open X":           `line 3: "X" says neither C nor S`,
		"class a 1\n10 open C name:string": `line 2: field "name:string" has no known type`,
		"class a x":                        `line 1: strconv.ParseUint: parsing "x": invalid syntax`,
	} {
		if _, err := parse(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
