package native

import (
	"fmt"
	"unicode/utf8"

	"github.com/warrenmq/warren/protocol/amqp091"
)

// CheckTable returns an error when b is no field table that DecodeTable reads. It allocates nothing for one that is.
func CheckTable(b []byte) error { return amqp091.Table(b).Check() }

// CheckProperties returns an error when b are no property bytes that DecodeProperties reads, or when a text in them is
// not valid UTF-8, which AMQP 0-9-1 asks for. It allocates nothing for those that are.
func CheckProperties(b []byte) error {
	p := amqp091.PropertyBytes(b)
	if err := p.Check(); err != nil {
		return err
	}
	for property, value := range p.All() {
		if property.Text() && !utf8.Valid(value) {
			return fmt.Errorf("%w: a text that is not valid UTF-8: %q", ErrProperties, value)
		}
	}
	return nil
}
