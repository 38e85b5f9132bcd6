package auth_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// onBackends runs a race between three instances, over one store in memory and
// over a database that each reaches by itself.
func onBackends(t *testing.T, race func(t *testing.T, w *world, instances []*auth.Service)) {
	t.Run("memory", func(t *testing.T) {
		w := newWorld(t, nil)
		race(t, w, []*auth.Service{w.Service, w.another(), w.another()})
	})
	t.Run("postgres", func(t *testing.T) {
		url := pgtest.Start(t)
		open := func() *postgres.Store {
			st, err := postgres.Open(context.Background(), postgres.Options{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			return st
		}
		w := newWorldOver(t, open(), nil)
		race(t, w, []*auth.Service{w.Service, w.instanceOver(open()), w.instanceOver(open())})
	})
}

// TestTakeRace: of many who present one token at once, through several
// instances, one at most is answered; and since the others were replays, nothing
// of the session is left, not even what the one was given.
func TestTakeRace(t *testing.T) { onBackends(t, takeRace) }

func takeRace(t *testing.T, w *world, instances []*auth.Service) {
	w.boot("@bob stream.publish stream:t1/n/s")
	for range 20 {
		text := w.exchange("bob", auth.ExchangeRequest{}).RefreshToken
		const callers = 12
		answers := make(chan *auth.TokenResponse, callers)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				answer, err := instances[i%len(instances)].Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: text})
				if err == nil {
					answers <- answer
				} else if _, refused := err.(*auth.Refusal); !refused {
					t.Error(err)
				}
			})
		}
		all.Wait()
		close(answers)
		if len(answers) > 1 {
			t.Fatalf("%d were answered", len(answers))
		}
		for answer := range answers {
			w.dead(answer.RefreshToken)
		}
		w.dead(text)
	}
}

// TestRevokeRace: whoever revokes a principal ends all its sessions, whatever
// is being refreshed meanwhile.
func TestRevokeRace(t *testing.T) { onBackends(t, revokeRace) }

func revokeRace(t *testing.T, w *world, instances []*auth.Service) {
	w.boot("@bob stream.publish stream:t1/n/s")
	alice := w.caller("alice")
	for range 20 {
		const sessions = 6
		last := make([]string, sessions)
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range sessions {
			text := w.exchange("bob", auth.ExchangeRequest{}).RefreshToken
			all.Go(func() {
				<-begin
				for range 3 {
					last[i] = text
					answer, err := instances[i%len(instances)].Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: text})
					if err != nil {
						return
					}
					text = answer.RefreshToken
				}
				last[i] = text
			})
		}
		all.Go(func() {
			<-begin
			if _, err := w.RevokeRefreshTokens(t.Context(), alice, tenant, w.principal("bob")); err != nil {
				t.Error(err)
			}
		})
		close(begin)
		all.Wait()
		for _, text := range last {
			w.dead(text)
		}
	}
}

// TestBootstrapRace is acceptance test 25.7: eight at once through three
// instances, one winner, whose rules are the only ones.
func TestBootstrapRace(t *testing.T) { onBackends(t, bootstrapRace) }

func bootstrapRace(t *testing.T, w *world, instances []*auth.Service) {
	var won, lost atomic.Int64
	var winner atomic.Value
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := w.bootRequest()
			r.InitialAdminPrincipals = []string{strings.Repeat("p", i+1)}
			_, err := instances[i%3].Bootstrap(t.Context(), tenant, bootSecret, r)
			var refused *auth.Refusal
			switch {
			case err == nil:
				won.Add(1)
				winner.Store(r.InitialAdminPrincipals[0])
			case errors.As(err, &refused) && refused.Code == "already_initialized":
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 || lost.Load() != 7 {
		t.Fatalf("%d won, %d lost", won.Load(), lost.Load())
	}
	groupings, err := w.store.Groupings(t.Context(), tenant)
	if err != nil || len(groupings) != 1 || groupings[0].User != winner.Load() {
		t.Errorf("%v, %v, the winner is %v", groupings, err, winner.Load())
	}
	if view, err := w.KeyView(t.Context(), tenant); err != nil || len(view.Verifying) != 1 {
		t.Errorf("%+v, %v", view, err)
	}
}
