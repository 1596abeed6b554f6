package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ErrProperties is wrapped by every error about property bytes.
var ErrProperties = errors.New("message properties")

// Delivery modes.
const (
	Transient  uint8 = 1
	Persistent uint8 = 2
)

// Properties are the 14 basic properties of AMQP 0-9-1. An empty string, a zero number, the zero time and a nil table
// mean that a property is absent.
type Properties struct {
	ContentType     string
	ContentEncoding string
	Headers         Table
	DeliveryMode    uint8 // Transient or Persistent
	Priority        uint8
	CorrelationID   string
	ReplyTo         string
	Expiration      string // milliseconds, in digits
	MessageID       string
	Timestamp       time.Time // whole seconds
	Type            string
	UserID          string
	AppID           string
	ClusterID       string
}

// The bits of the flags word, in the order in which the properties follow it.
const (
	flagContentType     = 1 << 15
	flagContentEncoding = 1 << 14
	flagHeaders         = 1 << 13
	flagDeliveryMode    = 1 << 12
	flagPriority        = 1 << 11
	flagCorrelationID   = 1 << 10
	flagReplyTo         = 1 << 9
	flagExpiration      = 1 << 8
	flagMessageID       = 1 << 7
	flagTimestamp       = 1 << 6
	flagType            = 1 << 5
	flagUserID          = 1 << 4
	flagAppID           = 1 << 3
	flagClusterID       = 1 << 2
	flagUnused          = 1 << 1
	flagMore            = 1 << 0
)

// AppendProperties appends the property bytes of p, flags word first. It fails for a string above 255 bytes and for
// headers that no table can hold.
func AppendProperties(b []byte, p *Properties) ([]byte, error) {
	at, flags := len(b), uint16(0)
	b = append(b, 0, 0)
	var err error
	text := func(flag uint16, name, s string) {
		if s == "" {
			return
		}
		if len(s) > 255 && err == nil {
			err = fmt.Errorf("%w: %s of %d bytes, at most 255 are allowed", ErrProperties, name, len(s))
			return
		}
		flags |= flag
		b = append(append(b, byte(len(s))), s...)
	}
	text(flagContentType, "content type", p.ContentType)
	text(flagContentEncoding, "content encoding", p.ContentEncoding)
	if p.Headers != nil {
		flags |= flagHeaders
		b = append(b, 0, 0, 0, 0)
		from := len(b)
		var tableErr error
		if b, tableErr = EncodeTable(b, p.Headers); tableErr != nil {
			return b[:at], fmt.Errorf("%w: headers: %w", ErrProperties, tableErr)
		}
		binary.BigEndian.PutUint32(b[from-4:], uint32(len(b)-from))
	}
	if p.DeliveryMode != 0 {
		flags |= flagDeliveryMode
		b = append(b, p.DeliveryMode)
	}
	if p.Priority != 0 {
		flags |= flagPriority
		b = append(b, p.Priority)
	}
	text(flagCorrelationID, "correlation id", p.CorrelationID)
	text(flagReplyTo, "reply to", p.ReplyTo)
	text(flagExpiration, "expiration", p.Expiration)
	text(flagMessageID, "message id", p.MessageID)
	if !p.Timestamp.IsZero() {
		flags |= flagTimestamp
		b = binary.BigEndian.AppendUint64(b, uint64(p.Timestamp.Unix()))
	}
	text(flagType, "type", p.Type)
	text(flagUserID, "user id", p.UserID)
	text(flagAppID, "app id", p.AppID)
	text(flagClusterID, "cluster id", p.ClusterID)
	binary.BigEndian.PutUint16(b[at:], flags)
	if err != nil {
		return b[:at], err
	}
	return b, nil
}

// DecodeProperties reads property bytes. None at all are no properties; bytes behind the last one are an error.
func DecodeProperties(b []byte, p *Properties) error {
	*p = Properties{}
	if len(b) == 0 {
		return nil
	}
	o := octets{b: b}
	flags := uint16(o.uint(2))
	if flags&(flagUnused|flagMore) != 0 {
		return fmt.Errorf("%w: unknown flags 0x%04x", ErrProperties, flags)
	}
	text := func(flag uint16, s *string) {
		if flags&flag != 0 {
			*s = string(o.short())
		}
	}
	text(flagContentType, &p.ContentType)
	text(flagContentEncoding, &p.ContentEncoding)
	if flags&flagHeaders != 0 {
		t, err := DecodeTable(o.long())
		if err != nil {
			return fmt.Errorf("%w: headers: %w", ErrProperties, err)
		}
		p.Headers = t
	}
	if flags&flagDeliveryMode != 0 {
		p.DeliveryMode = uint8(o.uint(1))
	}
	if flags&flagPriority != 0 {
		p.Priority = uint8(o.uint(1))
	}
	text(flagCorrelationID, &p.CorrelationID)
	text(flagReplyTo, &p.ReplyTo)
	text(flagExpiration, &p.Expiration)
	text(flagMessageID, &p.MessageID)
	if flags&flagTimestamp != 0 {
		p.Timestamp = time.Unix(int64(o.uint(8)), 0).UTC()
	}
	text(flagType, &p.Type)
	text(flagUserID, &p.UserID)
	text(flagAppID, &p.AppID)
	text(flagClusterID, &p.ClusterID)
	if o.err == nil && len(o.b) > 0 {
		o.err = fmt.Errorf("%d bytes behind the last property", len(o.b))
	}
	if o.err != nil {
		return fmt.Errorf("%w: %w", ErrProperties, o.err)
	}
	return nil
}
