package auth_test

import (
	"testing"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	token "github.com/felixlog/felix/internal/auth"
)

// TestDecisionsOfAnInstanceBehind: what was made or changed at one instance a
// moment ago counts at once at another that has not heard of it, or that one
// says that it cannot tell; it never refuses nor gives what is out of date.
func TestDecisionsOfAnInstanceBehind(t *testing.T) {
	// Each makes something at the world's instance and answers with what to ask
	// the one behind.
	for name, prepare := range map[string]func(w *world, behind *auth.Service) (ask func() error){
		"token of a new tenant": func(w *world, behind *auth.Service) func() error {
			w.boot()
			signed := w.mint(token.Claims{Audience: control})
			return func() error { return second(behind.Authenticate(w.ctx(), "Bearer "+signed, tenant)) }
		},
		"token of a new key": func(w *world, behind *auth.Service) func() error {
			w.boot()
			old := w.mint(token.Claims{Audience: control})
			w.must(second(behind.Authenticate(w.ctx(), "Bearer "+old, tenant)))
			w.activate()
			signed := w.mint(token.Claims{Audience: control})
			return func() error { return second(behind.Authenticate(w.ctx(), "Bearer "+signed, tenant)) }
		},
		"key set of a new tenant": func(w *world, behind *auth.Service) func() error {
			w.boot()
			return func() error { return second(behind.JWKS(w.ctx(), tenant)) }
		},
		"exchange at a new tenant": func(w *world, behind *auth.Service) func() error {
			w.boot()
			return func() error { return second(w.exchangeAt(behind, auth.ExchangeRequest{})) }
		},
		"exchange with a new issuer": func(w *world, behind *auth.Service) func() error {
			w.boot()
			w.must(w.store.DeleteIssuer(w.ctx(), tenant, w.idp.Issuer()))
			w.must(second(behind.JWKS(w.ctx(), tenant)))
			w.must(w.store.PutIssuer(w.ctx(), tenant, w.issuer()))
			return func() error { return second(w.exchangeAt(behind, auth.ExchangeRequest{})) }
		},
		"exchange with a new rule": func(w *world, behind *auth.Service) func() error {
			w.boot()
			w.must(w.store.RemoveGrouping(w.ctx(), tenant, model.Grouping{User: w.principal("alice"), Role: auth.AdminRole}))
			w.must(second(behind.JWKS(w.ctx(), tenant)))
			w.must(w.store.AddGrouping(w.ctx(), tenant, model.Grouping{User: w.principal("alice"), Role: auth.AdminRole}))
			return func() error { return second(w.exchangeAt(behind, auth.ExchangeRequest{})) }
		},
		"exchange for a gateway": func(w *world, behind *auth.Service) func() error {
			w.boot("@gw token.delegate tenant:t1")
			w.must(second(behind.JWKS(w.ctx(), tenant)))
			w.activate()
			actor := w.exchange("gw", auth.ExchangeRequest{Audience: control}).FelixToken
			return func() error { return second(w.exchangeAt(behind, auth.ExchangeRequest{ActorToken: actor})) }
		},
		"refresh at a new tenant": func(w *world, behind *auth.Service) func() error {
			w.boot()
			text := w.exchange("alice", auth.ExchangeRequest{}).RefreshToken
			return func() error {
				answer, err := behind.Refresh(w.ctx(), tenant, auth.RefreshRequest{RefreshToken: text})
				if err == nil {
					w.said.secret(answer.FelixToken, answer.RefreshToken)
				}
				return err
			}
		},
		"delegation for a new key": func(w *world, behind *auth.Service) func() error {
			w.boot("@gw token.delegate tenant:t1", "@bob stream.publish stream:t1/n/s")
			gw := w.caller("gw")
			w.must(second(behind.JWKS(w.ctx(), tenant)))
			w.activate()
			subject := w.mint(token.Claims{Audience: broker, Subject: "bob", MayAct: gw.Subject, Permissions: []string{"stream.publish:stream:t1/n/s"}})
			return func() error {
				answer, err := behind.Delegate(w.ctx(), gw, auth.DelegateRequest{
					GrantType: "urn:ietf:params:oauth:grant-type:token-exchange", SubjectToken: subject,
				})
				if err == nil {
					w.said.secret(answer.AccessToken)
				}
				return err
			}
		},
		"development token of a new tenant": func(w *world, behind *auth.Service) func() error {
			w.boot()
			return func() error {
				answer, err := behind.DevToken(w.ctx(), tenant, bootSecret, auth.DevTokenRequest{Permissions: []string{"cache.read:cache:t1/n/c"}})
				if err == nil {
					w.said.secret(answer.FelixToken)
				}
				return err
			}
		},
		"role with its first rule": func(w *world, behind *auth.Service) func() error {
			w.boot()
			alice := w.caller("alice")
			w.must(second(behind.JWKS(w.ctx(), tenant)))
			w.must(w.AddPolicy(w.ctx(), alice, tenant, w.rule("role:new stream.publish stream:t1/n/s")))
			return func() error {
				return behind.AddGrouping(w.ctx(), alice, tenant, model.Grouping{User: "u", Role: "role:new"})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			r := newReplica(w)
			ask := prepare(w, w.instanceOver(r))
			r.cut.Store(true)
			for range 2 { // and nothing is spent by asking
				w.refused(ask(), 503, "cannot_verify")
			}
			r.cut.Store(false)
			w.must(ask())
		})
	}
}

