package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/felixlog/felix/client"
)

func ExampleDial() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := client.Dial(ctx, []string{"broker-a.example:7440", "broker-b.example:7440"},
		client.WithTenant("acme"),
		client.WithTokenFile("/var/run/secrets/felix/token"),
		client.WithCAFile("/etc/felix/ca.pem"),
		client.WithEnvironment(os.Environ()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	fmt.Println(c.Endpoints())
}

func ExampleClient_Publish() {
	c, stop := exampleNode()
	defer stop()
	ctx := context.Background()

	// Records of one key go to one shard and keep their order.
	ack, err := c.Publish(ctx, "orders", []byte(`{"id": 1}`), client.WithKey([]byte("customer-1")))
	check(err)
	fmt.Println("accepted into shard", ack.Shard)
	// Output: accepted into shard 3
}

func ExamplePublisher() {
	c, stop := exampleNode()
	defer stop()
	ctx := context.Background()

	pub := c.Publisher("orders")
	for i := range 1000 {
		_, err := pub.Send(ctx, fmt.Appendf(nil, "order %d", i)) // waits only when the window is full
		check(err)
	}
	check(pub.Close()) // waits for all answers; the first failure, if any
	fmt.Println("all accepted")
	// Output: all accepted
}

func ExampleClient_Subscribe() {
	c, stop := exampleNode()
	defer stop()
	ctx := context.Background()

	sub, err := c.Subscribe(ctx, "orders")
	check(err)
	defer sub.Close()

	_, err = c.PublishBatch(ctx, "orders", [][]byte{[]byte("one"), []byte("two"), []byte("three")})
	check(err)

	n := 0
	for ev, err := range sub.Events(ctx) {
		check(err)
		fmt.Printf("%s (lost before: %d)\n", ev.Payload, ev.Gap)
		if n++; n == 3 {
			break
		}
	}
	// Output:
	// one (lost before: 0)
	// two (lost before: 0)
	// three (lost before: 0)
}

func ExampleSubscription_NextBatch() {
	c, stop := exampleNode()
	defer stop()
	ctx := context.Background()

	sub, err := c.Subscribe(ctx, "orders", client.AllShards())
	check(err)
	defer sub.Close()

	for _, key := range []string{"a", "b", "c"} {
		_, err := c.Publish(ctx, "orders", []byte("hello"), client.WithKey([]byte(key)))
		check(err)
	}
	records, bytes := 0, 0
	for records < 3 {
		batch, err := sub.NextBatch(ctx) // valid until the next call, and no allocation
		check(err)
		for ev := range batch.Events() {
			records++
			bytes += len(ev.Payload)
		}
	}
	fmt.Println(records, "records,", bytes, "bytes")
	// Output: 3 records, 15 bytes
}

func ExampleCache() {
	c, stop := exampleNode()
	defer stop()
	ctx := context.Background()

	sessions := c.Cache("sessions")
	check(sessions.Put(ctx, "u1", []byte("alice"), client.WithTTL(time.Hour)))

	value, ok, err := sessions.Get(ctx, "u1")
	check(err)
	fmt.Println(string(value), ok)

	_, ok, err = sessions.Get(ctx, "u2")
	check(err)
	fmt.Println("u2 is there:", ok)
	// Output:
	// alice true
	// u2 is there: false
}

func ExampleCache_PutIf() {
	c, stop := exampleNode()
	defer stop()
	ctx := context.Background()

	// Count up without losing anybody else's update.
	counters := c.Cache("counters")
	for range 3 {
		for {
			entry, ok, err := counters.GetVersioned(ctx, "visits")
			check(err)
			var n int
			cond := client.IfAbsent()
			if ok {
				fmt.Sscan(string(entry.Value), &n)
				cond = client.IfVersion(entry.Version)
			}
			result, err := counters.PutIf(ctx, "visits", fmt.Append(nil, n+1), cond)
			check(err)
			if result.Applied {
				break
			}
		}
	}
	value, _, err := counters.Get(ctx, "visits")
	check(err)
	fmt.Println(string(value))
	// Output: 3
}

func ExampleError() {
	c, stop := exampleNode()
	defer stop()

	_, err := c.Publish(context.Background(), "orders", nil, client.InNamespace("elsewhere"))
	var refusal *client.Error
	switch {
	case err == nil:
		fmt.Println("accepted")
	case errors.Is(err, client.ErrOutcomeUnknown):
		fmt.Println("perhaps accepted: publish again only if twice is harmless")
	case client.IsRetryable(err):
		fmt.Println("not accepted, try again later")
	case errors.As(err, &refusal):
		fmt.Println("refused:", refusal.Code)
	}
	// Output: not accepted, try again later
}
