package auth_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/auth/oidc"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/felixtest/idp"
	token "github.com/felixlog/felix/internal/auth"
)

const (
	tenant     = "t1"
	bootSecret = "the-bootstrap-secret-of-the-tests"
	oldSecret  = "the-bootstrap-secret-of-yesterday"
	broker     = token.AudienceBroker
	control    = token.AudienceControlPlane
)

// A world is a service over a store, a provider whose tokens it takes, and what
// it said and counted.
type world struct {
	t     TB
	clock *clock
	store store.Store
	idp   *idp.Provider
	said  *transcript
	*auth.Service

	mu      sync.Mutex
	counts  map[string]int
	options auth.Options
}

func newWorld(t TB, change func(*auth.Options)) *world {
	t.Helper()
	return newWorldOver(t, nil, change)
}

// newWorldOver is newWorld over a store, which is the memory backend where it is
// nil. The world closes it.
func newWorldOver(t TB, st store.Store, change func(*auth.Options)) *world {
	t.Helper()
	w := &world{
		t: t, clock: &clock{now: time.Unix(1_800_000_000, 0)}, counts: make(map[string]int),
		said: &transcript{secrets: map[string]bool{bootSecret: true, oldSecret: true}},
	}
	if w.store = st; st == nil {
		w.store = memory.Open(memory.Options{Clock: w.clock.Now})
	}
	p, err := idp.New(idp.Options{Now: w.clock.Now, Lifetime: 365 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	w.idp = p
	t.Cleanup(func() {
		p.Close()
		_ = w.store.Close()
		w.said.leaks(t)
	})
	w.options = auth.Options{
		Store: w.store, Now: w.clock.Now, Random: rand.Reader,
		Logger: slog.New(slog.NewTextHandler(w.said, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OIDC:   oidc.Options{AllowInsecureHTTP: true},
		Bootstrap: auth.BootstrapOptions{
			Enabled: true, Token: bootSecret, PreviousToken: oldSecret, DevTokens: true,
		},
		Observer: auth.Observer{
			AuthRejected:     func(r auth.Reason) { w.count("rejected " + string(r)) },
			RefreshIssued:    func(via string) { w.count("issued " + via) },
			RefreshReplayed:  func() { w.count("replayed") },
			RefreshBadSecret: func() { w.count("bad secret") },
			RefreshRevoked:   func(n int) { w.add("revoked", n) },
			Delegated:        func() { w.count("delegated") },
			Bootstrap:        func(outcome, reason string) { w.count("bootstrap " + outcome + " " + reason) },
		},
	}
	if change != nil {
		change(&w.options)
	}
	w.Service = w.another()
	return w
}

// another is one more instance over the same store.
func (w *world) another() *auth.Service { return w.instanceOver(w.options.Store) }

func (w *world) instanceOver(st auth.Store) *auth.Service {
	w.t.Helper()
	o := w.options
	o.Store = st
	s, err := auth.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) ctx() context.Context { return context.Background() }

func (w *world) count(what string) { w.add(what, 1) }

func (w *world) add(what string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what] += n
}

func (w *world) counted(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[what]
}

// refused is the refusal that err must be, whose text is looked through for
// secrets like all others.
func (w *world) refused(err error, status int, code string) *auth.Refusal {
	w.t.Helper()
	var r *auth.Refusal
	if !errors.As(err, &r) {
		w.t.Fatalf("%v is no refusal, want %d %s", err, status, code)
	}
	_, _ = w.said.Write([]byte(err.Error() + "\n"))
	if r.Status != status || r.Code != code {
		w.t.Fatalf("refused with %d %s (%s), want %d %s", r.Status, r.Code, r.Message, status, code)
	}
	if r.Message == "" {
		w.t.Errorf("%d %s says nothing", r.Status, r.Code)
	}
	return r
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) issuer() model.IdpIssuer {
	jwks, groups := w.idp.JWKSURL(), "groups"
	return model.IdpIssuer{
		Issuer: w.idp.Issuer(), Audiences: []string{w.idp.Audience()}, JWKSURL: &jwks,
		ClaimMappings: model.ClaimMappings{SubjectClaim: "sub", GroupsClaim: &groups},
	}
}

func (w *world) principal(sub string) string { return token.PrincipalID(w.idp.Issuer(), sub) }

// rule reads "subject action object"; @sub is the principal of that name.
func (w *world) rule(line string) model.Policy {
	f := strings.Fields(line)
	if sub, named := strings.CutPrefix(f[0], "@"); named {
		f[0] = w.principal(sub)
	}
	return model.Policy{Subject: f[0], Action: f[1], Object: f[2]}
}

// boot initialises the tenant with alice as its administrator and further
// rules.
func (w *world) boot(rules ...string) {
	w.t.Helper()
	r := auth.BootstrapRequest{
		DisplayName: "Tenant", IdpIssuers: []model.IdpIssuer{w.issuer()}, InitialAdminPrincipals: []string{w.principal("alice")},
	}
	for _, line := range rules {
		r.Policies = append(r.Policies, w.rule(line))
	}
	_, err := w.Bootstrap(context.Background(), tenant, bootSecret, r)
	w.must(err)
}

func (w *world) upstream(sub string, groups ...string) string {
	signed := w.idp.Token(idp.Claims{"sub": sub, "groups": groups})
	w.said.secret(signed)
	return signed
}

func (w *world) exchange(sub string, r auth.ExchangeRequest) *auth.TokenResponse {
	w.t.Helper()
	answer, err := w.Exchange(context.Background(), tenant, w.upstream(sub), r)
	w.must(err)
	w.said.secret(answer.FelixToken, answer.RefreshToken)
	return answer
}

// caller is sub, with a token for the control plane.
func (w *world) caller(sub string) *auth.Caller {
	w.t.Helper()
	answer := w.exchange(sub, auth.ExchangeRequest{Audience: control})
	c, err := w.Authenticate(context.Background(), "Bearer "+answer.FelixToken, tenant)
	w.must(err)
	return c
}

// claims reads a token of ours with the keys that are published.
func (w *world) claims(signed, audience string) *token.Claims {
	w.t.Helper()
	c, err := token.NewVerifierFor(w.published(), w.clock.Now, 0, audience).VerifyClaims(context.Background(), tenant, signed)
	if err != nil {
		w.t.Fatalf("a token of ours does not verify: %v", err)
	}
	return c
}

func (w *world) published() *token.StaticKeys {
	w.t.Helper()
	keys, err := w.store.SigningKeys(context.Background(), tenant)
	w.must(err)
	var public []token.Key
	for _, key := range keys {
		public = append(public, token.Key{ID: key.KID, Public: ed25519.PublicKey(key.Public)})
	}
	source := token.NewStaticKeys()
	w.must(source.Set(tenant, public))
	return source
}

// mint signs anything with the tenant's current key.
func (w *world) mint(c token.Claims) string {
	w.t.Helper()
	keys, err := w.store.SigningKeys(context.Background(), tenant)
	w.must(err)
	w.said.secret(string(keys[0].Seed))
	c.Tenant = tenant
	if c.Subject == "" {
		c.Subject = "somebody"
	}
	if c.IssuedAt.IsZero() {
		c.IssuedAt = w.clock.Now()
	}
	if c.Expires.IsZero() {
		c.Expires = w.clock.Now().Add(time.Minute)
	}
	signed, err := token.NewSigner(keys[0].KID, ed25519.NewKeyFromSeed(keys[0].Seed)).Mint(c)
	w.must(err)
	w.said.secret(signed)
	return signed
}

func same(a, b []string) bool { return slices.Equal(a, b) }
