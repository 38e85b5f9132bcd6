package natsref

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// maxAckPending is how many records may be delivered and not
	// acknowledged: as many as Felix lets a group have in flight.
	maxAckPending = 10_000
	// landWithin bounds how long acknowledgements that nobody answers may
	// take to be counted by the server.
	landWithin = 20 * time.Second
	// landEvery is how often that is looked at.
	landEvery = time.Millisecond
)

// A workforce is the connections that workers share a pull consumer over.
type workforce struct {
	conns  []*nats.Conn
	js     []jetstream.JetStream
	rounds int
}

// hire opens a connection for each of n workers and looks whether the stream
// holds its backlog.
func (t Target) hire(ctx context.Context, n, records int, fail context.CancelCauseFunc) (*workforce, error) {
	w := &workforce{}
	for range n {
		nc, err := t.connect(fail)
		if err != nil {
			w.close()
			return nil, err
		}
		w.conns = append(w.conns, nc)
		js, err := jetstream.New(nc)
		if err != nil {
			w.close()
			return nil, fmt.Errorf("open jetstream: %w", err)
		}
		w.js = append(w.js, js)
	}
	if err := holds(ctx, w.js[0], records); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *workforce) close() {
	for _, nc := range w.conns {
		nc.Close()
	}
}

// open makes a consumer that nobody has used, from the first record on, and
// returns a handle of it on each connection.
func (w *workforce) open(ctx context.Context) ([]jetstream.Consumer, error) {
	w.rounds++
	name := fmt.Sprintf("workers-%d", w.rounds)
	if _, err := w.js[0].CreateConsumer(ctx, streamName, jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverAllPolicy, MaxAckPending: maxAckPending,
	}); err != nil {
		return nil, fmt.Errorf("create consumer: %w", err)
	}
	handles := make([]jetstream.Consumer, len(w.js))
	for i, js := range w.js {
		var err error
		if handles[i], err = js.Consumer(ctx, streamName, name); err != nil {
			return nil, fmt.Errorf("look up consumer: %w", err)
		}
	}
	return handles, nil
}

// landed waits until the server has counted the acknowledgements of the
// first records of the stream and returns what it says then. A plain
// acknowledgement is not answered, so there is no other way to know.
func (w *workforce) landed(ctx context.Context, c jetstream.Consumer, records uint64) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, landWithin)
	defer cancel()
	for _, nc := range w.conns {
		if err := nc.FlushWithContext(ctx); err != nil {
			return nil, fmt.Errorf("flush acknowledgements: %w", err)
		}
	}
	for {
		info, err := c.Info(ctx)
		if err != nil {
			return nil, fmt.Errorf("look at consumer: %w", err)
		}
		if info.AckFloor.Stream >= records {
			return info, nil
		}
		select {
		case <-time.After(landEvery):
		case <-ctx.Done():
			return nil, fmt.Errorf("acknowledged up to record %d, %d pending, of %d sent", info.AckFloor.Stream, info.NumAckPending, records)
		}
	}
}

// settle holds what the server says against what the workers did: taken
// records delivered once each, the first acked of them acknowledged. Then it
// removes the consumer.
func (w *workforce) settle(ctx context.Context, info *jetstream.ConsumerInfo, taken, acked uint64) error {
	if info.Delivered.Stream != taken || info.Delivered.Consumer != taken || info.NumRedelivered != 0 {
		return fmt.Errorf("%d records taken, %d delivered in %d deliveries, %d of them again",
			taken, info.Delivered.Stream, info.Delivered.Consumer, info.NumRedelivered)
	}
	if info.AckFloor.Stream != acked || uint64(info.NumAckPending) != taken-acked {
		return fmt.Errorf("%d of %d records acknowledged, the server counts %d and %d pending", acked, taken, info.AckFloor.Stream, info.NumAckPending)
	}
	if err := w.js[0].DeleteConsumer(ctx, streamName, info.Name); err != nil {
		return fmt.Errorf("delete consumer: %w", err)
	}
	return nil
}
