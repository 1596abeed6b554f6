package bench

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// redialPause is between two rounds through the addresses, none of which has served.
const redialPause = 20 * time.Millisecond

// AMQP is AMQP 0-9-1 as RabbitMQ's own Go client speaks it, for any broker that does.
type AMQP struct {
	URLs []string // amqp://user:password@host:port/vhost of one or more nodes; connections are spread over them

	opened atomic.Int64 // connections
}

// Check tells a URL that cannot be meant.
func (a *AMQP) Check() error {
	if len(a.URLs) == 0 {
		return errors.New("there is none")
	}
	for _, url := range a.URLs {
		if _, err := amqp091.ParseURI(url); err != nil {
			return err
		}
	}
	return nil
}

// link is a connection with the one channel that is used on it.
type link struct {
	conn *amqp091.Connection
	ch   *amqp091.Channel
}

// open tries the URLs in turn, each connection beginning with the next one, until one serves, the context ends or a
// broker refuses the user or the vhost: that would not get better.
func (a *AMQP) open(ctx context.Context, name string) (*link, error) {
	var last error
	first := int(a.opened.Add(1) - 1)
	for i := first; ; i++ {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(err, last)
		}
		l, err := a.openOne(ctx, name, a.URLs[i%len(a.URLs)])
		if err == nil {
			return l, nil
		}
		var refused *amqp091.Error
		if errors.As(err, &refused) && (refused.Code == amqp091.AccessRefused || refused.Code == amqp091.NotAllowed) {
			return nil, err
		}
		if ctx.Err() == nil {
			last = err
		}
		if (i-first+1)%len(a.URLs) == 0 {
			select {
			case <-time.After(redialPause):
			case <-ctx.Done():
			}
		}
	}
}

func (a *AMQP) openOne(ctx context.Context, name, url string) (*link, error) {
	properties := amqp091.NewConnectionProperties()
	properties.SetClientConnectionName(name)
	var socket net.Conn
	interrupt := func() bool { return true }
	conn, err := amqp091.DialConfig(url, amqp091.Config{Properties: properties, Dial: func(network, address string) (net.Conn, error) {
		var dialer net.Dialer
		var err error
		if socket, err = dialer.DialContext(ctx, network, address); err == nil {
			interrupt = context.AfterFunc(ctx, func() { _ = socket.Close() })
		}
		return socket, err
	}})
	if err != nil {
		interrupt()
		if socket != nil {
			_ = socket.Close()
		}
		return nil, err
	}
	l := &link{conn: conn}
	l.ch, err = conn.Channel()
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// within runs calls of the client, which know no context; it cuts the connection off when the context ends.
func (l *link) within(ctx context.Context, calls func() error) error {
	stop := context.AfterFunc(ctx, l.close)
	defer stop()
	if err := calls(); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

// close ends the connection; it waits a second at most for the broker.
func (l *link) close() { _ = l.conn.CloseDeadline(time.Now().Add(time.Second)) }

// control opens a connection for one call.
func (a *AMQP) control(ctx context.Context, call func(*link) error) error {
	l, err := a.open(ctx, "warren bench control")
	if err != nil {
		return err
	}
	defer l.close()
	return l.within(ctx, func() error { return call(l) })
}

// Declare implements Protocol. A queue that is there is taken as it is: it may have arguments.
func (a *AMQP) Declare(ctx context.Context, queue string) error {
	return a.control(ctx, func(l *link) error {
		_, err := l.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		var missing *amqp091.Error
		if !errors.As(err, &missing) || missing.Code != amqp091.NotFound {
			return err
		}
		if l.ch, err = l.conn.Channel(); err == nil {
			_, err = l.ch.QueueDeclare(queue, true, false, false, false, nil)
		}
		return err
	})
}

// Delete implements Protocol.
func (a *AMQP) Delete(ctx context.Context, queue string) error {
	return a.control(ctx, func(l *link) error {
		_, err := l.ch.QueueDelete(queue, false, false, false)
		return err
	})
}
