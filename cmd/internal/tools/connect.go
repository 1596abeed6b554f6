package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/warrenmq/warren/client"
)

// target is what every tool that talks to a cluster can be told.
type target struct {
	Servers  []string      `env:"WARREN_SERVERS" sep:"," default:"127.0.0.1:5670" placeholder:"HOST:PORT" help:"Native addresses of some nodes; the leader is found from them."`
	Vhost    string        `env:"WARREN_VHOST" default:"/" help:"Virtual host."`
	User     string        `env:"WARREN_USER" help:"User name; anonymous without it."`
	Password string        `env:"WARREN_PASSWORD" help:"Password of the user; the environment is the better place for it."`
	Timeout  time.Duration `default:"10s" help:"How long to wait for a leader, or for the answer to one request."`
}

// with dials, runs do with a context that ends after the timeout, and closes the connection.
func (t *target) with(ctx context.Context, do func(context.Context, *client.Connection) error) error {
	return t.dialed(ctx, func(conn *client.Connection) error {
		ctx, cancel := context.WithTimeout(ctx, t.Timeout)
		defer cancel()
		return t.explain(do(ctx, conn))
	})
}

// channel is with for what needs a channel.
func (t *target) channel(ctx context.Context, do func(context.Context, *client.Channel) error) error {
	return t.with(ctx, func(ctx context.Context, conn *client.Connection) error {
		ch, err := conn.Channel(ctx)
		if err != nil {
			return err
		}
		return do(ctx, ch)
	})
}

// dialed runs do with a connection, and closes that. Only the dial and the close are bound by the timeout.
func (t *target) dialed(ctx context.Context, do func(*client.Connection) error, options ...client.Option) error {
	if t.Timeout <= 0 {
		return errors.New("--timeout must be above zero")
	}
	dialing, cancel := context.WithTimeout(ctx, t.Timeout)
	defer cancel()
	conn, err := t.dial(dialing, options...)
	if err != nil {
		return t.explain(err)
	}
	err = do(conn)
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), t.Timeout)
	defer done()
	if failed := conn.Close(closing); err == nil && failed != nil {
		err = t.explain(failed)
	}
	return err
}

func (t *target) dial(ctx context.Context, options ...client.Option) (*client.Connection, error) {
	all := []client.Option{client.WithVhost(t.Vhost), client.WithName("warren tool")}
	if t.User != "" {
		all = append(all, client.WithCredentials(t.User, t.Password))
	}
	return client.Dial(ctx, t.Servers, append(all, options...)...)
}

// explain turns what the client says of an ended context into what that means to the user.
func (t *target) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrNoLeader) && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no leader was found within %v through %s: %w", t.Timeout, strings.Join(t.Servers, ", "), err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v: %w", t.Timeout, err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	}
	return err
}
