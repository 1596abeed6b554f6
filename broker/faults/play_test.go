package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/warrenmq/warren/client"
)

// play is one run of the history on one machine.
type play struct {
	machine *machine
	steps   []step
	states  []model // by steps confirmed
	next    int     // steps confirmed
	doubt   bool    // the next one may have taken effect
	ends    []error // what starts and processes ended with
	user    *user   // connected last
}

// maxEnds is how often a process may end because of one fault: the one that meets it, and one that is started on a disk
// that has lost what the failed sync should have kept.
const maxEnds = 2

func newPlay() *play {
	p := &play{machine: newMachine(), steps: history()}
	now := model{queues: map[string][]string{}}
	p.states = append(p.states, now)
	for _, s := range p.steps {
		now = now.clone()
		s.model(&now)
		p.states = append(p.states, now)
	}
	return p
}

// run plays the history to its end, starting the node again whenever it has ended. lose says that the power goes after
// the restart that follows a failure: what was read then must last.
func (p *play) run(lose bool) (err error) {
	defer func() {
		if u := p.user; u != nil {
			u.leave()
		}
		p.machine.kill()
		p.machine.ended.Wait()
	}()
	for {
		if len(p.ends) > maxEnds {
			return fmt.Errorf("it does not get on after the fault: %w", errors.Join(p.ends...))
		}
		u, err := p.open()
		p.user = u
		if err != nil {
			p.ends = append(p.ends, err)
			continue
		}
		if err := p.compare(); errors.Is(err, errHung) {
			u.leave()
			p.ends = append(p.ends, p.ended(err))
			continue
		} else if err != nil {
			return err
		}
		if lose && len(p.ends) == 1 {
			lose = false
			u.leave()
			p.machine.kill()
			p.machine.disk.Cut()
			continue
		}
		if p.next == len(p.steps) {
			u.leave()
			if err := p.machine.halt(); err != nil {
				p.ends = append(p.ends, err)
				continue
			}
			return nil
		}
		if err := p.work(u); err != nil {
			return err
		}
	}
}

// open starts the node and connects to it. After an error there is no process.
func (p *play) open() (*user, error) {
	m := p.machine
	if err := m.start(); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	ctx, cancel := context.WithTimeout(m.process.alive, stepWithin)
	defer cancel()
	home := m.net.Attach("c1")
	dial := func(ctx context.Context, address string) (net.Conn, error) { return home.Dial(ctx, address) }
	conn, err := client.Dial(ctx, []string{"n1:5670"}, client.WithDialer(dial), client.WithLogger(logger()))
	if err == nil {
		var ch *client.Channel
		if ch, err = conn.Channel(ctx); err == nil {
			return &user{m.process.server, conn, ch}, nil
		}
		(&user{conn: conn}).leave()
	}
	return nil, fmt.Errorf("connect: %w", p.ended(err))
}

// leave closes the connection without waiting for anything.
func (u *user) leave() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = u.conn.Close(ctx)
}

// ended takes down a process that a client could not get on with, and returns why.
func (p *play) ended(why error) error {
	defer p.machine.kill()
	select {
	case <-p.machine.process.alive.Done():
	case <-time.After(time.Second):
		return fmt.Errorf("the process lives: %w", why)
	}
	select {
	case <-p.machine.process.down:
		return errPower
	case <-p.machine.process.done:
		return p.machine.process.err
	}
}

// errPower is what a process ends with when the power goes.
var errPower = errors.New("no power")

// compare checks the node's state and resolves the doubt.
func (p *play) compare() error {
	got, err := p.look()
	if errors.Is(err, syscall.EIO) { // the fault was met by this read
		got, err = p.look()
	}
	if errors.Is(err, errHung) {
		return err
	}
	if err != nil {
		return fmt.Errorf("after %d steps: %w", p.next, err)
	}
	if p.doubt && got.equal(p.states[p.next+1]) && !got.equal(p.states[p.next]) {
		p.next++
	}
	if p.doubt = false; !got.equal(p.states[p.next]) {
		return fmt.Errorf("after %d steps the state is\n  %v, must be\n  %v", p.next, got, p.states[p.next])
	}
	return nil
}

// look reads the node's state. When the read hangs, the process ends of that.
func (p *play) look() (model, error) {
	type result struct {
		model
		error
	}
	process, done := p.machine.process, make(chan result, 1)
	go func() {
		m, err := actual(process.server)
		done <- result{m, err}
	}()
	select {
	case r := <-done:
		return r.model, r.error
	case <-process.alive.Done():
		return model{}, errHung
	}
}

// readAgain is how long after a read that failed a queue is read again.
const readAgain = 6 * time.Second

// work plays steps until the process ends. An error is a violation.
func (p *play) work(u *user) error {
	m, again := p.machine, false
	for p.next < len(p.steps) {
		s := p.steps[p.next]
		if s.do == nil {
			u.leave()
			if err := m.halt(); err != nil {
				p.ends = append(p.ends, err)
			}
			m.disk.Cut()
			p.next++
			return nil
		}
		ctx, cancel := context.WithTimeout(m.process.alive, stepWithin)
		err := s.do(ctx, u)
		late := ctx.Err() == context.DeadlineExceeded
		cancel()
		if err != nil && !late && !again && strings.Contains(err.Error(), "is damaged") { // named, and tried again
			again = true
			<-time.After(readAgain)
			continue
		}
		if errors.Is(err, errWrong) {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if err == nil && !late {
			p.next++
			continue
		}
		u.leave()
		p.doubt = true
		p.ends = append(p.ends, fmt.Errorf("%s: %w", s.name, p.ended(err)))
		return nil
	}
	u.leave()
	err := m.halt()
	m.disk.Cut()
	if err != nil {
		p.ends = append(p.ends, err)
	}
	return nil
}

// steppedDown returns an error unless the process ended by itself because its disk hung. (A hang while it was stopping
// may not have kept it.)
func (p *play) steppedDown() error {
	if len(p.ends) == 0 || errors.Is(p.ends[0], errHung) {
		return errors.New("nobody noticed that the disk hangs")
	}
	if text := p.ends[0].Error(); !strings.Contains(text, "does not answer") && !strings.Contains(text, "stop") {
		return errors.New("it ended for another reason")
	}
	return nil
}
