package controlplane

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/felixlog/felix/client"
)

// has says whether the core serves a stream.
func (b *brokerRig) has(name string) error {
	_, err := b.node.Core().Stream("t1", "default", name)
	return err
}

func (b *brokerRig) publish(c *client.Client, stream, text string) {
	b.t.Helper()
	eventually(b.t, "publish to "+stream, func() error {
		ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.Publish(ctx, stream, []byte(text))
		return err
	})
}

// read is every record of shard 0 of a durable stream.
func (b *brokerRig) read(c *client.Client, stream string) (records []string, err error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	page, err := c.Read(ctx, stream, client.Range{})
	if err != nil {
		return nil, err
	}
	for _, e := range page.Records {
		records = append(records, string(e.Payload))
	}
	return records, nil
}

func (b *brokerRig) expect(c *client.Client, stream string, want ...string) {
	b.t.Helper()
	eventually(b.t, "read "+stream, func() error {
		got, err := b.read(c, stream)
		if err == nil && strings.Join(got, ",") != strings.Join(want, ",") {
			err = fmt.Errorf("records are %q, want %q", got, want)
		}
		return err
	})
}

func put(ctx context.Context, c *client.Cache, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return c.Put(ctx, key, []byte(value))
}
