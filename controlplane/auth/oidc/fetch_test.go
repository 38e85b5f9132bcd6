package oidc_test

import (
	"context"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth/oidc"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
)

// eventually waits for what another goroutine brings about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("never: " + what)
		}
	}
}

// TestRandomKeyIDs is BR-49: tokens with invented kids cost one fetch a
// cool-down, however many come, and good tokens go on.
func TestRandomKeyIDs(t *testing.T) {
	c := newClock()
	p := idp.Start(t, idp.Options{Now: c.Now, Lifetime: time.Hour})
	v := newVerifier(t, c, nil)
	issuers := []model.IdpIssuer{issuerOf(p)}
	good := p.Token(idp.Claims{"sub": "alice"})
	random := rand.New(rand.NewPCG(1, 2))
	const clients, each = 20, 25
	for round := 1; round <= 4; round++ {
		tokens := make([]string, clients*each)
		for i := range tokens {
			kid := make([]byte, 8)
			for j := range kid {
				kid[j] = byte(random.IntN(256))
			}
			tokens[i] = p.TokenWithKeyID(hex.EncodeToString(kid), idp.Claims{"sub": "mallory"})
		}
		var clientsDone sync.WaitGroup
		for i := range clients {
			clientsDone.Go(func() {
				for _, token := range tokens[i*each : (i+1)*each] {
					if _, err := v.Verify(t.Context(), token, issuers); kindOf(t, err) != oidc.Invalid {
						t.Errorf("a token with an invented kid: %v", err)
					}
					if _, err := v.Verify(t.Context(), good, issuers); err != nil {
						t.Errorf("a good token: %v", err)
					}
				}
			})
		}
		clientsDone.Wait()
		if got := p.KeyRequests(); got != round {
			t.Fatalf("%d fetches after %d cool-downs", got, round)
		}
		c.Advance(oidc.CoolDown)
	}
}

