package dev

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/controlplane/model"
)

// What appears on first use is known to the control plane, and without one what
// is there goes on and nothing new appears.
func TestFirstUseIsKnownToTheControlPlane(t *testing.T) {
	dir := t.TempDir()
	server := start(t, Options{Dir: dir, Data: DataDir(dir)})
	c, err := server.Dial(t.Context(), client.WithReconnect(client.ReconnectPolicy{Attempts: 1}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Publish(t.Context(), "orders", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := c.Cache("users").Put(t.Context(), "u1", []byte("v")); err != nil {
		t.Fatal(err)
	}
	s, err := server.plane.Store().Stream(t.Context(), model.StreamKey{TenantID: Tenant, Namespace: Namespace, Stream: "orders"})
	if err != nil || !s.Durable || s.Shards != 1 || s.UID == "" {
		t.Errorf("the control plane knows %+v, %v", s, err)
	}
	if _, err := server.plane.Store().Cache(t.Context(), model.CacheKey{TenantID: Tenant, Namespace: Namespace, Cache: "users"}); err != nil {
		t.Error(err)
	}
	if err := server.plane.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	ack, err := c.Publish(t.Context(), "orders", []byte("two"))
	if err != nil || ack.Offset != 1 {
		t.Errorf("without the control plane: %+v, %v", ack, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := c.Publish(ctx, "refunds", []byte("three")); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a new stream without the control plane: %v", err)
	}
}

// A stream that is deleted goes with its data, and comes back empty.
func TestADeletedStreamIsGone(t *testing.T) {
	dir := t.TempDir()
	server := start(t, Options{Dir: dir, Data: DataDir(dir)})
	c, err := server.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Publish(t.Context(), "orders", []byte("old")); err != nil {
		t.Fatal(err)
	}
	sub, err := c.Subscribe(t.Context(), "orders", client.From(client.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if _, err := sub.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.plane.Store().DeleteStream(t.Context(), model.StreamKey{TenantID: Tenant, Namespace: Namespace, Stream: "orders"}); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.Next(t.Context()); !errors.Is(err, client.ErrDeleted) {
		t.Errorf("the subscription ended with %v", err)
	}
	ack, err := c.Publish(t.Context(), "orders", []byte("new"))
	if err != nil || ack.Offset != 0 {
		t.Errorf("the new stream of that name: %+v, %v", ack, err)
	}
}
