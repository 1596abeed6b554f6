package native

import "github.com/warrenmq/warren/protocol/amqp091"

// ErrProperties is wrapped by every error about property bytes.
var ErrProperties = amqp091.ErrProperties

// Delivery modes.
const (
	Transient  = amqp091.Transient
	Persistent = amqp091.Persistent
)

// Properties are the 14 basic properties of AMQP 0-9-1. An empty string, a zero number, the zero time and a nil table
// mean that a property is absent.
type Properties = amqp091.Properties

// AppendProperties appends the property bytes of p, flags word first. It fails for a string above 255 bytes and for
// headers that no table can hold.
func AppendProperties(b []byte, p *Properties) ([]byte, error) { return amqp091.AppendProperties(b, p) }

// DecodeProperties reads property bytes. None at all are no properties; bytes behind the last one are an error.
func DecodeProperties(b []byte, p *Properties) error { return amqp091.DecodeProperties(b, p) }
