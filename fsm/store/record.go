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
	Exchange         string
	RoutingKey       string
	Properties, Body []byte
}

const (
	frameHead  = 8  // length and checksum
	recordHead = 42 // of a record's payload, before its names
	blockHead  = 16 // of an index block's payload
	entryBytes = 32
	// maxFrame bounds what a length field may say: the largest body and its properties, with room.
	maxFrame = 1 << 30

	kindRecord = 1
	kindIndex  = 2

	flagTransient = 1
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	little     = binary.LittleEndian
)

// checksum is the CRC-32C of b.
func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// FrameSize returns the bytes that a record takes in a file.
func (r *Record) FrameSize() int64 {
	return frameHead + recordHead + int64(len(r.Exchange)) + int64(len(r.RoutingKey)) + int64(len(r.Properties)) + int64(len(r.Body))
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
	b = append(b, r.Exchange...)
	b = append(b, r.RoutingKey...)
	b = append(b, r.Properties...)
	b = append(b, r.Body...)
	return sealFrame(b, start)
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
	if recordHead+exchange+key+properties > len(p) {
		return 0, "a record's lengths do not fit its frame"
	}
	*r = Record{
		Transient: p[1]&flagTransient != 0,
		Sequence:  little.Uint64(p[10:]),
		Hash:      little.Uint64(p[18:]),
		ID:        [2]uint64{little.Uint64(p[26:]), little.Uint64(p[34:])},
	}
	names := p[recordHead:]
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
}

const entryTransient = 1 << 63

func appendEntry(b []byte, e Entry) []byte {
	offset := uint64(e.Offset)
	if e.Transient {
		offset |= entryTransient
	}
	b = little.AppendUint64(b, e.Sequence)
	b = little.AppendUint64(b, e.Hash)
	b = little.AppendUint64(b, offset)
	b = little.AppendUint32(b, e.Length)
	return little.AppendUint32(b, e.Body)
}

// blockOf returns the count of an index block's entries and the offset of the block before it; what is a reason when the
// payload is no index block.
func blockOf(p []byte) (count uint64, previous int64, what string) {
	if len(p) < blockHead || p[0] != kindIndex {
		return 0, 0, "a frame that should be an index block is none"
	}
	count = uint64(little.Uint32(p[4:]))
	if uint64(len(p)-blockHead) != count*entryBytes {
		return 0, 0, "an index block's count does not fit its length"
	}
	return count, int64(little.Uint64(p[8:])), ""
}

// decodeBlock appends the entries of an index block, which blockOf has checked.
func decodeBlock(p []byte, into []Entry) []Entry {
	for p = p[blockHead:]; len(p) > 0; p = p[entryBytes:] {
		offset := little.Uint64(p[16:])
		into = append(into, Entry{
			Sequence: little.Uint64(p), Hash: little.Uint64(p[8:]),
			Offset: int64(offset &^ entryTransient), Transient: offset&entryTransient != 0,
			Length: little.Uint32(p[24:]), Body: little.Uint32(p[28:]),
		})
	}
	return into
}

// FrameHead is how many bytes of a frame FrameLength needs.
const FrameHead = frameHead

// FrameLength returns the bytes that the frame beginning with head claims to take; they may be no frame at all.
func FrameLength(head []byte) int64 { return frameHead + int64(little.Uint32(head)) }
