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
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := client.Dial(ctx, []string{"127.0.0.1:5670"}, client.WithName("billing"))
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
	if errors.Is(err, client.ErrReturned) {
		log.Fatal("there is no such queue")
	}
	fmt.Println(confirmation.Routed, err)
}

func ExampleConsumer_All() {
	ctx := context.Background()
	conn, err := client.Dial(ctx, []string{"127.0.0.1:5670"})
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)
	ch, err := conn.Channel(ctx)
	if err != nil {
		log.Fatal(err)
	}
	consumer, err := ch.Consume(ctx, "invoices", client.ConsumeOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for d, err := range consumer.All(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", d.Body)
		if err := d.AckAsync(); err != nil && !errors.Is(err, client.ErrStaleDelivery) {
			log.Fatal(err)
		}
	}
}
