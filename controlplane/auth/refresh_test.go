package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
)

func (w *world) refresh(text string) (*auth.TokenResponse, error) {
	w.said.secret(text)
	answer, err := w.Refresh(w.ctx(), tenant, auth.RefreshRequest{RefreshToken: text})
	if err == nil {
		w.said.secret(answer.FelixToken, answer.RefreshToken)
	}
	return answer, err
}

// dead fails unless the token is refused, as all unusable ones are.
func (w *world) dead(text string) {
	w.t.Helper()
	_, err := w.refresh(text)
	if r := w.refused(err, 403, "forbidden"); r.Reason != auth.ReasonRefreshRefused || r.Message != "the refresh token is not usable; exchange again" {
		w.t.Errorf("%+v", r)
	}
}

func TestRefresh(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s")
	for _, audience := range []string{broker, control} {
		answer := w.exchange("bob", auth.ExchangeRequest{Audience: audience})
		for range 3 {
			next, err := w.refresh(answer.RefreshToken)
			w.must(err)
			if next.RefreshToken == answer.RefreshToken || next.ExpiresIn != 900 || next.RefreshExpiresIn != 2592000 || next.TokenType != "Bearer" {
				t.Errorf("%d %d %s", next.ExpiresIn, next.RefreshExpiresIn, next.TokenType)
			}
			c := w.claims(next.FelixToken, audience)
			if c.Subject != w.principal("bob") || !same(c.Permissions, []string{"stream.publish:stream:t1/n/s"}) {
				t.Errorf("%+v", c)
			}
			answer = next
			w.clock.Advance(time.Hour)
		}
	}
	if w.counted("issued refresh") != 6 {
		t.Error("not counted")
	}
}

func TestRefreshRefuses(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s")
	good := w.exchange("bob", auth.ExchangeRequest{}).RefreshToken
	id, secret, _ := strings.Cut(good, ".")
	for _, text := range []string{
		"", ".", "x", "x.y", id, id + ".", "." + secret, good + ".x", good + "0", strings.ToUpper(good), id[:63] + "g." + secret,
		strings.Repeat("ab", 32) + "." + secret, secret + "." + id,
	} {
		w.dead(text)
	}
	_, err := w.Refresh(t.Context(), "t9", auth.RefreshRequest{RefreshToken: good})
	w.refused(err, 403, "forbidden")
	_, err = w.Refresh(t.Context(), "a\x00b", auth.RefreshRequest{RefreshToken: good})
	w.refused(err, 403, "forbidden")
	_, err = w.Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: good, Audience: "felix"})
	w.refused(err, 400, "validation_error")
	if _, err := w.refresh(good); err != nil {
		t.Errorf("none of that has spent it: %v", err)
	}
}

// TestReplay: presenting a used token ends the whole session, also what has
// come of it since.
func TestReplay(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s")
	first := w.exchange("bob", auth.ExchangeRequest{})
	other := w.exchange("bob", auth.ExchangeRequest{})
	next, err := w.refresh(first.RefreshToken)
	w.must(err)
	last, err := w.refresh(next.RefreshToken)
	w.must(err)
	w.dead(first.RefreshToken)
	if w.counted("replayed") != 1 || w.counted("revoked") != 3 {
		t.Errorf("%d replays, %d revoked, want 1 and 3", w.counted("replayed"), w.counted("revoked"))
	}
	w.dead(last.RefreshToken)
	if _, err := w.refresh(other.RefreshToken); err != nil {
		t.Errorf("another session of the same principal: %v", err)
	}
}

// TestWrongSecretSpends: a guess costs the token, so there is no second one.
func TestWrongSecretSpends(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s")
	good := w.exchange("bob", auth.ExchangeRequest{}).RefreshToken
	id, _, _ := strings.Cut(good, ".")
	w.dead(id + "." + strings.Repeat("0", 64))
	if w.counted("bad secret") != 1 || w.counted("replayed") != 0 {
		t.Error("not counted")
	}
	w.dead(good)
	if w.counted("replayed") != 1 {
		t.Error("the spent token was not taken for a replay")
	}
}

