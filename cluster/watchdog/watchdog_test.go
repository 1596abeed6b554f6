package watchdog

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

type hanging struct {
	raft.LogStore
	release chan struct{}
	err     error
}

func (h *hanging) StoreLogs([]*raft.Log) error { <-h.release; return h.err }

func TestRule19HangFiresOnceAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fired := make(chan error, 2)
		w := New(Options{OnFailure: func(err error) { fired <- err }})
		h := &hanging{LogStore: raft.NewInmemStore(), release: make(chan struct{})}
		log, stable := w.Log(h), w.Stable(raft.NewInmemStore())
		if _, err := stable.Get([]byte("x")); err == nil || w.Err() != nil {
			t.Errorf("a missing key: %v, %v", err, w.Err())
		}
		start, result := time.Now(), make(chan error)
		go func() { result <- log.StoreLog(&raft.Log{Index: 1}) }()
		<-fired
		if d := time.Since(start); d < DefaultLimit || d > DefaultLimit+DefaultLimit/4 {
			t.Errorf("fired after %v", d)
		}
		if err := stable.Set(nil, nil); err == nil {
			t.Error("a call after the failure was let through")
		}
		close(h.release)
		if err := <-result; err == nil {
			t.Error("the hung call was resumed")
		}
		w.Close()
		if len(fired) > 0 {
			t.Error("fired twice")
		}
	})
}

func TestRule19ErrorFires(t *testing.T) {
	fired := make(chan error, 1)
	w := New(Options{OnFailure: func(err error) { fired <- err }})
	defer w.Close()
	h := &hanging{release: make(chan struct{}), err: errors.New("broken")}
	close(h.release)
	if err := w.Log(h).StoreLog(&raft.Log{}); !errors.Is(err, h.err) {
		t.Error(err)
	}
	if err := <-fired; !errors.Is(err, h.err) {
		t.Error(err)
	}
}

// TestRule19PauseOfTheProcessIsNoHang: nobody watches here, as when the whole process stands still.
func TestRule19PauseOfTheProcessIsNoHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watchdog{opt: Options{Limit: DefaultLimit}, running: map[*call]struct{}{}, ticked: time.Now()}
		h := &hanging{release: make(chan struct{})}
		time.AfterFunc(time.Minute, func() { close(h.release) })
		if err := w.Log(h).StoreLog(&raft.Log{}); err != nil || w.Err() != nil {
			t.Errorf("a pause counts as a failure of the disk: %v, %v", err, w.Err())
		}
	})
}
