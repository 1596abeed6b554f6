//go:build !linux

package demo

import (
	"os/exec"
	"syscall"
)

// childAttributes leave a child as it is: only Linux can make it die with its parent.
func childAttributes() *syscall.SysProcAttr { return nil }

func startAndWait(c *exec.Cmd, started chan<- error, ended chan<- struct{}) {
	defer close(ended)
	err := c.Start()
	started <- err
	if err == nil {
		_ = c.Wait()
	}
}
