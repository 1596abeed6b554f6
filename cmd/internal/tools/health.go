package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
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
	if h.Timeout <= 0 {
		return wrong("--timeout %v: it must be above zero", h.Timeout)
	}
	if _, _, err := net.SplitHostPort(h.HTTP); err != nil {
		return wrong("--http %s: it must be HOST:PORT, for example %s", h.HTTP, withPort(h.HTTP, "15672"))
	}
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
	var failed *url.Error // which says the address once more
	if errors.As(err, &failed) {
		err = failed.Err
	}
	if err != nil {
		return fmt.Errorf("no answer from the node at %s: %w", h.HTTP, err)
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("node at %s is not %s: %s: %s", h.HTTP, kind, answer.Status, strings.TrimSpace(string(text)))
	}
	_, err = fmt.Fprintln(std.Out, kind)
	return err
}
