package bench

import "context"

// Protocol is a way to speak to the broker that is measured. Its methods find a node that serves, and return with an
// error when their context ends before they have succeeded.
type Protocol interface {
	// Declare sees to it that there is a durable queue, Delete that there is none.
	Declare(ctx context.Context, queue string) error
	Delete(ctx context.Context, queue string) error
	// Publisher opens a connection that publishes bodies of up to size bytes to a queue, window of them unconfirmed.
	Publisher(ctx context.Context, name, queue string, window, size int) (Publisher, error)
	// Consumer opens a connection that consumes a queue with a prefetch.
	Consumer(ctx context.Context, name, queue string, prefetch int) (Consumer, error)
}

// Publisher publishes persistent messages. When its connection breaks it opens another one and publishes again what was
// not confirmed. Publish and Confirmed may be called at the same time, each by one goroutine.
type Publisher interface {
	// Publish sends a message. It blocks while the window is full. The body is the caller's again when it returns.
	Publish(ctx context.Context, body []byte) error
	// Confirmed waits for the outcome of the oldest message of which it has not told yet. It is called once for each.
	Confirmed(ctx context.Context) error
	Close(ctx context.Context)
}

// Consumer consumes. When its connection breaks it opens another one.
type Consumer interface {
	// Consume hands every delivery to take and acknowledges it afterwards. It returns nil when the context ends, and
	// an error when it cannot go on before. The body is take's only until it returns.
	Consume(ctx context.Context, take func(body []byte, redelivered bool)) error
	Close(ctx context.Context)
}
