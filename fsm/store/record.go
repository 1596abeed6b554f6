package store

import (
	"encoding/binary"
	"hash/crc32"
)

// Record is a message as it is kept in a file: what never changes of it, and its place in its queue.
type Record struct {
	Sequence         uint64
	Hash             uint64
	ID               [2]uint64
	Transient        bool
	Priority         uint8
	Deaths           uint8 // see content
	Expires          int64 // batch clock, ms; 0 is never
	Exchange         string
	RoutingKey       string
	Properties, Body []byte
}

const (
	frameHead  = 8  // length and checksum
	recordHead = 42 // of a record's payload, before its names
	extraBytes = 10 // behind the head of a record and behind an index entry, when there is any of it
	blockHead  = 16 // of an index block's payload
	entryBytes = 32
	// maxFrame bounds what a length field may say: the largest body and its properties, with room.
	maxFrame = 1 << 30

	kindRecord = 1
	kindIndex  = 2

	flagTransient = 1
	flagExtra     = 2
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	little     = binary.LittleEndian
)

// checksum is the CRC-32C of b.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// FrameSize returns the bytes that a record takes in a file.
func (r *Record) FrameSize() int64 {
	size := int64(frameHead + recordHead)
	if r.extra() {
		size += extraBytes
	}
	return size + int64(len(r.Exchange)) + int64(len(r.RoutingKey)) + int64(len(r.Properties)) + int64(len(r.Body))
}

// AppendFrame appends the record as a frame. Names longer than 65,535 bytes cannot be kept; the commands allow 255.
func (r *Record) AppendFrame(b []byte) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHead+recordHead)...)
	p := b[start+frameHead:]
	p[0] = kindRecord
	if r.Transient {
		p[1] = flagTransient
	}
	little.PutUint16(p[2:], uint16(len(r.Exchange)))
	little.PutUint16(p[4:], uint16(len(r.RoutingKey)))
	little.PutUint32(p[6:], uint32(len(r.Properties)))
	little.PutUint64(p[10:], r.Sequence)
	little.PutUint64(p[18:], r.Hash)
	little.PutUint64(p[26:], r.ID[0])
	little.PutUint64(p[34:], r.ID[1])
	if r.extra() {
		p[1] |= flagExtra
		b = appendExtra(b, r.Expires, r.Priority, r.Deaths)
	}
	b = append(b, r.Exchange...)
	b = append(b, r.RoutingKey...)
	b = append(b, r.Properties...)
	b = append(b, r.Body...)
	return sealFrame(b, start)
}

func (r *Record) extra() bool { return r.Priority != 0 || r.Expires != 0 || r.Deaths != 0 }

func appendExtra(b []byte, expires int64, priority, deaths uint8) []byte {
	return append(little.AppendUint64(b, uint64(expires)), priority, deaths)
}

// cutExtra reads what appendExtra wrote at the start of b; a short b has nothing.
func cutExtra(b []byte) (expires int64, priority, deaths uint8, rest []byte, ok bool) {
	if len(b) < extraBytes {
		return 0, 0, 0, b, false
	}
	return int64(little.Uint64(b)), b[8], b[9], b[extraBytes:], true
}

// sealFrame fills in the head of the frame that starts at start and ends with b.
func sealFrame(b []byte, start int) []byte {
	payload := b[start+frameHead:]
	little.PutUint32(b[start:], uint32(len(payload)))
	little.PutUint32(b[start+4:], checksum(payload))
	return b
}

// openFrame checks the frame at the start of b and returns its payload; what is a reason when it is not whole.
func openFrame(b []byte) (payload []byte, what string) {
	if len(b) < frameHead {
		return nil, "the file ends inside a frame's head"
	}
	length := little.Uint32(b)
	if length == 0 || length > maxFrame {
		return nil, "a frame has an impossible length"
	}
	if uint64(len(b)-frameHead) < uint64(length) {
		return nil, "the file ends inside a frame"
	}
	payload = b[frameHead : frameHead+int(length)]
	if checksum(payload) != little.Uint32(b[4:]) {
		return nil, "a frame's checksum does not match"
	}
	return payload, ""
}

