package cli

import (
	"context"

	"github.com/felixlog/felix/client"
)

// A batchSender publishes batches: a [client.Publisher], or an
// [idempotentSender].
type batchSender interface {
	SendFunc(ctx context.Context, done func(client.Ack, error), payloads ...[]byte) error
	Flush(ctx context.Context) error
}

// An idempotentSender stores each batch exactly once.
type idempotentSender struct {
	*client.Producer
	key   []byte
	keyed bool
}

func newIdempotentSender(ctx context.Context, c *client.Client, stream string, key []byte, keyed bool) (batchSender, error) {
	producer, err := c.NewProducer(ctx, stream)
	if err != nil {
		return nil, err
	}
	return &idempotentSender{Producer: producer, key: key, keyed: keyed}, nil
}

func (s *idempotentSender) SendFunc(ctx context.Context, done func(client.Ack, error), payloads ...[]byte) error {
	if s.keyed {
		return s.SendKeyedFunc(ctx, s.key, done, payloads...)
	}
	return s.Producer.SendFunc(ctx, done, payloads...)
}
