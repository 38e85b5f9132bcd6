package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/wire"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// A rig is a running instance and its tenants' keys.
type rig struct {
	t      testing.TB
	server *controlplane.Server
	store  store.Store
	http   *http.Client
	base   string

	mu      sync.Mutex
	signers map[string]*auth.Signer
}

// options are those of a quick instance on free ports.
func options(st store.Store) controlplane.Options {
	o := controlplane.DefaultOptions()
	o.Store = st
	o.BindAddr, o.MetricsBind, o.Bootstrap.BindAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.ValidateName = wire.ValidateName
	o.Logger = slog.New(slog.NewTextHandler(&seen, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.ShutdownPredrain = 0
	o.PlacementSettle = 0
	o.OIDCAllowInsecureHTTP = true
	return o
}

func newRig(t *testing.T, change ...func(*controlplane.Options)) *rig {
	t.Helper()
	st := memory.Open(memory.Options{})
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	r := startRig(t, st, change...)
	r.tenant("ops")
	return r
}

// startRig starts an instance on a store.
func startRig(t testing.TB, st store.Store, change ...func(*controlplane.Options)) *rig {
	t.Helper()
	o := options(st)
	for _, c := range change {
		c(&o)
	}
	server, err := controlplane.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return &rig{
		t: t, server: server, store: o.Store, base: "http://" + server.Addr(),
		http: &http.Client{Transport: transport, Timeout: 2 * patience}, signers: map[string]*auth.Signer{},
	}
}

// tenant makes a tenant whose key the rig holds.
func (r *rig) tenant(id string) {
	r.t.Helper()
	private, err := auth.GenerateKey(rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	signer := auth.NewSigner("", private)
	key := model.SigningKey{KID: signer.Key().ID, Seed: private.Seed(), Public: signer.Key().Public, Status: model.KeyCurrent}
	if err := r.store.CreateTenantWithKey(r.t.Context(), model.Tenant{TenantID: id, DisplayName: id}, key); err != nil {
		r.t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signers[id] = signer
}

// token is one of the tenant with these permissions.
func (r *rig) token(tenant string, perms ...string) string {
	r.t.Helper()
	return r.mint(auth.Claims{
		Tenant: tenant, Subject: "someone", Permissions: perms, Audience: auth.AudienceControlPlane,
		IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour),
	})
}

func (r *rig) mint(c auth.Claims) string {
	r.t.Helper()
	r.mu.Lock()
	signer := r.signers[c.Tenant]
	r.mu.Unlock()
	if signer == nil {
		r.t.Fatalf("the rig has no key of %s", c.Tenant)
	}
	token, err := signer.Mint(c)
	if err != nil {
		r.t.Fatal(err)
	}
	return seen.secret(token)
}

// operator is a token that may do all that is done to the cluster.
func (r *rig) operator() string {
	return r.token("ops", "tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*")
}

// admin is a token of a tenant that may do all within it.
func (r *rig) admin(tenant string) string {
	return r.token(tenant, "tenant.manage:tenant:"+tenant, "ns.manage:namespace:"+tenant+"/*",
		"stream.manage:stream:"+tenant+"/*/*", "cache.manage:cache:"+tenant+"/*/*",
		"rbac.view:tenant:"+tenant, "rbac.policy.manage:tenant:"+tenant, "rbac.assignment.manage:tenant:"+tenant)
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// failure is the body of an error.
type failure struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
}

func (a answer) failure(t testing.TB) failure {
	t.Helper()
	var f failure
	if err := json.Unmarshal(a.body, &f); err != nil {
		t.Fatalf("status %d with a body that is no error: %q", a.status, a.body)
	}
	return f
}

func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("status %d with a body that does not parse (%v): %.300q", a.status, err, a.body)
	}
}

// do sends a request; body is text, or a value to be written as JSON, or nil.
func (r *rig) do(method, path, token string, body any) answer {
	r.t.Helper()
	a, err := r.try(r.t.Context(), method, path, token, body)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *rig) try(ctx context.Context, method, path, token string, body any) (answer, error) {
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return answer{}, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, reader)
	if err != nil {
		return answer{}, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if reader != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return r.send(req)
}

func (r *rig) send(req *http.Request) (answer, error) {
	res, err := r.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	if res.StatusCode >= 400 {
		_, _ = seen.Write(append(text, '\n'))
	}
	return answer{res.StatusCode, res.Header, text}, nil
}

// want fails the test unless the answer has the status, and the code if it is
// an error.
func (r *rig) want(status int, code, method, path, token string, body any) answer {
	r.t.Helper()
	a := r.do(method, path, token, body)
	if a.status != status {
		r.t.Fatalf("%s %s: status %d, want %d: %.400s", method, path, a.status, status, a.body)
	}
	if status < 400 {
		return a
	}
	f := a.failure(r.t)
	if f.Code != code {
		r.t.Fatalf("%s %s: code %q, want %q: %s", method, path, f.Code, code, f.Message)
	}
	if f.Message == "" || f.RequestID == "" || f.RequestID != a.header.Get("X-Request-Id") {
		r.t.Fatalf("%s %s: error without a message or without the id of the request: %s", method, path, a.body)
	}
	return a
}

// ok is want for successes.
func (r *rig) ok(status int, method, path, token string, body any) answer {
	r.t.Helper()
	return r.want(status, "", method, path, token, body)
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
