package controlplane

import (
	"context"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
)

// nodesPause is the least time between two lists of the brokers.
const nodesPause = 200 * time.Millisecond

// pollNodes keeps the addresses of the brokers: at every interval, and soon
// after a shard went to one that is not known. A poll that fails keeps those
// there are.
func (a *Agent) pollNodes(ctx context.Context) {
	tick := time.NewTicker(a.interval())
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-a.directory.strange:
		case <-ctx.Done():
			return
		}
		a.readNodes(ctx)
		select {
		case <-time.After(nodesPause):
		case <-ctx.Done():
			return
		}
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
