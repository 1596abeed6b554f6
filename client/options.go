package client

import (
	"context"
	"log/slog"
	"net"
	"time"
)

type options struct {
	vhost          string
	mechanism      string
	response       []byte
	name           string
	heartbeat      time.Duration
	dial           func(ctx context.Context, addr string) (net.Conn, error)
	log            *slog.Logger
	windowCount    int
	windowBytes    int
	backoffMin     time.Duration
	backoffMax     time.Duration
	jitter         float64
	deduplicate    bool
	connectTimeout time.Duration
}

// Defaults of the options.
const (
	DefaultHeartbeat      = time.Second
	DefaultWindowCount    = 16_384   // unconfirmed publishes
	DefaultWindowBytes    = 32 << 20 // of unconfirmed publishes
	MaxWindowCount        = 65_535   // what the broker's deduplication remembers
	DefaultPrefetch       = 256      // of a channel without Qos
	MaxPrefetch           = 65_535
	DefaultBackoffMin     = 20 * time.Millisecond
	DefaultBackoffMax     = 2 * time.Second
	DefaultConnectTimeout = 2 * time.Second
)

func defaults() options {
	var d net.Dialer
	return options{
		vhost: "/", mechanism: "ANONYMOUS", heartbeat: DefaultHeartbeat,
		dial:        func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) },
		log:         slog.New(slog.DiscardHandler),
		windowCount: DefaultWindowCount, windowBytes: DefaultWindowBytes,
		backoffMin: DefaultBackoffMin, backoffMax: DefaultBackoffMax, jitter: 0.3,
		deduplicate: true, connectTimeout: DefaultConnectTimeout,
	}
}

// Option changes how a connection is made.
type Option func(*options)

// WithVhost chooses the virtual host; "/" without it.
func WithVhost(name string) Option { return func(o *options) { o.vhost = name } }

// WithCredentials logs in with a user name and a password (SASL PLAIN) instead of anonymously.
func WithCredentials(user, password string) Option {
	return func(o *options) {
		o.mechanism, o.response = "PLAIN", []byte("\x00"+user+"\x00"+password)
	}
}

// WithHeartbeat sets how often each side shows that it lives, in whole seconds; twice as long without a byte ends the
// connection and the client looks for the leader again. Zero turns it off.
func WithHeartbeat(d time.Duration) Option { return func(o *options) { o.heartbeat = d } }

// WithDialer replaces how addresses are dialled: for TLS, a proxy, or a network in memory.
func WithDialer(dial func(ctx context.Context, addr string) (net.Conn, error)) Option {
	return func(o *options) { o.dial = dial }
}

// WithLogger makes the client tell of reconnections and of what it could not restore.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithName is the client's name in the broker's lists.
func WithName(name string) Option { return func(o *options) { o.name = name } }

// WithPublishWindow bounds the unconfirmed publishes of the connection, in number (at most MaxWindowCount) and bytes;
// a publish beyond either waits. One larger than the bytes alone is let through when there is no other.
func WithPublishWindow(count, bytes int) Option {
	return func(o *options) { o.windowCount, o.windowBytes = min(max(count, 1), MaxWindowCount), max(bytes, 1) }
}

// WithReconnect sets the wait between tries to find the leader: from first, doubling, to at most limit, each changed by
// up to the jitter's share (0.3: 30 %) at random. The first try is immediate, and no wait exceeds 100 ms in the first
// second, nor in the first ten while nodes answer that do not lead.
func WithReconnect(first, limit time.Duration, jitter float64) Option {
	return func(o *options) { o.backoffMin, o.backoffMax, o.jitter = first, limit, jitter }
}

// WithoutDeduplication publishes without a producer id. What was unconfirmed when a connection is lost then fails with
// ErrOutcomeUnknown instead of being published again.
func WithoutDeduplication() Option { return func(o *options) { o.deduplicate = false } }