// activate gives the tenant another key that signs.
func (w *world) activate() {
	w.t.Helper()
	view, err := w.StageKey(w.ctx(), tenant)
	w.must(err)
	_, err = w.ActivateKey(w.ctx(), tenant, view.Verifying[1])
	w.must(err)
}

// exchangeAt is alice at an instance.
func (w *world) exchangeAt(s *auth.Service, r auth.ExchangeRequest) (*auth.TokenResponse, error) {
	answer, err := s.Exchange(w.ctx(), tenant, w.upstream("alice"), r)
	if err == nil {
		w.said.secret(answer.FelixToken, answer.RefreshToken)
	}
	return answer, err
}

// TestRightsTakenAwayElsewhere: an instance that has not heard of it does not
// give them either.
func TestRightsTakenAwayElsewhere(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s")
	r := newReplica(w)
	behind := w.instanceOver(r)
	session := w.exchange("bob", auth.ExchangeRequest{}).RefreshToken
	alice := w.caller("alice")
	w.must(r.CatchUp(t.Context()))

	w.must(w.RemovePolicy(t.Context(), alice, tenant, w.rule("@bob stream.publish stream:t1/n/s")))
	_, err := behind.Exchange(t.Context(), tenant, w.upstream("bob"), auth.ExchangeRequest{})
	w.refused(err, 403, "forbidden")
	_, err = behind.Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: session})
	w.refused(err, 403, "forbidden")

	// A role that was given more elsewhere is beyond who may give it what it was.
	w.must(w.AddPolicy(t.Context(), alice, tenant, w.rule("role:r stream.publish stream:t1/n/s")))
	w.must(w.store.AddPolicy(t.Context(), tenant, w.rule("@dora rbac.assignment.manage namespace:t1/n")))
	dora := w.caller("dora")
	w.must(r.CatchUp(t.Context()))
	w.must(w.AddPolicy(t.Context(), alice, tenant, w.rule("role:r tenant.manage tenant:t1")))
	err = behind.AddGrouping(t.Context(), dora, tenant, model.Grouping{User: w.principal("dora"), Role: "role:r"})
	w.refused(err, 403, "forbidden")

	// An issuer that was trusted elsewhere is there, and is changed by operators
	// alone.
	other := w.issuer()
	other.Issuer = "https://other.example"
	w.must(w.PutIssuer(t.Context(), alice, tenant, other))
	elsewhere := "https://evil.example/keys"
	other.JWKSURL = &elsewhere
	w.refused(behind.PutIssuer(t.Context(), alice, tenant, other), 403, "forbidden")
}

// TestTokensAreSignedByTheKeyThatSigns: nobody is given a token of a key that was
// retired at another instance a moment ago.
func TestTokensAreSignedByTheKeyThatSigns(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	behind := w.instanceOver(newReplica(w))
	_, err := w.exchangeAt(behind, auth.ExchangeRequest{Audience: control})
	w.must(err)
	before, err := w.KeyView(t.Context(), tenant)
	w.must(err)
	w.activate()
	w.must(second(w.RetireKey(t.Context(), tenant, before.Current)))
	answer, err := w.exchangeAt(behind, auth.ExchangeRequest{Audience: control})
	w.must(err)
	w.must(second(w.Authenticate(t.Context(), "Bearer "+answer.FelixToken, tenant)))
}

// TestKnownKeysNeedNobody: an instance that is cut off goes on verifying and
// publishing what it knows.
func TestKnownKeysNeedNobody(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	r := newReplica(w)
	behind := w.instanceOver(r)
	w.must(r.CatchUp(t.Context()))
	r.cut.Store(true)
	before := r.catches.Load()
	signed := w.mint(token.Claims{Audience: control})
	for range 10 {
		w.must(second(behind.Authenticate(t.Context(), "Bearer "+signed, tenant)))
	}
	if n := r.catches.Load() - before; n != 0 {
		t.Errorf("tokens of a known key had the store catch up %d times", n)
	}
	set, err := behind.JWKS(t.Context(), tenant)
	if err != nil || len(set.Keys) != 1 {
		t.Errorf("%+v, %v", set, err)
	}
	// A key that came with the log, without a question, is found all the same.
	w.activate()
	signed = w.mint(token.Claims{Audience: control})
	d, err := w.store.Export(t.Context())
	w.must(err)
	w.must(r.copy.Import(t.Context(), d, true))
	w.must(second(behind.Authenticate(t.Context(), "Bearer "+signed, tenant)))
}

// TestKeySetIsComplete: brokers refuse what is not in it, so that a key which was
// made elsewhere a moment ago is.
func TestKeySetIsComplete(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	behind := w.instanceOver(newReplica(w))
	for n := 1; n < 5; n++ {
		if set, err := behind.JWKS(t.Context(), tenant); err != nil || len(set.Keys) != n {
			t.Fatalf("%d keys, %v, want %d", len(set.Keys), err, n)
		}
		w.must(second(w.StageKey(t.Context(), tenant)))
	}
}
