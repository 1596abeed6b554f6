package tools

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asProgram makes the test binary be the warren program, so that tests can run real processes.
const asProgram = "TEST_BINARY_IS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(os.Args[1:], Streams{os.Stdin, os.Stdout, os.Stderr}))
	}
	goleak.VerifyTestMain(m)
}

// warren runs a command in this process and returns its output; a failure fails the test.
func warren(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, failure, status := try(stdin, args...)
	if status != 0 {
		t.Fatalf("warren %s: status %d: %s", strings.Join(args, " "), status, failure)
	}
	return out
}

func try(stdin string, args ...string) (out, failure string, status int) {
	var o, e bytes.Buffer
	status = Main(args, Streams{strings.NewReader(stdin), &o, &e})
	return o.String(), e.String(), status
}

// process is a node as a process of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	native string
	amqp   string
	http   string
	stderr *bytes.Buffer // to be read once the process has ended
}

var listening = regexp.MustCompile(`native ([^,\s]+), amqp (\S+), http (\S+), raft`)

func startNode(t *testing.T, args ...string) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, stderr: &bytes.Buffer{}}
	p.cmd = exec.Command(exe, append([]string{"serve"}, args...)...)
	p.cmd.Env = append(os.Environ(), asProgram+"=1")
	p.cmd.Stderr = p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = p.cmd.Wait()
		t.Fatalf("the node did not start: %v: %s", err, p.stderr)
	}
	go io.Copy(io.Discard, stdout)
	found := listening.FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("unexpected first line %q", line)
	}
	p.native, p.amqp, p.http = found[1], found[2], found[3]
	return p
}

// stop ends the node as an operator would and returns its exit status.
func (p *process) stop() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		p.t.Fatal("the node did not stop")
	}
	return p.cmd.ProcessState.ExitCode()
}

func anyPorts(dir string) []string {
	args := []string{"--data-dir", dir, "--log-level", "warn"}
	for _, kind := range []string{"native", "amqp", "http", "raft", "gossip"} {
		args = append(args, fmt.Sprintf("--%s-addr=127.0.0.1:0", kind))
	}
	return args
}
