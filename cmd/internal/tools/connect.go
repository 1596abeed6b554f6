package tools

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
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
		return wrong("--timeout %v: it must be above zero", t.Timeout)
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
	servers, err := t.servers()
	if err != nil {
		return nil, err
	}
	return client.Dial(ctx, servers, append(all, options...)...)
}

// servers returns the native addresses to dial.
func (t *target) servers() ([]string, error) { return t.addresses("5670") }

// addresses returns those of --servers, or what is wrong with one: that would not get better while the client tries.
// port is the usual one of the protocol.
func (t *target) addresses(port string) (list []string, err error) {
	for _, s := range t.Servers {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		_, given, err := net.SplitHostPort(s)
		if err != nil {
			return nil, wrong("--servers %s: it must be HOST:PORT, for example %s", s, withPort(s, port))
		}
		if n, err := strconv.ParseUint(given, 10, 16); err != nil || n == 0 {
			return nil, wrong("--servers %s: the port must be a number from 1 to 65535", s)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, wrong("--servers names no node")
	}
	return list, nil
}

// withPort makes an address of a host whose port is missing.
func withPort(host, port string) string {
	if host = strings.Trim(host, "[]"); strings.Count(host, ":") < 2 { // else an address of IPv6
		host = strings.Trim(host, ":")
	}
	return net.JoinHostPort(host, port)
}

// lastTried is what the client met last, behind a colon, when it says so.
func lastTried(err error) string {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range all.Unwrap() {
			if !errors.Is(e, client.ErrNoLeader) && !errors.Is(e, context.DeadlineExceeded) {
				return ": " + e.Error()
			}
		}
	}
	return ""
}

// explain turns what the client says of an ended context into what that means to the user.
func (t *target) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, client.ErrNoLeader) && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no leader was found within %v through %s%s", t.Timeout, strings.Join(t.Servers, ", "), lastTried(err))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v: %w", t.Timeout, err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	}
	return err
}
