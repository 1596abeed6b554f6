package amqp_test

import (
	"testing"
	"time"

	"github.com/warrenmq/warren/broker/amqp/amqptest"
	"github.com/warrenmq/warren/protocol/amqp091"
)

var heartbeat = amqp091.AppendHeartbeat(nil)

func TestRow19NoHeartbeats(t *testing.T) {
	t.Parallel()
	c := amqptest.DialWith(t, address(t), amqptest.Options{Heartbeat: 0})
	ch := c.Channel(1)
	ch.Nothing(3 * time.Second)
	if c.Beats != 0 {
		t.Fatalf("%d heartbeats", c.Beats)
	}
	ch.Quiet()
}

func TestRow20HeartbeatsOfTheServer(t *testing.T) {
	t.Parallel()
	c := amqptest.DialWith(t, address(t), amqptest.Options{Heartbeat: 2})
	ch := c.Channel(1)
	began := time.Now()
	for range 10 {
		ch.Nothing(510 * time.Millisecond)
		c.Raw(heartbeat)
	}
	if d := time.Since(began); c.Beats < 3 || c.Beats > int(d.Seconds())+2 {
		t.Fatalf("%d heartbeats in %v", c.Beats, d)
	}
}

func TestRow21SilentClient(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := amqptest.DialWith(t, address(t), amqptest.Options{Heartbeat: 1})
	c.ExpectClosed(amqptest.Patience)
	if d := time.Since(began); d < 1500*time.Millisecond {
		t.Fatalf("closed after %v", d)
	}
}

func TestRow22AnyFrameIsLife(t *testing.T) {
	t.Parallel()
	c := amqptest.DialWith(t, address(t), amqptest.Options{Heartbeat: 3}) // silence of 6 s ends it
	ch := c.Channel(1)
	for range 16 {
		ch.Nothing(500 * time.Millisecond)
		ch.Call(&amqp091.ChannelFlow{Active: true})
	}
}

func TestRow28StartOkWhenRunning(t *testing.T) {
	c, _ := begin(t)
	c.SendStartOk(amqptest.Options{})
	c.ExpectClose(amqp091.ChannelError, amqp091.ConnectionStartOkID, "unexpected method in connection state running")
}

func TestRow29DeclareOnChannel0(t *testing.T) {
	c, _ := begin(t)
	c.Send(0, &amqp091.QueueDeclare{Queue: name(t, "q")})
	c.ExpectClose(amqp091.ChannelError, amqp091.QueueDeclareID, "unexpected method in connection state running")
}

func TestRow30CloseOnChannel1(t *testing.T) {
	_, ch := begin(t)
	ch.Fatal(&amqp091.ConnectionClose{ReplyCode: 200}, amqp091.CommandInvalid, "unimplemented method")
}

func TestRow31ExclusiveGoneAtCloseOk(t *testing.T) {
	_, watcher := begin(t)
	for range 10 {
		c := dial(t)
		q := name(t, "q")
		c.Channel(1).Declare(&amqp091.QueueDeclare{Queue: q, Exclusive: true})
		c.Close()
		watcher.Refused(&amqp091.QueueDeclare{Queue: q, Passive: true}, amqp091.NotFound, "no queue '"+q+"' in vhost '/'")
	}
}

func TestRow32AfterServerClose(t *testing.T) {
	c, ch := begin(t)
	c.SendStartOk(amqptest.Options{})
	c.ReceiveClose(amqp091.ChannelError, amqp091.ConnectionStartOkID, "")
	q := name(t, "q")
	ch.Send(&amqp091.QueueDeclare{Queue: q})
	c.Send(2, &amqp091.ChannelOpen{})
	c.Send(0, &amqp091.ConnectionClose{ReplyCode: 200})
	c.Expect(0, amqp091.ConnectionCloseOkID)
	c.Send(0, &amqp091.ConnectionCloseOk{})
	c.ExpectClosed(amqptest.Patience)
	if dial(t).Channel(1).Exists(q) {
		t.Fatal("a method took effect after connection.close")
	}
}

func TestRow33NoCloseOk(t *testing.T) {
	t.Parallel()
	c := amqptest.DialWith(t, address(t), amqptest.Options{Heartbeat: 2})
	began := time.Now()
	c.SendStartOk(amqptest.Options{})
	c.ReceiveClose(amqp091.ChannelError, amqp091.ConnectionStartOkID, "")
	c.ExpectClosed(amqptest.Patience)
	if d := time.Since(began); d < time.Second {
		t.Fatalf("closed after %v", d)
	}
}

func TestRow43UpdateSecret(t *testing.T) {
	c, ch := begin(t)
	c.Send(0, &amqp091.ConnectionUpdateSecret{NewSecret: "guest", Reason: "it was time"})
	c.Expect(0, amqp091.ConnectionUpdateSecretOkID)
	ch.Quiet()
}
