// Package demo shows what Warren is for: three nodes, the leader killed with -9 in the middle of the traffic, and an
// account at the end of what was confirmed and what was delivered.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/warrenmq/warren/client"
	"github.com/warrenmq/warren/cmd/internal/bench"
	"github.com/warrenmq/warren/protocol/native"
)

// Bounds of a demo's steps.
const (
	formWithin    = 60 * time.Second
	requestWithin = 20 * time.Second
	down          = time.Second // how long a killed node stays away
)

// Options say what is shown.
type Options struct {
	Executable string // the warren binary
	Dir        string // where the nodes live, a new one in the system's temporary folder when empty
	Duration   time.Duration
	Kills      int
	Rate       float64
	Keep       bool // leave the cluster running until the context ends
	Terminal   bool // progress on one line
	Out, Log   io.Writer
}

// Run runs the demo. The error is nil only when nothing that was confirmed is lost. All child processes have ended when
// it returns.
func Run(ctx context.Context, o Options) (err error) {
	if o.Duration < 2*time.Second || o.Kills < 0 || time.Duration(o.Kills)*time.Second > o.Duration/2 {
		return errors.New("a demo takes at least 2 s, and 2 s more for each kill")
	}
	dir := o.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "warren-demo-"); err != nil {
			return err
		}
		defer func() {
			if err == nil || ctx.Err() != nil {
				_ = os.RemoveAll(dir)
			} else {
				err = fmt.Errorf("%w; the nodes' data and logs are in %s", err, dir)
			}
		}()
	}
	nodes, err := New(o.Executable, dir, 3)
	if err != nil {
		return err
	}
	d := &demo{Options: o, nodes: nodes, begin: time.Now()}
	defer nodes.StopAll()
	if err := nodes.StartAll(); err != nil {
		return err
	}
	return d.show(ctx, dir)
}

type demo struct {
	Options
	nodes   *Nodes
	begin   time.Time
	control *client.Connection

	writing sync.Mutex // held while a line is written to Log
}

func (d *demo) show(ctx context.Context, dir string) error {
	d.say("three nodes are started in %s", dir)
	dialing, cancel := context.WithTimeout(ctx, formWithin)
	defer cancel()
	var err error
	if d.control, err = d.dial(dialing); err != nil {
		return fmt.Errorf("the cluster did not form: %w", err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.Background(), requestWithin)
		defer cancel()
		_ = d.control.Close(closing)
	}()
	status, err := d.whole(ctx)
	if err != nil {
		return err
	}
	d.say("they formed cluster %s; %s leads", status.ClusterID, status.Leader)

	result, err := d.traffic(ctx)
	if err != nil {
		return err
	}
	if d.Terminal {
		fmt.Fprint(d.Log, "\r\x1b[K")
	}
	fmt.Fprintf(d.Out, "confirmed %d, delivered %d, lost %d, duplicated %d, gap %.0f ms\n",
		result.Confirmed, result.Delivered, result.Lost, result.Duplicated, result.GapMS)
	switch {
	case result.Lost > 0:
		return fmt.Errorf("%d confirmed messages were not delivered", result.Lost)
	case result.Errors > 0:
		return fmt.Errorf("%d errors, the first: %s", result.Errors, result.FirstError)
	case d.Keep:
		return d.keep(ctx)
	}
	return nil
}

// traffic publishes and consumes while leaders are killed and started again.
func (d *demo) traffic(ctx context.Context) (bench.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	killed := make(chan error, 1)
	go func() { killed <- d.kills(ctx) }()
	result, err := bench.Run(ctx, bench.Options{Publishers: 2, Consumers: 1, Size: 256, Window: 500, Duration: d.Duration, Rate: d.Rate,
		Prefetch: 500, Timeout: requestWithin, Progress: d.progress,
		Protocol: bench.Native{Dial: d.dial}})
	if err != nil {
		cancel()
	}
	return result, errors.Join(err, <-killed)
}

// kills kills the leader as often as asked, spread over the time of publishing, and starts it again each time.
func (d *demo) kills(ctx context.Context) error {
	every := d.Duration / time.Duration(d.Kills+1)
	next := time.Now().Add(every)
	for range d.Kills {
		if !wait(ctx, time.Until(next)) {
			return nil
		}
		next = next.Add(every)
		status, err := d.whole(ctx)
		if err != nil {
			return err
		}
		d.say("kill -9 to the leader, %s", status.Leader)
		if err := d.nodes.Kill(status.Leader); err != nil {
			return err
		}
		if !wait(ctx, down) {
			return nil
		}
		if err := d.nodes.Start(status.Leader); err != nil {
			return err
		}
		after, err := d.whole(ctx)
		if err != nil {
			return err
		}
		d.say("%s is back; %s leads since", status.Leader, after.Leader)
	}
	return nil
}

// whole waits until a leader tells that all nodes are voters with nothing left to catch up.
func (d *demo) whole(ctx context.Context) (native.ClusterStatus, error) {
	limit, cancel := context.WithTimeout(ctx, formWithin)
	defer cancel()
	for {
		status, err := d.control.ClusterStatus(limit)
		if err == nil && status.Leader != "" && healthy(status) == len(d.nodes.all) {
			return status, nil
		}
		if !wait(limit, 50*time.Millisecond) {
			if ctx.Err() != nil {
				return status, ctx.Err()
			}
			return status, fmt.Errorf("not all nodes were members within %v: %+v (last error: %v)", formWithin, status.Members, err)
		}
	}
}

// catchUp is how many entries a follower may be behind and still count as caught up, under traffic.
const catchUp = 1_000

func healthy(s native.ClusterStatus) (n int) {
	var committed uint64
	for _, m := range s.Members {
		committed = max(committed, m.CommitIndex)
	}
	for _, m := range s.Members {
		if (m.State == native.StateLeader || m.State == native.StateFollower) && m.AppliedIndex+catchUp >= committed {
			n++
		}
	}
	return n
}

func (d *demo) keep(ctx context.Context) error {
	servers := strings.Join(d.nodes.Servers(), ",")
	d.say("the cluster stays until Ctrl-C; try\n\n  export WARREN_SERVERS=%s\n  %s cluster status\n  %s declare queue q --durable\n  %s publish '' q --body hello\n  %s consume q --count 1\n",
		servers, d.Executable, d.Executable, d.Executable, d.Executable)
	<-ctx.Done()
	return nil
}

func (d *demo) dial(ctx context.Context, options ...client.Option) (*client.Connection, error) {
	return client.Dial(ctx, d.nodes.Servers(), options...)
}

// say prints a line, below which the progress goes on.
func (d *demo) say(format string, args ...any) {
	clear := ""
	if d.Terminal {
		clear = "\r\x1b[K"
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	fmt.Fprintf(d.Log, "%s%5.1f s  %s\n", clear, time.Since(d.begin).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) progress(_ time.Duration, confirmed, consumed uint64) {
	if d.Terminal {
		d.writing.Lock()
		defer d.writing.Unlock()
		fmt.Fprintf(d.Log, "\r\x1b[K%5.1f s  confirmed %d, consumed %d", time.Since(d.begin).Seconds(), confirmed, consumed)
		return
	}
	d.say("confirmed %d, consumed %d", confirmed, consumed)
}

// wait waits for a time; false when the context ended first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
