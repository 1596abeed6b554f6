package fsm

import "strconv"

// The flags of property bytes, in the order in which the properties stand (AMQP 0-9-1, class basic).
const (
	contentTypeFlag     = 1 << 15
	contentEncodingFlag = 1 << 14
	headersFlag         = 1 << 13
	deliveryModeFlag    = 1 << 12
	priorityFlag        = 1 << 11
	correlationIDFlag   = 1 << 10
	replyToFlag         = 1 << 9
	expirationFlag      = 1 << 8
)

// propertyAt returns where a property up to the expiration is in property bytes, its length prefix included: an empty
// range where it would be when it is absent. ok is false when they are malformed up to there.
func propertyAt(p []byte, flag uint16) (from, to int, ok bool) {
	if len(p) < 2 {
		return 0, 0, len(p) == 0
	}
	flags := big.Uint16(p)
	to = 2
	for f := uint16(contentTypeFlag); f >= flag; f >>= 1 {
		from = to
		if flags&f == 0 {
			continue
		}
		var size int
		switch f {
		case deliveryModeFlag, priorityFlag:
			size = 1
		case headersFlag:
			if len(p)-from < 4 || uint64(big.Uint32(p[from:])) > uint64(len(p)) {
				return 0, 0, false
			}
			size = 4 + int(big.Uint32(p[from:]))
		default:
			if len(p) == from {
				return 0, 0, false
			}
			size = 1 + int(p[from])
		}
		if to = from + size; to > len(p) {
			return 0, 0, false
		}
	}
	return from, to, true
}

// priorityOf returns the priority of property bytes; ok is false without one.
func priorityOf(p []byte) (priority uint8, ok bool) {
	if len(p) < 2 || big.Uint16(p)&priorityFlag == 0 {
		return 0, false
	}
	from, to, ok := propertyAt(p, priorityFlag)
	if !ok || to-from != 1 {
		return 0, false
	}
	return p[from], true
}

// expirationOf returns the expiration of property bytes in ms and as it was written; ok is false without one.
func expirationOf(p []byte) (ms int64, text string, ok bool) {
	if len(p) < 2 || big.Uint16(p)&expirationFlag == 0 {
		return 0, "", false
	}
	from, to, ok := propertyAt(p, expirationFlag)
	if !ok || to-from < 1 {
		return 0, "", false
	}
	text = string(p[from+1 : to])
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > maxPeriod {
		return 0, "", false
	}
	return ms, text, true
}

// withoutExpiration returns property bytes without the expiration, as a copy if there is one.
func withoutExpiration(p []byte) []byte {
	from, to, ok := propertyAt(p, expirationFlag)
	if !ok || from == to {
		return p
	}
	out := append(append(make([]byte, 0, len(p)), p[:from]...), p[to:]...)
	big.PutUint16(out, big.Uint16(out)&^uint16(expirationFlag))
	return out
}

// withHeaders returns property bytes with another table of headers, as a copy.
func withHeaders(p, table []byte) []byte {
	from, to, ok := propertyAt(p, headersFlag)
	if !ok {
		return p
	}
	flags := uint16(headersFlag)
	var before, behind []byte
	if len(p) >= 2 {
		flags |= big.Uint16(p)
		before, behind = p[2:from], p[to:]
	}
	out := make([]byte, 0, 2+len(before)+4+len(table)+len(behind))
	out = append(big.AppendUint16(out, flags), before...)
	out = append(big.AppendUint32(out, uint32(len(table))), table...)
	return append(out, behind...)
}
