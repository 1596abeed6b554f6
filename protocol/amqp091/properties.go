package amqp091

import (
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

// Properties are the 14 basic properties as Go values. An empty string, a zero number, the zero time and a nil map mean that a
// property is absent.
type Properties struct {
	ContentType     string
	ContentEncoding string
	Headers         Map
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

// AppendProperties appends the property bytes of p, flags word first. It fails for a string above 255 bytes and for
// headers that no table can hold.
func AppendProperties(b []byte, p *Properties) ([]byte, error) {
	at, flags := len(b), uint16(0)
	b = append(b, 0, 0)
	var err error
	text := func(flag Property, name, s string) {
		if s == "" {
			return
		}
		if len(s) > maxShort && err == nil {
			err = fmt.Errorf("%w: %s of %d bytes, at most %d are allowed", ErrProperties, name, len(s), maxShort)
			return
		}
		flags |= uint16(flag)
		b = append(append(b, byte(len(s))), s...)
	}
	text(PropertyContentType, "content type", p.ContentType)
	text(PropertyContentEncoding, "content encoding", p.ContentEncoding)
	if p.Headers != nil {
		flags |= uint16(PropertyHeaders)
		b = append(b, 0, 0, 0, 0)
		from := len(b)
		var tableErr error
		if b, tableErr = AppendMap(b, p.Headers); tableErr != nil {
			return b[:at], fmt.Errorf("%w: headers: %w", ErrProperties, tableErr)
		}
		be.PutUint32(b[from-4:], uint32(len(b)-from))
	}
	if p.DeliveryMode != 0 {
		flags |= uint16(PropertyDeliveryMode)
		b = append(b, p.DeliveryMode)
	}
	if p.Priority != 0 {
		flags |= uint16(PropertyPriority)
		b = append(b, p.Priority)
	}
	text(PropertyCorrelationID, "correlation id", p.CorrelationID)
	text(PropertyReplyTo, "reply to", p.ReplyTo)
	text(PropertyExpiration, "expiration", p.Expiration)
	text(PropertyMessageID, "message id", p.MessageID)
	if !p.Timestamp.IsZero() {
		flags |= uint16(PropertyTimestamp)
		b = be.AppendUint64(b, uint64(p.Timestamp.Unix()))
	}
	text(PropertyType, "type", p.Type)
	text(PropertyUserID, "user id", p.UserID)
	text(PropertyAppID, "app id", p.AppID)
	text(PropertyClusterID, "cluster id", p.ClusterID)
	be.PutUint16(b[at:], flags)
	if err != nil {
		return b[:at], err
	}
	return b, nil
}

// DecodeProperties reads property bytes. None at all are no properties. Byte values in the headers alias b. The error wraps
// ErrProperties.
func DecodeProperties(b []byte, p *Properties) error {
	*p = Properties{}
	raw := PropertyBytes(b)
	if err := raw.Check(); err != nil {
		return err
	}
	for property, value := range raw.All() {
		switch property {
		case PropertyContentType:
			p.ContentType = string(value)
		case PropertyContentEncoding:
			p.ContentEncoding = string(value)
		case PropertyHeaders:
			p.Headers = Table(value).decode()
		case PropertyDeliveryMode:
			p.DeliveryMode = value[0]
		case PropertyPriority:
			p.Priority = value[0]
		case PropertyCorrelationID:
			p.CorrelationID = string(value)
		case PropertyReplyTo:
			p.ReplyTo = string(value)
		case PropertyExpiration:
			p.Expiration = string(value)
		case PropertyMessageID:
			p.MessageID = string(value)
		case PropertyTimestamp:
			p.Timestamp = time.Unix(int64(be.Uint64(value)), 0).UTC()
		case PropertyType:
			p.Type = string(value)
		case PropertyUserID:
			p.UserID = string(value)
		case PropertyAppID:
			p.AppID = string(value)
		case PropertyClusterID:
			p.ClusterID = string(value)
		}
	}
	return nil
}
