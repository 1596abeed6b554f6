package snapshotstore

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path"

	"github.com/hashicorp/raft"
)

// A sealed file is a magic word, the length of its body, the body's CRC-32C and the body.
const (
	metaMagic   = "WRNSNM\x00\x01" // the last byte is the format's version
	layoutMagic = "WRNSNL\x00\x02"
	sealedHead  = 20
	maxSealed   = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrDamaged is what reading a damaged snapshot fails with. It names the file and the offset.
type ErrDamaged struct {
	File   string
	Offset int64
	What   string
}

func (e *ErrDamaged) Error() string {
	return fmt.Sprintf("snapshot file %s is damaged at offset %d: %s", e.File, e.Offset, e.What)
}

// writeSealed makes a sealed file and syncs it.
func (s *Store) writeSealed(name, magic string, body []byte) error {
	b := append(make([]byte, 0, sealedHead+len(body)), magic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(body, castagnoli))
	b = append(b, body...)
	f, err := s.fs.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// readSealed returns the body of a sealed file.
func (s *Store) readSealed(name, magic string) ([]byte, error) {
	f, err := s.fs.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	if info.Size() > maxSealed {
		return nil, &ErrDamaged{name, 0, "it is too large"}
	}
	b := make([]byte, info.Size())
	if n, err := io.ReadFull(f, b); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, &ErrDamaged{name, int64(n), err.Error()}
	} else if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return unseal(name, magic, b)
}

func unseal(name, magic string, b []byte) ([]byte, error) {
	if len(b) < sealedHead || string(b[:len(magic)]) != magic {
		return nil, &ErrDamaged{name, 0, "it does not begin as it must"}
	}
	body := b[sealedHead:]
	if binary.LittleEndian.Uint64(b[8:]) != uint64(len(body)) {
		return nil, &ErrDamaged{name, 8, "its length is wrong"}
	}
	if binary.LittleEndian.Uint32(b[16:]) != crc32.Checksum(body, castagnoli) {
		return nil, &ErrDamaged{name, sealedHead, "its checksum does not match"}
	}
	return body, nil
}

func (s *Store) readMeta(id string) (*raft.SnapshotMeta, error) {
	name := path.Join(s.dir, id, metaFile)
	body, err := s.readSealed(name, metaMagic)
	if err != nil {
		return nil, err
	}
	meta := new(raft.SnapshotMeta)
	if err := json.Unmarshal(body, meta); err != nil {
		return nil, &ErrDamaged{name, sealedHead, err.Error()}
	}
	if meta.ID != id {
		return nil, &ErrDamaged{name, sealedHead, fmt.Sprintf("it is the meta file of snapshot %s", meta.ID)}
	}
	return meta, nil
}
