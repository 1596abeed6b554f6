package logstore

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/warrenmq/warren/cluster/stablestore"
)

func BenchmarkStoreLogs(b *testing.B) {
	for _, size := range []int{64 << 10, 256 << 10} {
		for _, kind := range []string{"segments", "bolt"} {
			b.Run(fmt.Sprintf("%s/%dKiB", kind, size>>10), func(b *testing.B) {
				var s raft.LogStore
				if kind == "bolt" {
					bolt, err := stablestore.OpenBoltLog(filepath.Join(b.TempDir(), "bolt"))
					if err != nil {
						b.Fatal(err)
					}
					defer bolt.Close()
					s = bolt
				} else {
					own, err := Open(Options{Dir: b.TempDir()})
					if err != nil {
						b.Fatal(err)
					}
					defer own.Close()
					s = own
				}
				l := entry(0, size)
				b.SetBytes(int64(size))
				for b.Loop() {
					l.Index++
					if err := s.StoreLog(l); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
