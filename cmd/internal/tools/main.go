// Package tools is Warren's command line: each command of the one binary, thin over the client and the server.
package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// Version is the program's version, set at build time with -ldflags "-X …tools.Version=…".
var Version = ""

// Streams are the program's standard streams.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

type commands struct {
	Serve   serve   `cmd:"" help:"Run a node."`
	Cluster cluster `cmd:"" help:"See the state of the cluster, or take a dead node out of it."`
	Declare declare `cmd:"" help:"Create an exchange, a queue or a virtual host; an equal one may be there already."`
	Set     set     `cmd:"" help:"Set a policy."`
	Delete  remove  `cmd:"" help:"Delete an exchange, a queue, messages of a queue, a policy or a virtual host."`
	Bind    bind    `cmd:"" help:"Bind a queue (or an exchange) to an exchange."`
	Unbind  unbind  `cmd:"" help:"Remove a binding."`
	Publish publish `cmd:"" help:"Publish messages; ends with success only when all are confirmed."`
	Consume consume `cmd:"" help:"Print the messages of a queue as they come, and acknowledge them."`
	Get     get     `cmd:"" help:"Take one message of a queue."`
	Purge   purge   `cmd:"" help:"Remove the ready messages of a queue."`
	Peek    peek    `cmd:"" help:"Look at the messages of a queue and leave them as they are."`
	Move    move    `cmd:"" help:"Move messages of a queue to another queue or to an exchange."`
	Redrive redrive `cmd:"" help:"Move dead letters back to where they died first."`
	List    list    `cmd:"" help:"List what there is."`
	Health  health  `cmd:"" help:"Ask a node over HTTP whether it is ready."`
	Demo    demoing `cmd:"" name:"demo" help:"Start three nodes, kill the leader in the middle of it, and count."`
	Bench   bench   `cmd:"" help:"Measure how fast a cluster confirms and delivers."`
	Show    version `cmd:"" name:"version" help:"Print the version."`
}

// exit carries a status out of Kong, which wants to end the process.
type exit int

// exitConfig is the status of a node with wrong settings. It is not that of other wrong command lines, which a panic has
// too: a service manager must not start the former again, and must start the latter.
const exitConfig = 78

// Main runs the command line and returns the exit status: 0 for success, 1 for failure, 2 for a wrong command line,
// 78 for wrong settings of a node, and what server.ExitCode says.
func Main(args []string, std Streams) (status int) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exit:
			status = int(r)
		default:
			panic(r)
		}
	}()
	var c commands
	parser, err := kong.New(&c, kong.Name("warren"), kong.Description("A replicated message broker, and its tools."),
		kong.Writers(std.Out, std.Err), kong.Exit(func(code int) { panic(exit(code)) }),
		kong.WithHyphenPrefixedParameters(true), // --count -1 is a number, to be refused as one; --body -x is a body
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Bind(std))
	if err != nil {
		fmt.Fprintln(std.Err, "warren:", err)
		return 2
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(std.Err, "warren: %s (see warren --help)\n", oneLine(err))
		if args[0] == "serve" {
			return exitConfig
		}
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	command.BindTo(ctx, (*context.Context)(nil))
	err = command.Run()
	var code coded
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		fmt.Fprintln(std.Err, "warren:", code.err)
		return code.status
	}
	fmt.Fprintln(std.Err, "warren:", oneLine(err))
	return 1
}

// coded is an error with an exit status of its own. It may have several lines.
type coded struct {
	status int
	err    error
}

func (c coded) Error() string { return c.err.Error() }

// wrong is the error of a command line that cannot be meant.
func wrong(format string, args ...any) error { return coded{2, fmt.Errorf(format, args...)} }

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// versionText is what version and nodes tell.
func versionText() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := "devel"
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			text += "-" + s.Value[:12]
		}
		if s.Key == "vcs.modified" && s.Value == "true" {
			text += "-changed"
		}
	}
	return text
}

type version struct{}

// Run prints the version.
func (version) Run(std Streams) error {
	_, err := fmt.Fprintln(std.Out, "warren", versionText())
	return err
}
