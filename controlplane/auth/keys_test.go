package auth_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	token "github.com/felixlog/felix/internal/auth"
)

func TestJWKS(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	staged, err := w.StageKey(t.Context(), tenant)
	w.must(err)
	set, err := w.JWKS(t.Context(), tenant)
	w.must(err)
	if len(set.Keys) != 2 || set.Keys[0].KeyID != staged.Current || len(staged.Current) != 32 {
		t.Fatalf("%+v, current %s", set, staged.Current)
	}
	body, err := json.Marshal(set)
	w.must(err)
	keys, err := w.store.SigningKeys(t.Context(), tenant)
	w.must(err)
	want := fmt.Sprintf(`{"kty":"OKP","kid":%q,"alg":"EdDSA","use":"sig","crv":"Ed25519","x":%q}`,
		keys[0].KID, base64.RawURLEncoding.EncodeToString(keys[0].Public))
	if !strings.HasPrefix(string(body), `{"keys":[`+want) {
		t.Errorf("%s", body)
	}
	// It is what brokers read.
	if parsed, err := token.ParsePublicKeys(body); err != nil || len(parsed) != 2 {
		t.Errorf("%v", err)
	}
	for _, unknown := range []string{"t9", "", "a\x00b", strings.Repeat("x", 300)} {
		w.refused(second(w.JWKS(t.Context(), unknown)), 404, "not_found")
	}
}

// TestKeylessTenantHeals: a tenant whose creation was cut short gets its key
// when it is first needed, and only one.
func TestKeylessTenantHeals(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.store.CreateTenant(t.Context(), model.Tenant{TenantID: "young"}))
	instances := []*auth.Service{w.Service, w.another(), w.another()}
	kids := make([]string, len(instances))
	var all sync.WaitGroup
	for i, s := range instances {
		all.Go(func() {
			set, err := s.JWKS(t.Context(), "young")
			if err != nil || len(set.Keys) != 1 {
				t.Errorf("%+v, %v", set, err)
				return
			}
			kids[i] = set.Keys[0].KeyID
		})
	}
	all.Wait()
	if kids[0] != kids[1] || kids[1] != kids[2] {
		t.Errorf("%v", kids)
	}
	w.must(w.EnsureKey(t.Context(), "young"))
	if view, err := w.KeyView(t.Context(), "young"); err != nil || view.Current != kids[0] || len(view.Verifying) != 1 {
		t.Errorf("%+v, %v", view, err)
	}
}

// TestKeyRotation is stage, activate and retire of control plane 15.7, with
// another instance looking on.
func TestKeyRotation(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	other := w.another()
	accepted := func(signed string) error {
		_, err := other.Authenticate(t.Context(), "Bearer "+signed, tenant)
		return err
	}
	kid := func(signed string) string {
		head, _, _ := strings.Cut(signed, ".")
		text, _ := base64.RawURLEncoding.DecodeString(head)
		var h struct{ Kid string }
		w.must(json.Unmarshal(text, &h))
		return h.Kid
	}
	old := w.exchange("alice", auth.ExchangeRequest{Audience: control}).FelixToken
	w.must(accepted(old))
	view, err := w.StageKey(t.Context(), tenant)
	w.must(err)
	if len(view.Verifying) != 2 || view.Verifying[0] != view.Current || view.Current != kid(old) {
		t.Fatalf("%+v", view)
	}
	next := view.Verifying[1]
	if got := kid(w.exchange("alice", auth.ExchangeRequest{}).FelixToken); got != view.Current {
		t.Error("a staged key signs")
	}
	w.clock.Advance(time.Second)
	view, err = w.ActivateKey(t.Context(), tenant, next)
	w.must(err)
	if view.Current != next || len(view.Verifying) != 2 {
		t.Fatalf("%+v", view)
	}
	fresh := w.exchange("alice", auth.ExchangeRequest{Audience: control}).FelixToken
	if kid(fresh) != next {
		t.Error("the activated key does not sign")
	}
	w.must(accepted(fresh)) // a kid that it does not know makes it look again
	w.must(accepted(old))
	var conflict *store.ConflictError
	if _, err := w.RetireKey(t.Context(), tenant, next); !errors.As(err, &conflict) || conflict.Reason != store.CurrentKey {
		t.Errorf("the current key was retired: %v", err)
	}
	var missing *store.NotFoundError
	for _, err := range []error{
		second(w.RetireKey(t.Context(), tenant, "x")), second(w.ActivateKey(t.Context(), tenant, "x")), second(w.StageKey(t.Context(), "t9")),
	} {
		if !errors.As(err, &missing) {
			t.Errorf("%v", err)
		}
	}
	view, err = w.RetireKey(t.Context(), tenant, kid(old))
	w.must(err)
	if view.Current != next || !same(view.Verifying, []string{next}) {
		t.Errorf("%+v", view)
	}
	w.refused(second(w.Authenticate(t.Context(), "Bearer "+old, tenant)), 401, "unauthorized")
	w.clock.Advance(5 * time.Second) // the other instance may believe for so long
	w.refused(accepted(old), 401, "unauthorized")
	w.must(accepted(fresh))
	for range 31 {
		_, err = w.StageKey(t.Context(), tenant)
		w.must(err)
	}
	if _, err = w.StageKey(t.Context(), tenant); !errors.As(err, &conflict) || conflict.Reason != store.TooManyKeys {
		t.Errorf("%v", err)
	}
}

// TestDamagedKey: a key whose halves do not fit neither signs nor verifies, and
// does not take the others with it.
func TestDamagedKey(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.store.CreateTenant(t.Context(), model.Tenant{TenantID: tenant}))
	public, _, _ := ed25519.GenerateKey(nil)
	_, err := w.store.EnsureSigningKey(t.Context(), tenant, model.SigningKey{
		KID: "bad", Seed: make([]byte, ed25519.SeedSize), Public: public, Status: model.KeyCurrent})
	w.must(err)
	w.must(w.store.PutIssuer(t.Context(), tenant, w.issuer()))
	w.must(w.store.AddPolicy(t.Context(), tenant, w.rule("@bob stream.publish stream:t1/n/s")))
	view, err := w.StageKey(t.Context(), tenant)
	w.must(err)
	if set, err := w.JWKS(t.Context(), tenant); err != nil || len(set.Keys) != 1 || set.Keys[0].KeyID == "bad" {
		t.Errorf("%+v, %v", set, err)
	}
	_, err = w.Exchange(t.Context(), tenant, w.upstream("bob"), auth.ExchangeRequest{})
	var refused *auth.Refusal
	if err == nil || errors.As(err, &refused) {
		t.Errorf("%v", err)
	}
	if !strings.Contains(w.said.text.String(), "kid=bad") {
		t.Error("the log does not name the damaged key")
	}
	_, err = w.ActivateKey(t.Context(), tenant, view.Verifying[1])
	w.must(err)
	w.exchange("bob", auth.ExchangeRequest{})
}

// TestForget: a tenant that was deleted and made anew has other keys.
func TestForget(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	old := w.mint(token.Claims{Audience: control})
	if _, err := w.Authenticate(t.Context(), "Bearer "+old, tenant); err != nil {
		t.Fatal(err)
	}
	w.must(w.store.DeleteTenant(t.Context(), tenant))
	w.Forget(tenant)
	w.refused(second(w.Authenticate(t.Context(), "Bearer "+old, tenant)), 401, "unauthorized")
	w.refused(second(w.JWKS(t.Context(), tenant)), 404, "not_found")
	w.boot()
	w.refused(second(w.Authenticate(t.Context(), "Bearer "+old, tenant)), 401, "unauthorized")
}
