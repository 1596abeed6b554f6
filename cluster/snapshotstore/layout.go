package snapshotstore

import "encoding/binary"

// part is a piece of a snapshot's stream: the next bytes of the stream file, or ranges of a linked file.
type part struct {
	bytes  int64      // of the stream file; 0 for a linked file
	file   string     // base name
	ranges [][2]int64 // [from, to), ascending
}

func (p *part) size() int64 {
	n := p.bytes
	for _, r := range p.ranges {
		n += r[1] - r[0]
	}
	return n
}

// layout is in which order bytes of the stream file and ranges of linked files follow each other.
type layout struct {
	sum   uint32 // CRC-32C of the stream file
	parts []part
}

func (l *layout) encode() []byte {
	parts := l.parts
	b := binary.LittleEndian.AppendUint32(nil, l.sum)
	b = binary.AppendUvarint(b, uint64(len(parts)))
	for i := range parts {
		p := &parts[i]
		b = binary.AppendUvarint(b, uint64(p.bytes))
		b = binary.AppendUvarint(b, uint64(len(p.file)))
		b = append(b, p.file...)
		b = binary.AppendUvarint(b, uint64(len(p.ranges)))
		var at int64
		for _, r := range p.ranges {
			b = binary.AppendUvarint(b, uint64(r[0]-at))
			b = binary.AppendUvarint(b, uint64(r[1]-r[0]))
			at = r[1]
		}
	}
	return b
}

// decodeLayout is the inverse of encode; ok is false for bytes that it does not make.
func decodeLayout(b []byte) (l layout, ok bool) {
	if len(b) < 4 {
		return l, false
	}
	l.sum, b = binary.LittleEndian.Uint32(b), b[4:]
	ok = true
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > 1<<62 {
			ok, b = false, nil
			return 0
		}
		b = b[n:]
		return v
	}
	for left := number(); left > 0 && ok; left-- {
		p := part{bytes: int64(number())}
		name := number()
		if name > uint64(len(b)) {
			return l, false
		}
		p.file, b = string(b[:name]), b[name:]
		ranges := number()
		if ranges > uint64(len(b)/2) {
			return l, false
		}
		var at int64
		for range ranges {
			gap, length := int64(number()), int64(number())
			if at+gap < at || at+gap+length < at+gap {
				return l, false
			}
			p.ranges = append(p.ranges, [2]int64{at + gap, at + gap + length})
			at += gap + length
		}
		l.parts = append(l.parts, p)
	}
	return l, ok && len(b) == 0
}
