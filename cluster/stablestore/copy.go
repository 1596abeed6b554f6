package stablestore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"

	"github.com/warrenmq/warren/fsm/store/vfs"
)

// The copy is a file of two slots that are written in turn, so that a torn write spoils only the older values. A new
// copy has both slots written before it counts: a file that is shorter never held anything that was promised.
const (
	slotMagic = "WARRSTC1" // ends in the number of the format
	slotHead  = 24         // magic, sequence, length of the body, checksum
	slotSize  = 4096       // bytes; the values are a few hundred
)

// sideCopy is the second place that holds all values. It is not safe for concurrent use.
type sideCopy struct {
	file     vfs.File
	sequence uint64            // of the newest slot
	values   map[string][]byte // that were found, then those that were written
	doubtful bool              // a slot that was written cannot be read: the values may not be the newest ones
}

func openCopy(fs vfs.FS, name string) (*sideCopy, error) {
	f, err := fs.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	data := make([]byte, 2*slotSize)
	n, err := f.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		_ = f.Close()
		return nil, err
	}
	c := &sideCopy{file: f}
	for slot := 0; slot*slotSize < n; slot++ {
		sequence, values, ok := decodeSlot(data[slot*slotSize : min(n, (slot+1)*slotSize)])
		switch {
		case !ok:
			c.doubtful = true
		case sequence > c.sequence:
			c.sequence, c.values = sequence, values
		}
	}
	if c.sequence == 0 && n <= slotSize {
		c.doubtful = false // its making was cut short
	}
	return c, nil
}

// write makes all values durable, unless the file holds exactly these already.
func (c *sideCopy) write(values map[string][]byte) error {
	fresh := c.sequence == 0
	if !fresh && !c.doubtful && maps.EqualFunc(c.values, values, bytes.Equal) {
		return nil
	}
	err := c.writeSlot(values)
	if err == nil && fresh {
		err = c.writeSlot(values)
	}
	if err == nil {
		c.values, c.doubtful = values, false
	}
	return err
}

// writeSlot writes the slot that does not hold the newest values.
func (c *sideCopy) writeSlot(values map[string][]byte) error {
	b, err := encodeSlot(c.sequence+1, values)
	if err != nil {
		return err
	}
	if _, err := c.file.WriteAt(b, int64(c.sequence%2)*slotSize); err != nil {
		return err
	}
	if err := c.file.Sync(); err != nil {
		return err
	}
	c.sequence++
	return nil
}

func encodeSlot(sequence uint64, values map[string][]byte) ([]byte, error) {
	body, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	if slotHead+len(body) > slotSize {
		return nil, fmt.Errorf("stable store: %d bytes of values; the most is %d", len(body), slotSize-slotHead)
	}
	b := append(make([]byte, 0, slotSize), slotMagic...)
	b = binary.LittleEndian.AppendUint64(b, sequence)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = append(b, body...)
	binary.LittleEndian.PutUint32(b[20:], slotSum(b))
	return b, nil
}

// slotSum covers everything but itself.
func slotSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:20], castagnoli), castagnoli, b[slotHead:])
}

func decodeSlot(b []byte) (sequence uint64, values map[string][]byte, ok bool) {
	if len(b) < slotHead || string(b[:8]) != slotMagic {
		return 0, nil, false
	}
	length := uint64(binary.LittleEndian.Uint32(b[16:]))
	if length > uint64(len(b)-slotHead) {
		return 0, nil, false
	}
	b = b[:slotHead+int(length)]
	if binary.LittleEndian.Uint32(b[20:]) != slotSum(b) || json.Unmarshal(b[slotHead:], &values) != nil {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint64(b[8:]), values, true
}
