package cli

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/controlplane"
)

// A testPlane is a control plane in memory with the tenant acme, whose keys the
// test has.
type testPlane struct {
	*controlplane.Instance
	signer  *auth.Signer
	dir     string
	written int // tokens so far
}

func startPlane(t *testing.T, flags map[string]string) *testPlane {
	t.Helper()
	p := &testPlane{Instance: startInstance(t, flags), dir: t.TempDir()}
	p.signer = addTenant(t, p.Store(), "acme")
	return p
}

// startOn is another instance on the metadata of one that has ended.
func startOn(t *testing.T, before *testPlane, flags map[string]string) *testPlane {
	t.Helper()
	return &testPlane{Instance: startInstance(t, flags), dir: before.dir, signer: before.signer, written: before.written}
}

func startInstance(t *testing.T, flags map[string]string) *controlplane.Instance {
	t.Helper()
	all := map[string]string{"bind-addr": "127.0.0.1:0", "metrics-bind": "127.0.0.1:0", "shutdown-predrain-ms": "0", "bootstrap-bind-addr": "127.0.0.1:0"}
	maps.Copy(all, flags)
	cfg, _, err := config.LoadControlPlane(config.Sources{Flags: all, FileSystem: noConfig{}})
	if err != nil {
		t.Fatal(err)
	}
	instance, err := controlplane.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return instance
}

// noConfig is a file system without configuration.
type noConfig struct{}

func (noConfig) ReadFile(name string) ([]byte, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
}

// addTenant makes a tenant and returns what signs its tokens.
func addTenant(t *testing.T, s store.Store, name string) *auth.Signer {
	t.Helper()
	private, err := auth.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer := auth.NewSigner("", private)
	if err := s.CreateTenant(t.Context(), model.Tenant{TenantID: name, DisplayName: name}); err != nil {
		t.Fatal(err)
	}
	key := model.SigningKey{KID: signer.Key().ID, Seed: private.Seed(), Public: signer.Key().Public, Status: model.KeyCurrent}
	if _, err := s.EnsureSigningKey(t.Context(), name, key); err != nil {
		t.Fatal(err)
	}
	return signer
}

// tokenFile writes a token of acme for an audience.
func (p *testPlane) tokenFile(t *testing.T, audience string, lives time.Duration, permissions ...string) string {
	t.Helper()
	p.written++
	name := filepath.Join(p.dir, fmt.Sprintf("token-%d", p.written))
	if err := os.WriteFile(name, []byte(p.token(t, audience, lives, permissions...)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func (p *testPlane) token(t *testing.T, audience string, lives time.Duration, permissions ...string) string {
	t.Helper()
	now := time.Now()
	token, err := p.signer.Mint(auth.Claims{
		Tenant: "acme", Subject: "ann", Audience: audience, Permissions: permissions, IssuedAt: now.Add(-time.Hour), Expires: now.Add(lives),
	})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// tokens gives a client of the API its token.
func (p *testPlane) tokens(t *testing.T, permissions ...string) func(context.Context) (string, error) {
	token := p.token(t, auth.AudienceControlPlane, time.Hour, permissions...)
	return func(context.Context) (string, error) { return token, nil }
}

// all that an administrator of acme and of the cluster may do.
func administrator() []string {
	return []string{
		"tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*",
		"tenant.manage:tenant:acme", "ns.manage:namespace:acme/*", "stream.manage:stream:acme/*/*", "cache.manage:cache:acme/*/*",
		"rbac.view:tenant:acme", "rbac.policy.manage:tenant:acme", "rbac.assignment.manage:tenant:acme",
	}
}

// app is an App that talks to the control plane as acme.
func (p *testPlane) app(t *testing.T, permissions ...string) *testApp {
	t.Helper()
	return newTestApp(t, map[string]string{
		"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme",
		"FELIX_CONTROLPLANE_TOKEN_FILE": p.tokenFile(t, auth.AudienceControlPlane, time.Hour, permissions...),
	})
}

// fails runs a command line that must fail with a code, and returns what it
// said.
func (ta *testApp) fails(t *testing.T, exit int, args ...string) string {
	t.Helper()
	ta.out.Reset()
	ta.errs.Reset()
	if code := ta.Run(t.Context(), args); code != exit {
		t.Fatalf("felix %s: exit %d, want %d: %s", strings.Join(args, " "), code, exit, &ta.errs)
	}
	return ta.errs.String()
}
