package logstore

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/hashicorp/raft"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var le = binary.LittleEndian

// Sizes in bytes. Groups and records begin at multiples of 8.
const (
	groupHeaderSize  = 40
	recordHeaderSize = 40
	groupMagic       = 0x50524757 // "WGRP"
)

var errBad = errors.New("checksum or length does not fit")

func padded(n int) int { return (n + 7) &^ 7 }

func recordSize(l *raft.Log) int {
	return recordHeaderSize + padded(len(l.Data)+len(l.Extensions))
}

// appendRecord appends a record: length of data and extensions, checksum, index, term, appended at (Unix ns, 0 for
// none), type, three zeros, length of extensions; then data, extensions and padding. It returns the checksum too.
func appendRecord(b []byte, l *raft.Log, seed, prev uint32) ([]byte, uint32) {
	start := len(b)
	b = le.AppendUint32(b, uint32(len(l.Data)+len(l.Extensions)))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, l.Index)
	b = le.AppendUint64(b, l.Term)
	var at int64
	if !l.AppendedAt.IsZero() {
		at = l.AppendedAt.UnixNano()
	}
	b = le.AppendUint64(b, uint64(at))
	b = append(b, byte(l.Type), 0, 0, 0)
	b = le.AppendUint32(b, uint32(len(l.Extensions)))
	b = append(b, l.Data...)
	b = append(b, l.Extensions...)
	for len(b)%8 != start%8 {
		b = append(b, 0)
	}
	sum := recordSum(b[start:], seed, prev)
	le.PutUint32(b[start+4:], sum)
	return b, sum
}

func recordSum(rec []byte, seed, prev uint32) uint32 {
	sum := crc32.Update(prev^seed, castagnoli, rec[:4])
	return crc32.Update(sum, castagnoli, rec[8:])
}

// decodeRecord reads the record at the start of b into l, whose slices alias b. It returns the record's size and
// checksum.
func decodeRecord(b []byte, l *raft.Log, seed, prev uint32) (int, uint32, error) {
	if len(b) < recordHeaderSize {
		return 0, 0, errBad
	}
	payload, ext := uint64(le.Uint32(b)), uint64(le.Uint32(b[36:]))
	if payload > uint64(len(b)) || ext > payload || recordHeaderSize+padded(int(payload)) > len(b) {
		return 0, 0, errBad
	}
	size := recordHeaderSize + padded(int(payload))
	sum := recordSum(b[:size], seed, prev)
	if sum != le.Uint32(b[4:]) {
		return 0, 0, errBad
	}
	*l = raft.Log{Index: le.Uint64(b[8:]), Term: le.Uint64(b[16:]), Type: raft.LogType(b[32])}
	if at := int64(le.Uint64(b[24:])); at != 0 {
		l.AppendedAt = time.Unix(0, at)
	}
	body := b[recordHeaderSize : recordHeaderSize+payload]
	if n := payload - ext; n > 0 {
		l.Data = body[:n:n]
	}
	if ext > 0 {
		l.Extensions = body[payload-ext : payload : payload]
	}
	return size, sum, nil
}

// groupHeader stands before the records of one StoreLogs.
type groupHeader struct {
	synced uint64 // every entry up to this index was synced before this group was written
	first  uint64 // index of the first record
	length uint32 // bytes of the records
	count  uint32
}

// put writes the header into b, for a group that begins at off.
func (g groupHeader) put(b []byte, off int64, seed uint32) {
	le.PutUint32(b, groupMagic)
	le.PutUint64(b[8:], uint64(off))
	le.PutUint64(b[16:], g.synced)
	le.PutUint64(b[24:], g.first)
	le.PutUint32(b[32:], g.length)
	le.PutUint32(b[36:], g.count)
	le.PutUint32(b[4:], crc32.Update(seed, castagnoli, b[8:groupHeaderSize]))
}

func decodeGroupHeader(b []byte, off int64, seed uint32) (groupHeader, bool) {
	if len(b) < groupHeaderSize || le.Uint32(b) != groupMagic || le.Uint64(b[8:]) != uint64(off) ||
		le.Uint32(b[4:]) != crc32.Update(seed, castagnoli, b[8:groupHeaderSize]) {
		return groupHeader{}, false
	}
	return groupHeader{le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint32(b[32:]), le.Uint32(b[36:])}, true
}
