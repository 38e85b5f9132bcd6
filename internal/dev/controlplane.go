package dev

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/controlplane"
)

// metadataDir is where, under the directory of a development broker, its control
// plane keeps what it knows.
const metadataDir = "controlplane"

// startControlPlane starts the control plane of a development broker: a Raft
// group of one in the directory of o, or one in memory.
func startControlPlane(ctx context.Context, o *Options, id *identity, logger *slog.Logger) (*controlplane.Instance, error) {
	flags := map[string]string{
		"bind-addr":                 at(o.APIPort),
		"metrics-bind":              at(0),
		"shutdown-predrain-ms":      "0",
		"shutdown-drain-timeout-ms": "3000",
	}
	if o.Dir != "" && o.Data != "" {
		flags["raft-data-dir"] = filepath.Join(o.Dir, metadataDir)
	}
	cfg, _, err := config.LoadControlPlane(config.Sources{Flags: flags, FileSystem: noFiles{}})
	if err != nil {
		return nil, err
	}
	instance, err := controlplane.Start(ctx, cfg, logger)
	if err != nil {
		return nil, err
	}
	if err := seed(ctx, instance.Store(), id); err != nil {
		return nil, errors.Join(err, instance.Shutdown(context.WithoutCancel(ctx)))
	}
	return instance, nil
}

// seed makes the development tenant and its namespace, and has the identity's
// key sign for it. What is there stays.
func seed(ctx context.Context, s store.Store, id *identity) error {
	key := model.SigningKey{
		KID: id.key.ID, Seed: id.private.Seed(), Public: id.private.Public().(ed25519.PublicKey), Status: model.KeyCurrent,
	}
	made := s.CreateTenantWithKey(ctx, model.Tenant{TenantID: Tenant, DisplayName: "Development"}, key)
	err := errors.Join(
		unlessThere(made),
		unlessThere(s.CreateNamespace(ctx, model.Namespace{TenantID: Tenant, Namespace: Namespace, DisplayName: Namespace})),
	)
	if err != nil || made == nil {
		return err
	}
	keys, err := s.EnsureSigningKey(ctx, Tenant, key)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(keys, func(k model.SigningKey) bool { return k.KID == key.KID }) {
		return nil
	}
	// The key file is a new one: its tokens count from now on.
	key.Status = model.KeyStaged
	if _, err := s.StageSigningKey(ctx, Tenant, key); err != nil {
		return err
	}
	_, err = s.ActivateSigningKey(ctx, Tenant, key.KID)
	return err
}

// unlessThere drops the error of making what is there already.
func unlessThere(err error) error {
	var conflict *store.ConflictError
	if errors.As(err, &conflict) && conflict.Reason == store.Exists {
		return nil
	}
	return err
}

// controlPermissions let a token do everything with the development control
// plane.
func controlPermissions() []string {
	return []string{
		"tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*",
		"tenant.manage:tenant:" + Tenant, "ns.manage:namespace:" + Tenant + "/*",
		"stream.manage:stream:" + Tenant + "/*/*", "cache.manage:cache:" + Tenant + "/*/*",
		"rbac.view:tenant:" + Tenant, "rbac.policy.manage:tenant:" + Tenant, "rbac.assignment.manage:tenant:" + Tenant,
	}
}

// controlClaims are those of the token for the control plane.
func controlClaims() auth.Claims {
	return auth.Claims{Tenant: Tenant, Subject: subject, Audience: auth.AudienceControlPlane, Permissions: controlPermissions(), Expires: auth.NoExpiry()}
}
