package native

import "github.com/warrenmq/warren/protocol/amqp091"

// ErrTable is wrapped by every error about a field table, its encoding or a value it cannot hold.
var ErrTable = amqp091.ErrTable

// Table is an AMQP field table. The values, with the letter they travel under:
//
//	bool t, int8 b, uint8 B, int16 s, uint16 u, int32 I, uint32 i, int64 l, float32 f, float64 d, Decimal D,
//	string S, []byte x, time.Time T (whole seconds), nil V, Table and map[string]any F, []any A
//
// Besides, int and uint travel as l. Decoding also reads L as int64. Tables and arrays may be nested 64 deep and have 65,536
// elements in all.
type Table = amqp091.Map

// Decimal is Value divided by ten to the power of Scale.
type Decimal = amqp091.Decimal

// EncodeTable appends a table's bytes without their length prefix, fields sorted by name, so that equal tables have
// equal bytes. It fails for a value of another type, a name above 255 bytes, or a table beyond the bounds.
func EncodeTable(b []byte, t map[string]any) ([]byte, error) { return amqp091.AppendMap(b, t) }

// DecodeTable reads a table from its bytes without their length prefix, to their end. Byte values alias b; of several
// fields of one name the first counts.
func DecodeTable(b []byte) (Table, error) { return amqp091.Table(b).Map() }
