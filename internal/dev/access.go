package dev

import (
	"context"
	"net"

	"github.com/felixlog/felix/client"
)

// An Access is where a broker for development is and what a client needs to
// be let in. It can be handed to another process.
type Access struct {
	Addr      string `json:"addr"`
	CAFile    string `json:"ca_file"`
	TokenFile string `json:"token_file"`
}

// Dial opens a client of the broker.
func (a Access) Dial(ctx context.Context, options ...client.Option) (*client.Client, error) {
	host, _, err := net.SplitHostPort(a.Addr)
	if err != nil {
		return nil, err
	}
	all := []client.Option{
		client.WithTenant(Tenant), client.WithNamespace(Namespace), client.WithTokenFile(a.TokenFile),
		client.WithCAFile(a.CAFile), client.WithServerName(host),
	}
	return client.Dial(ctx, []string{a.Addr}, append(all, options...)...)
}

// Access is how clients reach the broker, the same after a restart.
func (p *Process) Access() Access { return p.access }
