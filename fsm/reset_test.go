package fsm

import "testing"

// A machine that was emptied takes the first entry of the log as a new one does: with the vhost that is always there.
func TestResetBeginsAsANewMachine(t *testing.T) {
	m := New(Options{})
	_, want := m.Hash()
	reset, ok := m.FSM().(interface{ Reset() error })
	if !ok {
		t.Fatal("the machine cannot be emptied")
	}
	if err := reset.Reset(); err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Vhost("/"); !ok {
		t.Error("the vhost / is gone")
	}
	if _, got := m.Hash(); got != want {
		t.Errorf("the state's hash is %x, a new machine's is %x", got, want)
	}
}
