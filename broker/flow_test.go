package broker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatermarksHoldPublishesUpAndLetThemGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used, relieved atomic.Uint64
		b := New(Config{Watermarks: Watermarks{MemoryUsed: used.Load, MaxMemory: 1 << 20, Relieve: func() error { relieved.Add(1); return nil }}})
		ctx, cancel := context.WithCancel(t.Context())
		go b.watchWatermarks(ctx)
		synctest.Wait()
		if err := b.flow.wait(ctx, nil); err != nil {
			t.Fatalf("below the watermark: %v", err)
		}
		used.Store(2 << 20)
		time.Sleep(watermarkInterval)
		synctest.Wait()
		if reason, _ := b.Flow(); reason == "" {
			t.Fatal("above the watermark nobody is held up")
		}
		passed := make(chan error, 1)
		go func() { passed <- b.flow.wait(ctx, nil) }()
		time.Sleep(10 * relieveInterval)
		synctest.Wait()
		if n := relieved.Load(); n < 9 || n > 12 {
			t.Fatalf("%d snapshots in 50 s to free memory", n)
		}
		select {
		case err := <-passed:
			t.Fatalf("a publish went on above the watermark: %v", err)
		default:
		}
		used.Store(0)
		if err := <-passed; err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
	})
}

func TestDiskWatermark(t *testing.T) {
	w := Watermarks{DiskFree: func() (uint64, error) { return 100 << 20, nil }, MinDiskFree: 200 << 20}
	if l := w.measure(new(tides), false); l.reason == "" || l.short != "low on disk" || l.memory {
		t.Fatalf("with 100 MiB free of 200: %+v", l)
	}
}