func TestRefreshExpires(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s")
	good, late := w.exchange("bob", auth.ExchangeRequest{}), w.exchange("bob", auth.ExchangeRequest{})
	w.clock.Advance(auth.DefaultRefreshTTL - time.Second)
	if _, err := w.refresh(good.RefreshToken); err != nil {
		t.Error(err)
	}
	w.clock.Advance(time.Second)
	w.dead(late.RefreshToken)
}

// TestRemovedGrantEnds at the next refresh, and an added one begins.
func TestRemovedGrantEnds(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s", "@bob stream.subscribe stream:t1/n/s")
	answer := w.exchange("bob", auth.ExchangeRequest{})
	w.must(w.store.RemovePolicy(t.Context(), tenant, w.rule("@bob stream.subscribe stream:t1/n/s")))
	answer, err := w.refresh(answer.RefreshToken)
	w.must(err)
	if got := w.claims(answer.FelixToken, broker).Permissions; !same(got, []string{"stream.publish:stream:t1/n/s"}) {
		t.Errorf("%v", got)
	}
	w.must(w.store.RemovePolicy(t.Context(), tenant, w.rule("@bob stream.publish stream:t1/n/s")))
	w.dead(answer.RefreshToken)
	w.must(w.store.AddPolicy(t.Context(), tenant, w.rule("@bob stream.publish stream:t1/n/s")))
	w.dead(answer.RefreshToken)
	if w.counted("revoked") != 2 {
		t.Errorf("%d revoked, want the family of 2", w.counted("revoked"))
	}
}

func TestRefreshKeepsGroupsWhileTheIssuerIsTrusted(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("role:staff stream.publish stream:t1/n/s")
	w.must(w.store.AddGrouping(t.Context(), tenant, model.Grouping{User: auth.GroupSubject(w.idp.Issuer(), "staff"), Role: "role:staff"}))
	answer, err := w.Exchange(t.Context(), tenant, w.upstream("bob", "staff"), auth.ExchangeRequest{})
	w.must(err)
	answer, err = w.refresh(answer.RefreshToken)
	w.must(err)
	w.must(w.store.DeleteIssuer(t.Context(), tenant, w.idp.Issuer()))
	w.dead(answer.RefreshToken)
}

func TestRefreshAudienceIsFixed(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s")
	answer := w.exchange("bob", auth.ExchangeRequest{})
	_, err := w.Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: answer.RefreshToken, Audience: control})
	w.refused(err, 400, "validation_error")
	answer = w.exchange("bob", auth.ExchangeRequest{Audience: control})
	if _, err := w.Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: answer.RefreshToken, Audience: control}); err != nil {
		t.Error(err)
	}
}

func TestRevoke(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s", "@carol stream.publish stream:t1/n/s")
	a, b, other := w.exchange("bob", auth.ExchangeRequest{}), w.exchange("bob", auth.ExchangeRequest{}), w.exchange("carol", auth.ExchangeRequest{})
	alice, carol := w.caller("alice"), w.caller("carol")
	w.refused(second(w.RevokeRefreshTokens(t.Context(), carol, tenant, w.principal("bob"))), 403, "forbidden")
	w.refused(second(w.RevokeRefreshTokens(t.Context(), alice, "t2", w.principal("bob"))), 403, "forbidden")
	w.refused(second(w.RevokeRefreshTokens(t.Context(), alice, tenant, " ")), 400, "validation_error")
	n, err := w.RevokeRefreshTokens(t.Context(), alice, tenant, w.principal("bob"))
	if err != nil || n != 2 || w.counted("revoked") != 2 {
		t.Errorf("%d, %v", n, err)
	}
	w.dead(a.RefreshToken)
	w.dead(b.RefreshToken)
	if _, err := w.refresh(other.RefreshToken); err != nil {
		t.Error(err)
	}
}