// TestRotation: a new key is found within a cool-down, and old tokens are good
// meanwhile.
func TestRotation(t *testing.T) {
	c := newClock()
	p := idp.Start(t, idp.Options{Now: c.Now, Lifetime: time.Hour})
	v := newVerifier(t, c, nil)
	issuers := []model.IdpIssuer{issuerOf(p)}
	old := p.Token(idp.Claims{"sub": "alice"})
	if _, err := v.Verify(t.Context(), old, issuers); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Rotate(); err != nil {
		t.Fatal(err)
	}
	fresh := p.Token(idp.Claims{"sub": "alice"})
	if _, err := v.Verify(t.Context(), fresh, issuers); kindOf(t, err) != oidc.Invalid {
		t.Fatalf("within the cool-down: %v", err)
	}
	c.Advance(oidc.CoolDown)
	for _, token := range []string{old, fresh, old} {
		if _, err := v.Verify(t.Context(), token, issuers); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.KeyRequests(); got != 2 {
		t.Fatalf("%d fetches, want 2", got)
	}
	p.Withdraw()
	c.Advance(oidc.CacheTTL)
	stillGood := p.Token(idp.Claims{"sub": "alice"})
	if _, err := v.Verify(t.Context(), stillGood, issuers); err != nil {
		t.Fatal(err)
	}
	withdrawn := old
	if _, err := v.Verify(t.Context(), withdrawn, issuers); kindOf(t, err) != oidc.Invalid {
		t.Fatalf("a key that was withdrawn an hour ago: %v", err)
	}
}

func TestFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault     idp.Fault
		discovery bool
		want      oidc.Kind
	}{
		"500":                  {idp.Failing, false, oidc.Keys},
		"500 at discovery":     {idp.Failing, true, oidc.Keys},
		"HTML":                 {idp.HTML, false, oidc.Keys},
		"HTML at discovery":    {idp.HTML, true, oidc.Keys},
		"50 MB":                {idp.Huge, false, oidc.Keys},
		"redirect":             {idp.Redirecting, false, oidc.Keys},
		"redirect, discovered": {idp.Redirecting, true, oidc.Keys},
		"other issuer":         {idp.OtherIssuer, true, oidc.Keys},
		"no keys":              {idp.NoKeys, false, oidc.Keys},
		"no alg":               {idp.NoAlgorithm, false, 0},
		"one kid, two keys":    {idp.SharedKeyID, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			p := idp.Start(t, idp.Options{Now: c.Now, Lifetime: 24 * time.Hour})
			v := newVerifier(t, c, nil)
			issuer := issuerOf(p)
			if test.discovery {
				issuer.JWKSURL = nil
			}
			issuers := []model.IdpIssuer{issuer}
			token := p.Token(idp.Claims{"sub": "alice"})
			p.Break(test.fault)
			for range 10 {
				_, err := v.Verify(t.Context(), token, issuers)
				if kindOf(t, err) != test.want {
					t.Fatalf("%v, want kind %d", err, test.want)
				}
				if test.fault == idp.Huge && !strings.Contains(err.Error(), "more than") {
					t.Fatalf("%v", err)
				}
			}
			if got := p.KeyRequests() + p.DiscoveryRequests(); got != 1 {
				t.Errorf("%d fetches, want 1", got)
			}
			if moved := p.Requests("/moved/jwks.json") + p.Requests("/moved/.well-known/openid-configuration"); moved != 0 {
				t.Error("the redirect was followed")
			}
			p.Repair()
			c.Advance(2 * oidc.CacheTTL)
			if _, err := v.Verify(t.Context(), token, issuers); err != nil {
				t.Errorf("after the repair: %v", err)
			}
			// A provider that fails later does not stop anybody at once.
			p.Break(idp.Failing)
			c.Advance(oidc.CacheTTL + time.Minute)
			if _, err := v.Verify(t.Context(), token, issuers); err != nil {
				t.Errorf("with keys that could not be renewed: %v", err)
			}
			c.Advance(oidc.CacheTTL)
			if _, err := v.Verify(t.Context(), token, issuers); kindOf(t, err) != oidc.Keys {
				t.Errorf("with keys of two hours ago: %v", err)
			}
		})
	}
}

// TestSlowProvider: all who wait share one fetch, which outlives the one who
// began it.
func TestSlowProvider(t *testing.T) {
	c := newClock()
	p := idp.Start(t, idp.Options{Now: c.Now})
	v := newVerifier(t, c, func(o *oidc.Options) { o.Timeout = time.Minute })
	issuers := []model.IdpIssuer{issuerOf(p)}
	token := p.Token(idp.Claims{"sub": "alice"})
	p.Break(idp.Slow)
	ctx, giveUp := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() {
		_, err := v.Verify(ctx, token, issuers)
		first <- err
	}()
	eventually(t, "the fetch begins", func() bool { return p.KeyRequests() == 1 })
	const others = 10
	results := make(chan error, others)
	for range others {
		go func() {
			_, err := v.Verify(t.Context(), token, issuers)
			results <- err
		}()
	}
	giveUp()
	if err := <-first; kindOf(t, err) != oidc.Keys {
		t.Errorf("the one who gave up: %v", err)
	}
	p.Repair()
	for range others {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := p.KeyRequests(); got != 1 {
		t.Errorf("%d fetches, want 1", got)
	}
}

func TestTimeout(t *testing.T) {
	c := newClock()
	p := idp.Start(t, idp.Options{Now: c.Now})
	v := newVerifier(t, c, func(o *oidc.Options) { o.Timeout = 50 * time.Millisecond })
	p.Break(idp.Slow)
	_, err := v.Verify(t.Context(), p.Token(idp.Claims{"sub": "alice"}), []model.IdpIssuer{issuerOf(p)})
	if kindOf(t, err) != oidc.Keys || !strings.Contains(err.Error(), "in time") {
		t.Errorf("%v", err)
	}
}
