// Package bench measures a cluster from outside: how many publishes it confirms, after how long, and how long messages
// take to their consumers. It also keeps account of every message, so that a run during failures shows what was lost.
package bench

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/warrenmq/warren/cmd/internal/ledger"
)

// Bounds of a run's end: how long confirms are waited for, and how long consumers go on without a delivery.
const (
	drainWithin = 30 * time.Second
	idleWithin  = 10 * time.Second
)

// What both protocols allow.
const (
	maxWindow   = 65_535 // unconfirmed publishes
	maxPrefetch = 65_535
)

// Options say what is run.
type Options struct {
	Publishers int
	Consumers  int
	Size       int           // bytes of a body, at least ledger.StampBytes
	Window     int           // unconfirmed publishes of each publisher
	Duration   time.Duration // of publishing
	Rate       float64       // publishes a second, all publishers together; 0: as fast as they are confirmed
	Queue      string        // "" makes one, and deletes it at the end
	Prefetch   int
	Timeout    time.Duration // of a request at the beginning and the end
	Protocol   Protocol
	// Progress, when not nil, is told once a second how many were confirmed and consumed so far.
	Progress func(elapsed time.Duration, confirmed, consumed uint64)
}

// Percentiles of latencies, in milliseconds.
type Percentiles struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// Result is what was measured. Rates are over the time of publishing; counts include what came after it.
type Result struct {
	ConfirmedPerSecond float64     `json:"confirmed_per_second"`
	ConsumedPerSecond  float64     `json:"consumed_per_second"`
	ConfirmMS          Percentiles `json:"confirm_ms"`
	EndToEndMS         Percentiles `json:"end_to_end_ms"`
	Errors             uint64      `json:"errors"`
	FirstError         string      `json:"first_error,omitempty"`

	Seconds    float64 `json:"seconds"`
	Published  uint64  `json:"published"`
	Confirmed  uint64  `json:"confirmed"`
	Delivered  uint64  `json:"delivered"`
	Duplicated uint64  `json:"duplicated"`
	Unmarked   uint64  `json:"duplicated_unmarked"`
	Lost       uint64  `json:"lost"` // confirmed but not delivered; 0 without consumers
	GapMS      float64 `json:"gap_ms"`
}

// run is the state of one Run.
type run struct {
	o      Options
	id     uint64
	begin  time.Time
	ledger *ledger.Ledger

	publishing context.Context // ends with the time of publishing
	draining   context.Context // ends when the last confirms are no longer waited for

	published, confirmed, consumed, failed atomic.Uint64
	lastConfirm, gap                       atomic.Int64 // nanoseconds since begin

	mu       sync.Mutex // guards all below
	confirms *hdrhistogram.Histogram
	ends     *hdrhistogram.Histogram
	first    error
}

// histogram reaches from a microsecond to ten minutes.
func histogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 600_000_000, 3) }

// Run measures. It ends some time after Options.Duration whatever the cluster does, earlier when ctx ends.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.check(); err != nil {
		return Result{}, err
	}
	var seed [8]byte
	rand.Read(seed[:])
	r := &run{o: o, id: binary.LittleEndian.Uint64(seed[:]), confirms: histogram(), ends: histogram()}
	r.ledger = ledger.New(r.id, o.Publishers)

	delete, err := r.declare(ctx)
	if err != nil {
		return Result{}, err
	}
	defer delete()
	return r.measure(ctx)
}

func (o *Options) check() error {
	switch {
	case o.Publishers < 1 || o.Publishers > 1000 || o.Consumers < 0 || o.Consumers > 1000:
		return errors.New("from 1 to 1000 publishers and up to 1000 consumers are possible")
	case o.Size < ledger.StampBytes:
		return fmt.Errorf("a body must have at least %d bytes", ledger.StampBytes)
	case o.Window < 1 || o.Window > maxWindow:
		return fmt.Errorf("the window must be from 1 to %d", maxWindow)
	case o.Prefetch < 1 || o.Prefetch > maxPrefetch:
		return fmt.Errorf("the prefetch must be from 1 to %d", maxPrefetch)
	case o.Duration <= 0 || o.Rate < 0:
		return errors.New("the duration must be above zero, and the rate not below it")
	}
	return nil
}

