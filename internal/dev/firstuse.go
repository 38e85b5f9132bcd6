package dev

import (
	"context"
	"net/http"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// A creator makes what appears on first use in the control plane, so that it is
// listed there like what was made by hand.
type creator struct {
	api     *apiclient.Client
	durable bool
	core    func() *broker.Broker // nil until the node has started
}

// lookAgain is how often a creator looks whether the feed has brought what it
// made.
const lookAgain = 2 * time.Millisecond

// create is a [session.Creator]. It waits for the feed to bring what was made: on
// its way it passes what was deleted under the same name before.
func (c *creator) create(ctx context.Context, kind broker.Kind, name broker.StreamName) error {
	switch err := c.make(ctx, kind, name); apiclient.StatusOf(err) {
	case http.StatusNotFound:
		return &broker.NotFoundError{Kind: broker.KindNamespace, Name: name.Tenant + "/" + name.Namespace}
	case http.StatusConflict: // it is there
	default:
		if err != nil {
			return err
		}
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for !c.served(kind, name) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (c *creator) make(ctx context.Context, kind broker.Kind, name broker.StreamName) error {
	ns := model.NamespaceKey{TenantID: name.Tenant, Namespace: name.Namespace}
	if kind == broker.KindCache {
		_, err := c.api.CreateCache(ctx, ns, apiclient.CacheSpec{Cache: name.Name, DisplayName: name.Name})
		return err
	}
	delivery := model.AtMostOnce
	if c.durable {
		delivery = model.AtLeastOnce
	}
	_, err := c.api.CreateStream(ctx, ns, apiclient.StreamSpec{
		Stream: name.Name, Kind: model.KindStream, Shards: 1, Consistency: model.Leader, Delivery: delivery, Durable: c.durable,
	})
	return err
}

func (c *creator) served(kind broker.Kind, name broker.StreamName) bool {
	core := c.core()
	if core == nil {
		return false
	}
	var err error
	if kind == broker.KindCache {
		_, err = core.Cache(name.Tenant, name.Namespace, name.Name)
	} else {
		_, err = core.Stream(name.Tenant, name.Namespace, name.Name)
	}
	return err == nil
}
