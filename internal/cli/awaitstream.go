package cli

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/client"
)

// A broker hears of a new stream a moment after it was made.
const (
	newStreamPatience = 2 * time.Second
	newStreamLooks    = 50 * time.Millisecond
)

// awaitStream gives a stream that was made just now the time to arrive at the
// broker. What is wrong otherwise, the first use of it will say.
func awaitStream(ctx context.Context, c *client.Client, stream string) {
	ctx, cancel := context.WithTimeout(ctx, newStreamPatience)
	defer cancel()
	for {
		if _, _, err := c.StreamShards(ctx, stream); !errors.Is(err, client.ErrNotFound) {
			return
		}
		select {
		case <-time.After(newStreamLooks):
		case <-ctx.Done():
			return
		}
	}
}
