package tools

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

type health struct {
	HTTP    string        `name:"http" env:"WARREN_HEALTH_HTTP" default:"127.0.0.1:15672" placeholder:"HOST:PORT" help:"HTTP address of the node."`
	Live    bool          `help:"Ask only whether the process lives, not whether it knows a leader and is caught up."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

// Run asks; anything but 200 is a failure.
func (h *health) Run(ctx context.Context, std Streams) error {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	kind := "ready"
	if h.Live {
		kind = "live"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.HTTP+"/healthz/"+kind, nil)
	if err != nil {
		return err
	}
	request.Close = true // no connection is kept for later
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("node at %s is not %s: %s: %s", h.HTTP, kind, answer.Status, strings.TrimSpace(string(text)))
	}
	_, err = fmt.Fprintln(std.Out, kind)
	return err
}
