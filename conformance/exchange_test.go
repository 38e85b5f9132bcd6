package conformance

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/brokerservice"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/controlplane"
	"github.com/felixlog/felix/internal/node"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/wire"
)

// bootstrapSecret opens the bootstrap listener of the test's control plane.
const bootstrapSecret = "a secret of the test, shown by nobody else"

// A cluster is a control plane, its identity provider and a broker that follows
// it.
type cluster struct {
	t      *testing.T
	idp    *idp.Provider
	plane  *controlplane.Instance
	api    *apiclient.Client // shows no token
	broker *brokerservice.Service
	caFile string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, idp: idp.Start(t)}
	cfg, _, err := config.LoadControlPlane(config.Sources{FileSystem: noFiles{}, Flags: map[string]string{
		"bind-addr": "127.0.0.1:0", "metrics-bind": "127.0.0.1:0", "shutdown-predrain-ms": "0", "oidc-allow-insecure-http": "true",
		"bootstrap-enabled": "true", "bootstrap-bind-addr": "127.0.0.1:0", "bootstrap-token": bootstrapSecret,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if c.plane, err = controlplane.Start(t.Context(), cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.plane.Shutdown(context.Background()) })
	c.api = c.client("http://"+c.plane.Addr(), "")
	c.begin("ops", "operator", []model.Policy{
		{Subject: auth.PrincipalID(c.idp.Issuer(), "broker"), Object: "cluster:*", Action: "node.view"},
	})
	c.begin("acme", "alice", nil)
	c.startBroker()
	return c
}

// noFiles is a file system without configuration.
type noFiles struct{}

func (noFiles) ReadFile(name string) ([]byte, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
}

func (c *cluster) client(url, token string) *apiclient.Client {
	c.t.Helper()
	api, err := apiclient.New(apiclient.Options{URL: url, Token: func(context.Context) (string, error) { return token, nil }})
	if err != nil {
		c.t.Fatal(err)
	}
	return api
}

// begin initialises a tenant with an administrator.
func (c *cluster) begin(tenant, admin string, policies []model.Policy) {
	c.t.Helper()
	_, err := c.client("http://"+c.plane.BootstrapAddr(), "").Bootstrap(c.t.Context(), tenant, bootstrapSecret, apiclient.BootstrapRequest{
		DisplayName:            tenant,
		IdpIssuers:             []model.IdpIssuer{{Issuer: c.idp.Issuer(), Audiences: []string{c.idp.Audience()}, ClaimMappings: model.ClaimMappings{SubjectClaim: "sub"}}},
		InitialAdminPrincipals: []string{auth.PrincipalID(c.idp.Issuer(), admin)},
		Policies:               policies,
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// exchange gives a user's token for an audience.
func (c *cluster) exchange(tenant, user, audience string) string {
	c.t.Helper()
	return c.logIn(tenant, user, audience).FelixToken
}

// logIn gives a user's token for an audience with what renews it.
func (c *cluster) logIn(tenant, user, audience string) apiclient.TokenResponse {
	c.t.Helper()
	got, err := c.api.Exchange(c.t.Context(), tenant, c.idp.Token(idp.Claims{"sub": user}), apiclient.ExchangeRequest{Audience: audience})
	if err != nil {
		c.t.Fatalf("exchange for %s: %v", user, err)
	}
	return got
}

func (c *cluster) startBroker() {
	c.t.Helper()
	dir := c.t.TempDir()
	login := c.logIn("ops", "broker", auth.AudienceControlPlane)
	credential := filepath.Join(dir, "token")
	if err := errors.Join(os.WriteFile(credential, []byte(login.FelixToken), 0o600), os.WriteFile(credential+".refresh", []byte(login.RefreshToken), 0o600)); err != nil {
		c.t.Fatal(err)
	}
	ca, err := tlsconfig.LoadDevCA(dir, tlsconfig.DevOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	cert := ca.ServerCertificate()
	cfg, _, err := config.Load(config.Sources{FileSystem: noFiles{}, Flags: map[string]string{
		"quic-bind": "127.0.0.1:0", "quic-listeners": "1", "metrics-bind": "127.0.0.1:0", "durable-storage-dir": filepath.Join(dir, "data"),
		"controlplane-url": "http://" + c.plane.Addr(), "node-token-file": credential, "node-refresh-token-file": credential + ".refresh",
	}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.broker, err = brokerservice.Start(c.t.Context(), node.Options{Config: cfg, Certificate: &cert, Version: "test"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.caFile = ca.CAFile()
	c.t.Cleanup(func() {
		if err := c.broker.Shutdown(context.Background()); err != nil {
			c.t.Error(err)
		}
	})
}

// The published client works with a token that our exchange gave, as far as its
// grants go and no further, and with one of a key that was rotated in.
func TestPublishedClientWithAnExchangedToken(t *testing.T) {
	c := startCluster(t)
	admin := c.client("http://"+c.plane.Addr(), c.exchange("acme", "alice", auth.AudienceControlPlane))
	ctx := t.Context()
	ns := model.NamespaceKey{TenantID: "acme", Namespace: "default"}
	if _, err := admin.CreateNamespace(ctx, model.Namespace{TenantID: "acme", Namespace: "default", DisplayName: "default"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"orders", "audit"} {
		spec := apiclient.StreamSpec{Stream: name, Kind: model.KindStream, Shards: 1, Consistency: model.Leader, Delivery: model.AtLeastOnce, Durable: true}
		if _, err := admin.CreateStream(ctx, ns, spec); err != nil {
			t.Fatal(err)
		}
	}
	for _, action := range []string{"stream.publish", "stream.subscribe"} {
		rule := model.Policy{Subject: auth.PrincipalID(c.idp.Issuer(), "bob"), Object: "stream:acme/default/orders", Action: action}
		if err := admin.AddPolicy(ctx, "acme", rule); err != nil {
			t.Fatal(err)
		}
	}

	d := startDriver(t)
	addr := c.broker.ClientAddrs()[0]
	connect := func(name string) {
		t.Helper()
		token := c.exchange("acme", "bob", auth.AudienceBroker)
		if err := d.connect(name, addr, c.caFile, map[string]any{"tenant_id": "acme", "token": token}); err != nil {
			t.Fatal(err)
		}
	}
	connect("bob")
	// The broker hears of the stream when it is made, or a moment later; the
	// client repeats what is not found.
	publish := func(client, stream, text string) error {
		return d.call(nil, client, "publish", []any{"acme", "default", stream, pyBytes(text)}, nil)
	}
	if err := publish("bob", "orders", "one espresso"); err != nil {
		t.Fatal(err)
	}
	err := publish("bob", "audit", "nothing to see")
	var refused *clientError
	if !errors.As(err, &refused) || refused.Code != wire.CodeForbidden.String() {
		t.Errorf("a stream without a grant: %v", err)
	}
	if err := d.keep("sub", "bob", "subscribe", []any{"acme", "default", "orders"}, map[string]any{"start": "earliest"}); err != nil {
		t.Fatal(err)
	}
	if e, err := d.nextEvent("sub", 30); err != nil || e == nil || string(e.Payload.Bytes) != "one espresso" {
		t.Errorf("read %v, %v", e, err)
	}

	// A token for the control plane is none for a broker.
	err = d.connect("wrong", addr, c.caFile, map[string]any{"tenant_id": "acme", "token": c.exchange("acme", "alice", auth.AudienceControlPlane)})
	if err == nil {
		err = publish("wrong", "orders", "not this way")
	}
	if err == nil {
		t.Error("a broker takes a token for the control plane")
	}

	keys, err := admin.StageSigningKey(ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	for _, kid := range keys.Verifying {
		if kid != keys.Current {
			if _, err := admin.ActivateSigningKey(ctx, "acme", kid); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	connect("rotated") // fails unless the broker asks for the keys again
	if err := publish("rotated", "orders", "with a new key"); err != nil {
		t.Fatal(err)
	}
	if err := publish("bob", "orders", "with the old one"); err != nil {
		t.Fatal(err)
	}
}
