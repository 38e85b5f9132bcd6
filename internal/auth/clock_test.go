package auth

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/felixtest/stepped"
)

// clockSteps are how a test sets the clock of a broker.
var clockSteps = map[string]func(*stepped.Clock){
	"an hour forth":   func(c *stepped.Clock) { c.Step(time.Hour) },
	"an hour back":    func(c *stepped.Clock) { c.Step(-time.Hour) },
	"ten years forth": func(c *stepped.Clock) { c.Step(87_600 * time.Hour) },
	"to 1970":         func(c *stepped.Clock) { c.Set(time.Unix(0, 0)) },
}

// Keys are fetched when they are old, and again when a fetch failed, by what has
// passed and not by what the clock is set to.
func TestKeysOnASteppedClock(t *testing.T) {
	for name, set := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock, k := new(stepped.Clock), newKeyServer()
				s := source(t, k, func(o *JWKSOptions) { o.Now = clock.Now })
				signer := NewSigner("", newKey(t))
				k.sets["acme"] = []Key{signer.Key()}
				ask := func(kid string) error {
					_, err := s.KeysFor(t.Context(), "acme", kid)
					synctest.Wait()
					return err
				}
				fetched := func(when string, want int) {
					t.Helper()
					if got := k.called("acme"); got != want {
						t.Fatalf("%s: %d fetches, want %d", when, got, want)
					}
				}

				k.err = errors.New("away")
				if ask(signer.Key().ID) == nil {
					t.Fatal("keys of a server that is away")
				}
				k.set(func() { k.err = nil })
				set(clock)
				_ = ask(signer.Key().ID)
				fetched("at once after a failure", 1)
				time.Sleep(DefaultKeysRetry)
				if err := ask(signer.Key().ID); err != nil {
					t.Fatal(err)
				}
				fetched("after the pause", 2)

				_ = ask("unknown")
				fetched("a key that is not known", 3)
				set(clock)
				_ = ask("unknown")
				fetched("another at once", 3)
				time.Sleep(DefaultKeysCooldown)
				_ = ask("unknown")
				fetched("another after the cool-down", 4)

				clock.Set(time.Now())
				_ = ask(signer.Key().ID)
				fetched("put right", 4)
				time.Sleep(DefaultKeysAge)
				_ = ask(signer.Key().ID)
				fetched("when they are old", 5)
			})
		})
	}
}

// Tokens end by the clock as it is.
func TestTokensOnASteppedClock(t *testing.T) {
	clock, keys := new(stepped.Clock), NewStaticKeys()
	signer := NewSigner("", newKey(t))
	if err := keys.Set("acme", []Key{signer.Key()}); err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(keys, clock.Now)
	issued := time.Now()
	token, err := signer.Mint(Claims{Tenant: "acme", Subject: "x", IssuedAt: issued, Expires: issued.Add(30 * time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	for off, want := range map[time.Duration]Reason{
		0: "", 29 * time.Minute: "", time.Hour: ReasonExpired, 87_600 * time.Hour: ReasonExpired, -time.Hour: "", -400_000 * time.Hour: "",
	} {
		clock.Set(time.Now().Add(off))
		_, err := v.Verify(t.Context(), "acme", token)
		var refused *TokenError
		if errors.As(err, &refused); err == nil && want != "" || err != nil && (refused == nil || refused.Reason != want) {
			t.Errorf("off by %v: %v, want %q", off, err, want)
		}
	}
}
