// Package felix drives a Felix broker the way an application does: through
// package client, over the same socket options the references use.
package felix

import (
	"context"
	"fmt"
	"time"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/client"
)

// A Target is a broker to load, and how.
type Target struct {
	Addr   string `json:"addr"`
	CAFile string `json:"ca_file"`
	Tenant string `json:"tenant"`
	Token  string `json:"token"`
	// AdminURL is where the broker serves its metrics.
	AdminURL string `json:"admin_url"`
	// Poll lets the client's receive loop look again before it parks.
	Poll time.Duration `json:"poll_ns"`
}

// dial connects with the defaults of the client, but for what opts say.
func (t Target) dial(ctx context.Context, opts ...client.Option) (*client.Client, error) {
	opts = append([]client.Option{
		client.WithTenant(t.Tenant), client.WithNamespace(frames.Namespace),
		client.WithToken(t.Token), client.WithCAFile(t.CAFile),
		client.WithUDP(client.UDP{Poll: t.Poll}),
	}, opts...)
	c, err := client.Dial(ctx, []string{t.Addr}, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to felix: %w", err)
	}
	return c, nil
}
