package tools

import (
	"context"
	"os"
	"time"

	"github.com/warrenmq/warren/cmd/internal/demo"
)

type demoing struct {
	Duration time.Duration `default:"10s" help:"How long to publish."`
	Kills    int           `default:"1" help:"How often to kill the leader with -9 and start it again."`
	Rate     float64       `default:"20000" help:"Publishes a second; 0 publishes as fast as confirms come."`
	Keep     bool          `help:"Leave the cluster running until Ctrl-C, and say how to use it."`
	Dir      string        `placeholder:"DIR" help:"Where the nodes live, and stay; without it a temporary folder, removed after a good end."`
}

// Run shows the demo; it succeeds only when nothing that was confirmed is lost.
func (d *demoing) Run(ctx context.Context, std Streams) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	return demo.Run(ctx, demo.Options{Executable: executable, Dir: d.Dir, Duration: d.Duration, Kills: d.Kills, Rate: d.Rate, Keep: d.Keep,
		Terminal: isTerminal(std.Err), Out: std.Out, Log: std.Err})
}
