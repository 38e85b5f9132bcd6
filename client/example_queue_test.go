package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
)

func ExampleClient_Consume() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())

	for _, order := range []string{"apples", "pears", "plums"} {
		_, err := c.Publish(ctx, "orders", []byte(order))
		check(err)
	}

	n := 0
	err := c.Consume(ctx, c.Group("orders", "billing"), func(ctx context.Context, d client.Delivery) error {
		fmt.Printf("%s\n", d.Payload)
		if n++; n == 3 {
			cancel() // what runs is finished first, and acknowledged
		}
		return nil // acknowledged from here on, never before
	})
	check(err)

	info, err := c.Group("orders", "billing").Describe(context.Background(), 0)
	check(err)
	fmt.Println("finished:", info.Committed)
	// Output:
	// apples
	// pears
	// plums
	// finished: 3
}

func ExampleDeadLetter() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	for _, order := range []string{"apples", "?", "plums"} {
		_, err := c.Publish(ctx, "orders", []byte(order))
		check(err)
	}
	g := c.Group("orders", "billing")
	err := c.Consume(ctx, g, func(ctx context.Context, d client.Delivery) error {
		switch {
		case string(d.Payload) == "?":
			return client.DeadLetter(errors.New("nobody can read this"))
		case d.Attempts < 2:
			return client.RetryAfter(0, errors.New("busy")) // anything else is retried with a back-off
		}
		fmt.Printf("%s, attempt %d\n", d.Payload, d.Attempts)
		return nil
	}, client.ConsumeUntilEmpty())
	check(err)

	dead, err := g.DeadLetters(ctx, 0)
	check(err)
	for _, offset := range dead {
		page, err := c.Read(ctx, "orders", client.Range{From: offset, MaxRecords: 1})
		check(err)
		fmt.Printf("given up: %s\n", page.Records[0].Payload)
		check(g.Discard(ctx, 0, offset))
	}
	// Unordered output:
	// apples, attempt 2
	// plums, attempt 2
	// given up: ?
}

func ExampleGroup() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	_, err := c.PublishBatch(ctx, "orders", [][]byte{[]byte("apples"), []byte("pears")})
	check(err)

	g := c.Group("orders", "billing")
	deliveries, err := g.Poll(ctx, client.PollMax(10), client.PollWait(10*time.Second))
	check(err)
	var done []client.Claim
	for _, d := range deliveries {
		fmt.Printf("%d: %s\n", d.Offset, d.Payload)
		done = append(done, d.Claim)
	}
	check(g.Ack(ctx, done...)) // in one write
	// Output:
	// 0: apples
	// 1: pears
}
