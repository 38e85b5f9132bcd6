package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
)

func ExampleProducer() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	p, err := c.NewProducer(ctx, "orders")
	check(err)
	for i := range 1000 {
		// Sent again after a lost answer, and stored once all the same.
		_, err := p.Send(ctx, fmt.Appendf(nil, "order %d", i))
		check(err)
	}
	check(p.Close()) // waits for all answers; the first failure, if any

	n := 0
	for _, err := range c.Records(ctx, "orders", client.Range{}) {
		check(err)
		n++
	}
	fmt.Println(n, "records")
	// Output: 1000 records
}

func ExampleClient_PublishIf() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	// Two writers who both believe the log to be empty: one is told.
	for _, writer := range []string{"first", "second"} {
		_, err := c.PublishIf(ctx, "orders", 0, [][]byte{[]byte(writer)})
		var mismatch *client.OffsetMismatchError
		if errors.As(err, &mismatch) {
			fmt.Println(writer, "writer was too late, the log goes on at", mismatch.Tail)
			continue
		}
		check(err)
		fmt.Println(writer, "writer was in time")
	}
	// Output:
	// first writer was in time
	// second writer was too late, the log goes on at 1
}

func ExampleClient_Commit() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	// The event and the balance it leads to, both or neither.
	account := []byte("account-7")
	_, err := c.Commit(ctx, "orders", account, []byte("deposited 10"), []client.StateChange{
		client.SetState("balance", []byte("10")),
	})
	check(err)
	balance, err := c.StateGet(ctx, "orders", account, "balance")
	check(err)
	fmt.Println(string(balance.Value))
	// Output: 10
}

func ExampleClient_Read() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	_, err := c.PublishBatch(ctx, "orders", [][]byte{[]byte("a"), []byte("b"), []byte("c"), []byte("d")})
	check(err)
	page, err := c.Read(ctx, "orders", client.Range{From: 1, MaxRecords: 2})
	check(err)
	for _, record := range page.Records {
		fmt.Println(record.Offset, string(record.Payload))
	}
	fmt.Println("next:", page.Next)
	// Output:
	// 1 b
	// 2 c
	// next: 3
}

func ExampleClient_OffsetForTime() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	_, err := c.Publish(ctx, "orders", []byte("hello"))
	check(err)
	offset, ok, err := c.OffsetForTime(ctx, "orders", 0, time.Now().Add(-time.Hour))
	check(err)
	fmt.Println(offset, ok)
	// Output: 0 true
}

func ExampleCache_Watch() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	users := c.Cache("users")
	check(users.Put(ctx, "u1", []byte("Ada")))

	// What is there, then what happens to it.
	w, err := users.Watch(ctx, client.Retained())
	check(err)
	defer w.Close()
	check(users.Put(ctx, "u2", []byte("Grace")))
	_, _, err = users.Delete(ctx, "u1")
	check(err)

	for change, err := range w.Changes(ctx) {
		check(err)
		switch change.Kind {
		case client.Put:
			fmt.Printf("%s is %s\n", change.Key, change.Value)
		case client.Deleted, client.Expired:
			fmt.Println(change.Key, "is gone")
		case client.Synced:
			fmt.Println("that was all; now the changes")
		case client.Reset:
			fmt.Println("changes were missed: forget everything")
		}
		if change.Kind == client.Deleted {
			break
		}
	}
	// Output:
	// u1 is Ada
	// that was all; now the changes
	// u2 is Grace
	// u1 is gone
}

func ExampleCache_CounterAdd() {
	c, stop := exampleNode(felixtest.Durable())
	defer stop()
	ctx := context.Background()

	stats := c.Cache("stats")
	for _, delta := range []int64{5, -2} {
		sum, err := stats.CounterAdd(ctx, "visitors", delta)
		check(err)
		fmt.Println(sum)
	}
	// Output:
	// 5
	// 3
}
