package demo

import (
	"os/exec"
	"runtime"
	"syscall"
)

// childAttributes make a child die with its parent, and keep the terminal's Ctrl-C for the parent, which stops it in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// startAndWait starts a process and waits for its end on one thread: Linux sends the death signal when the thread that
// started the child ends, not the process.
func startAndWait(c *exec.Cmd, started chan<- error, ended chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(ended)
	err := c.Start()
	started <- err
	if err == nil {
		_ = c.Wait()
	}
}
