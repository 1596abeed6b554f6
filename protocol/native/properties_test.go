package native

import (
	"errors"
	"reflect"
	"testing"
)

// TestPropertiesAndTablesAreThoseOfAMQP: the bytes' own tests are in protocol/amqp091.
func TestPropertiesAndTablesAreThoseOfAMQP(t *testing.T) {
	p := Properties{MessageID: "m", Headers: Table{"k": int32(1)}, DeliveryMode: Persistent}
	b, err := AppendProperties(nil, &p)
	if err != nil {
		t.Fatal(err)
	}
	var got Properties
	if err := DecodeProperties(b, &got); err != nil || !reflect.DeepEqual(got, p) {
		t.Fatalf("%+v, %v", got, err)
	}
	table := Table{"a": []any{nil, Table{"x": "y"}}, "d": Decimal{Scale: 1, Value: 2}}
	if b, err = EncodeTable(nil, table); err != nil || CheckTable(b) != nil {
		t.Fatal(err, CheckTable(b))
	}
	if got, err := DecodeTable(b); err != nil || !reflect.DeepEqual(got, table) {
		t.Fatalf("%v, %v", got, err)
	}
	if err := CheckTable(b[1:]); !errors.Is(err, ErrTable) {
		t.Fatal(err)
	}
}

func TestPropertyTextsAreUTF8(t *testing.T) {
	b, err := AppendProperties(nil, &Properties{ContentType: "text/plain", AppID: "a\xff"})
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckProperties(b); !errors.Is(err, ErrProperties) {
		t.Fatal(err)
	}
}

func TestChecksAllocateNothing(t *testing.T) {
	b, err := AppendProperties(nil, &Properties{ContentType: "text/plain", Headers: Table{"a": []any{nil, Table{"x": 1}}}, DeliveryMode: Persistent, AppID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { err = CheckProperties(b) }); n != 0 || err != nil {
		t.Fatalf("%v allocations, %v", n, err)
	}
}