// DecodeFrame reads the record at the start of b and returns the bytes it took. The record's slices and strings
// alias b, which must not change afterwards. When what is not empty it says why there is no record.
func DecodeFrame(b []byte, r *Record) (size int, what string) {
	p, what := openFrame(b)
	if what != "" {
		return 0, what
	}
	if p[0] != kindRecord || len(p) < recordHead {
		return 0, "a frame that should be a record is none"
	}
	exchange, key, properties := int(little.Uint16(p[2:])), int(little.Uint16(p[4:])), int(little.Uint32(p[6:]))
	names := p[recordHead:]
	var expires int64
	var priority, deaths uint8
	if p[1]&flagExtra != 0 {
		var ok bool
		if expires, priority, deaths, names, ok = cutExtra(names); !ok {
			return 0, "a record ends inside its head"
		}
	}
	if exchange+key+properties > len(names) {
		return 0, "a record's lengths do not fit its frame"
	}
	*r = Record{
		Transient: p[1]&flagTransient != 0,
		Expires:   expires,
		Priority:  priority,
		Deaths:    deaths,
		Sequence:  little.Uint64(p[10:]),
		Hash:      little.Uint64(p[18:]),
		ID:        [2]uint64{little.Uint64(p[26:]), little.Uint64(p[34:])},
	}
	r.Exchange, r.RoutingKey = alias(names[:exchange]), alias(names[exchange:exchange+key])
	rest := names[exchange+key:]
	r.Properties, r.Body = rest[:properties:properties], rest[properties:len(rest):len(rest)]
	return frameHead + len(p), ""
}

// Entry is a record's line in an index block.
type Entry struct {
	Sequence  uint64
	Hash      uint64
	Offset    int64
	Length    uint32 // of the frame
	Body      uint32 // bytes
	Transient bool
	Priority  uint8
	Expires   int64
}

// Entry returns the line of a record that has no place yet.
func (r *Record) Entry() Entry {
	return Entry{Sequence: r.Sequence, Hash: r.Hash, Transient: r.Transient, Priority: r.Priority, Expires: r.Expires, Body: uint32(len(r.Body))}
}

// The flags in an entry's offset.
const (
	entryTransient = 1 << 63
	entryExtra     = 1 << 62
)

func appendEntry(b []byte, e Entry) []byte {
	offset := uint64(e.Offset)
	if e.Transient {
		offset |= entryTransient
	}
	extra := e.Priority != 0 || e.Expires != 0
	if extra {
		offset |= entryExtra
	}
	b = little.AppendUint64(b, e.Sequence)
	b = little.AppendUint64(b, e.Hash)
	b = little.AppendUint64(b, offset)
	b = little.AppendUint32(b, e.Length)
	b = little.AppendUint32(b, e.Body)
	if extra {
		b = appendExtra(b, e.Expires, e.Priority, 0)
	}
	return b
}

// blockOf returns the count of an index block's entries and the offset of the block before it; what is a reason when the
// payload is no index block.
func blockOf(p []byte) (count uint64, previous int64, what string) {
	if len(p) < blockHead || p[0] != kindIndex {
		return 0, 0, "a frame that should be an index block is none"
	}
	count = uint64(little.Uint32(p[4:]))
	size, rest := count*entryBytes, uint64(len(p)-blockHead)
	if rest < size || rest > size+count*extraBytes {
		return 0, 0, "an index block's count does not fit its length"
	}
	return count, int64(little.Uint64(p[8:])), ""
}

// decodeBlock appends the entries of an index block, which blockOf has checked; ok is false when they are not all there.
func decodeBlock(p []byte, into []Entry) (entries []Entry, ok bool) {
	count := little.Uint32(p[4:])
	for p = p[blockHead:]; count > 0; count-- {
		if len(p) < entryBytes {
			return into, false
		}
		offset := little.Uint64(p[16:])
		e := Entry{
			Sequence: little.Uint64(p), Hash: little.Uint64(p[8:]),
			Offset: int64(offset &^ (entryTransient | entryExtra)), Transient: offset&entryTransient != 0,
			Length: little.Uint32(p[24:]), Body: little.Uint32(p[28:]),
		}
		p = p[entryBytes:]
		if offset&entryExtra != 0 {
			if e.Expires, e.Priority, _, p, ok = cutExtra(p); !ok {
				return into, false
			}
		}
		into = append(into, e)
	}
	return into, len(p) == 0
}

// FrameHead is how many bytes of a frame FrameLength needs.
const FrameHead = frameHead

// FrameLength returns the bytes that the frame beginning with head claims to take; they may be no frame at all.
func FrameLength(head []byte) int64 { return frameHead + int64(little.Uint32(head)) }
