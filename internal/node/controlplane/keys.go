package controlplane

import (
	"context"
	"encoding/json"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/internal/auth"
)

// fetchKeys asks for the key set of a tenant, which needs no token.
func (a *Agent) fetchKeys(ctx context.Context, tenant string) ([]byte, error) {
	set, err := a.client.JWKS(ctx, tenant)
	if apiclient.StatusOf(err) == 404 {
		return nil, auth.ErrUnknownTenant
	}
	return set, err
}

// mayExist says whether a tenant's keys are worth asking for.
func (a *Agent) mayExist(tenant string) bool { return a.mirror.Known(tenant) }

// putKeys gives the keys of an earlier run.
func (a *Agent) putKeys(k *known) {
	for tenant, set := range k.Keys {
		keys, err := auth.ParseJWKS(set)
		if err != nil {
			a.o.Logger.Warn("keys of a tenant that were kept are of no use", "tenant", tenant, "error", err)
			continue
		}
		a.keys.Put(tenant, keys)
	}
}

// keepKeys fetches the keys of every tenant once, and again before they are
// old, so that they are there when a client comes or the control plane goes.
func (a *Agent) keepKeys(ctx context.Context) {
	const early = auth.DefaultKeysAge * 3 / 4
	for {
		passed := a.mirror.Passed()
		for _, tenant := range a.mirror.Tenants() {
			if ctx.Err() != nil {
				return
			}
			held, fetched := a.keys.Held(tenant)
			if len(held) > 0 && a.o.Now().Sub(fetched) < early {
				continue
			}
			_, _ = a.keys.Renew(ctx, tenant) // the source remembers failures; clients are told of them
		}
		select {
		case <-passed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(a.interval()):
		case <-ctx.Done():
			return
		}
	}
}

// heldKeys are the keys in memory, as JWK sets.
func (a *Agent) heldKeys() map[string]json.RawMessage {
	sets := make(map[string]json.RawMessage)
	for _, tenant := range a.mirror.Tenants() {
		held, _ := a.keys.Held(tenant)
		if len(held) == 0 {
			continue
		}
		if set, err := auth.MarshalJWKS(held); err == nil {
			sets[tenant] = set
		}
	}
	return sets
}
