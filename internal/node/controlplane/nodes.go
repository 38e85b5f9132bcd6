package controlplane

import (
	"context"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
)

// pollNodes keeps the addresses of the brokers. A poll that fails keeps those
// there are.
func (a *Agent) pollNodes(ctx context.Context) {
	tick := time.NewTicker(a.interval())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		a.readNodes(ctx)
	}
}

func (a *Agent) readNodes(ctx context.Context) {
	views, err := a.client.Nodes(ctx, apiclient.NodeFilter{})
	if err != nil {
		a.o.Logger.Debug("brokers cannot be listed; those known are kept", "error", err)
		return
	}
	if a.directory.listed(views) {
		a.changed()
	}
}
