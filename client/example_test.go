package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/warrenmq/warren/client"
)

func ExampleDial() {
	address, stop := startNode() // in production: the addresses of a few nodes
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	conn, err := client.Dial(ctx, []string{address}, client.WithName("billing"))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	ch, err := conn.Channel(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := ch.DeclareQueue(ctx, client.Queue{Name: "invoices", Durable: true}); err != nil {
		log.Fatal(err)
	}

	confirmation, err := ch.Publish(ctx, "", "invoices", client.Message{Body: []byte(`{"id":42}`), Mandatory: true})
	fmt.Println("queues reached:", confirmation.Routed, err)

	_, err = ch.Publish(ctx, "", "nobody", client.Message{Mandatory: true})
	fmt.Println("returned:", errors.Is(err, client.ErrReturned))
	// Output:
	// queues reached: 1 <nil>
	// returned: true
}

func ExampleChannel_PublishAsync() {
	address, stop := startNode()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := client.Dial(ctx, []string{address})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	ch, err := conn.Channel(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := ch.DeclareQueue(ctx, client.Queue{Name: "events", Durable: true}); err != nil {
		log.Fatal(err)
	}

	var confirms []*client.Confirm
	for i := range 1000 {
		c, err := ch.PublishAsync(ctx, "", "events", client.Message{Body: fmt.Append(nil, i)})
		if err != nil {
			log.Fatal(err)
		}
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		if _, err := c.Wait(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("all confirmed")
	// Output: all confirmed
}

func ExampleConsumer_All() {
	address, stop := startNode()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := client.Dial(ctx, []string{address})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	ch, err := conn.Channel(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := ch.DeclareQueue(ctx, client.Queue{Name: "invoices", Durable: true}); err != nil {
		log.Fatal(err)
	}
	for _, body := range []string{"first", "second"} {
		if _, err := ch.Publish(ctx, "", "invoices", client.Message{Body: []byte(body)}); err != nil {
			log.Fatal(err)
		}
	}

	consumer, err := ch.Consume(ctx, "invoices", client.ConsumeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	left := 2
	for d, err := range consumer.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", d.Body)
		// A delivery that the leader's change made stale comes again; nothing is to be done about it.
		if err := d.Ack(ctx); err != nil && !errors.Is(err, client.ErrStaleDelivery) {
			log.Fatal(err)
		}
		if left--; left == 0 {
			break
		}
	}
	// Output:
	// first
	// second
}