// declare makes the queue and returns what removes it.
func (r *run) declare(ctx context.Context) (func(), error) {
	delete := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Timeout)
		defer cancel()
		_ = r.o.Protocol.Delete(ctx, r.o.Queue)
	}
	if r.o.Queue != "" {
		delete = func() {}
	} else {
		r.o.Queue = fmt.Sprintf("warren-bench-%016x", r.id)
	}
	starting, cancel := context.WithTimeout(ctx, r.o.Timeout)
	defer cancel()
	return delete, r.o.Protocol.Declare(starting, r.o.Queue)
}

// measure runs publishers and consumers from beginning to end.
func (r *run) measure(ctx context.Context) (Result, error) {
	consuming, stopConsuming := context.WithCancel(ctx)
	defer stopConsuming()
	var publishers, consumers sync.WaitGroup
	defer consumers.Wait()
	defer stopConsuming()
	r.begin = time.Now() // of the stamps; publishing begins below
	for i := range r.o.Consumers {
		start, err := r.consumer(ctx, i)
		if err != nil {
			return Result{}, err
		}
		consumers.Go(func() { start(consuming) })
	}
	starts := make([]func(), r.o.Publishers)
	for i := range starts {
		var err error
		if starts[i], err = r.publisher(ctx, uint64(i)); err != nil {
			return Result{}, err
		}
	}

	began := r.now()
	r.lastConfirm.Store(began)
	var cancel, abandon context.CancelFunc
	r.publishing, cancel = context.WithTimeout(ctx, r.o.Duration)
	defer cancel()
	r.draining, abandon = context.WithTimeout(ctx, r.o.Duration+drainWithin)
	defer abandon()
	for _, start := range starts {
		publishers.Go(start)
	}
	r.tell()
	result := Result{Seconds: time.Duration(r.now() - began).Seconds()}
	result.ConfirmedPerSecond = float64(r.confirmed.Load()) / result.Seconds
	result.ConsumedPerSecond = float64(r.consumed.Load()) / result.Seconds
	publishers.Wait()
	if r.o.Consumers > 0 {
		r.awaitDeliveries(ctx)
	}
	stopConsuming()
	consumers.Wait()
	r.fill(&result)
	if ctx.Err() != nil {
		return result, errors.New("interrupted")
	}
	return result, nil
}

// tell reports progress until publishing ends.
func (r *run) tell() {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-second.C:
			if r.o.Progress != nil {
				r.o.Progress(time.Duration(r.now()), r.confirmed.Load(), r.consumed.Load())
			}
		case <-r.publishing.Done():
			return
		}
	}
}

// awaitDeliveries returns when everything confirmed was delivered or no delivery came for a while.
func (r *run) awaitDeliveries(ctx context.Context) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	seen, since := r.consumed.Load(), time.Now()
	for {
		if r.ledger.Totals().Lost == 0 || time.Since(since) > idleWithin {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if n := r.consumed.Load(); n != seen {
			seen, since = n, time.Now()
		}
	}
}

func (r *run) fill(result *Result) {
	totals := r.ledger.Totals()
	result.Published, result.Confirmed = r.published.Load(), totals.Confirmed
	result.Errors = r.failed.Load()
	result.GapMS = float64(r.gap.Load()) / 1e6
	if r.o.Consumers > 0 {
		result.Delivered, result.Duplicated, result.Unmarked, result.Lost = totals.Delivered, totals.Duplicated, totals.Unmarked, totals.Lost
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	result.ConfirmMS, result.EndToEndMS = percentiles(r.confirms), percentiles(r.ends)
	if r.first != nil {
		result.FirstError = r.first.Error()
	}
}

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e3 }
	return Percentiles{P50: ms(50), P99: ms(99), P999: ms(99.9), Max: float64(h.Max()) / 1e3}
}

func (r *run) now() int64 { return int64(time.Since(r.begin)) }

func (r *run) fail(err error) {
	r.failed.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		r.first = err
	}
}

// close closes a publisher or consumer.
func (r *run) close(c interface{ Close(context.Context) }) {
	ctx, cancel := context.WithTimeout(context.Background(), r.o.Timeout)
	defer cancel()
	c.Close(ctx)
}
