package cluster

import (
	"context"
	"io"
	"sync"
	"time"
)

// MinSnapshotRate is the least Config.SnapshotRate but 0, in bytes a second: it may be shared by several followers, and raft
// gives a transfer 5 s for each 256 KiB.
const MinSnapshotRate = 1 << 20

// rateSteps is in how many parts a second's bytes go: so short is each wait.
const rateSteps = 16

// rate is how many bytes a second go through all its readers together. It is safe for concurrent use.
type rate struct {
	bytes int64 // 0 is no bound

	mu   sync.Mutex // guards free
	free time.Time  // when all that went has had its time
}

// reader returns r at this rate. A Read that waits ends with the context.
func (r *rate) reader(ctx context.Context, of io.Reader) io.Reader {
	if r.bytes == 0 {
		return of
	}
	return &ratedReader{of, r, ctx}
}

// spend waits until so many bytes may go.
func (r *rate) spend(ctx context.Context, n int) error {
	r.mu.Lock()
	if now := time.Now(); r.free.Before(now) {
		r.free = now
	}
	wait := time.Until(r.free)
	r.free = r.free.Add(time.Duration(float64(n) / float64(r.bytes) * float64(time.Second)))
	r.mu.Unlock()
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type ratedReader struct {
	io.Reader
	rate *rate
	ctx  context.Context // of the node
}

func (r *ratedReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b[:min(int64(len(b)), r.rate.bytes/rateSteps)])
	if n > 0 {
		if late := r.rate.spend(r.ctx, n); late != nil {
			return 0, late
		}
	}
	return n, err
}
