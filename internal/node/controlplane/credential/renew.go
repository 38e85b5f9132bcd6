package credential

import (
	"context"
	"fmt"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
)

// renew spends the refresh token. Nobody's context ends it: a refresh token
// whose answer nobody takes is lost.
func (s *Source) renew(flight chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	got, err := s.spend(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(flight)
	s.flight = nil
	if err != nil {
		s.stats.Failures++
		s.failure = err
		pause := min(retryBase<<min(s.failed, 10), retryMax)
		s.failed++
		s.retryAt = s.now().Add(pause)
		s.o.Logger.Error("the node credential could not be renewed", "error", err, "remedy", remedy(err))
		return
	}
	s.stats.Refreshes++
	s.failure, s.failed, s.retryAt = nil, 0, time.Time{}
	s.token, s.claims, s.renewed = got.token, got.claims.from(s.now()), true
}

func remedy(err error) string {
	if status := apiclient.StatusOf(err); status == 401 || status == 403 {
		return "exchange a new token with audience felix-controlplane and write its refresh token to the file"
	}
	return "it is tried again"
}

type renewed struct {
	token  string
	claims claims
}

// spend makes the call, and writes the next refresh token before anything else.
func (s *Source) spend(ctx context.Context) (renewed, error) {
	s.mu.Lock()
	s.replaced()
	tenant, refreshToken := s.claims.tenant, s.unsaved
	var err error
	if refreshToken == "" {
		refreshToken, _, err = s.refresh.read()
	}
	s.mu.Unlock()
	if err != nil {
		return renewed{}, err
	}
	got, err := s.o.Refresh(ctx, tenant, refreshToken)
	if err != nil {
		return renewed{}, err
	}
	s.save(got.RefreshToken)
	c, err := parse(got.FelixToken)
	if err != nil {
		return renewed{}, fmt.Errorf("renewed credential: %w", err)
	}
	return renewed{got.FelixToken, c}, nil
}

// save keeps the next refresh token in the file, or in memory where that fails:
// a restart would then need a new one.
func (s *Source) save(refreshToken string) {
	if refreshToken == "" {
		return // the one that was used goes on
	}
	err := replace(s.o.RefreshFile, refreshToken)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.unsaved = refreshToken
		s.o.Logger.Error("the next refresh token could not be written and is kept in memory: a restart will need a new one", "error", err)
		return
	}
	s.unsaved = ""
	s.refresh.wrote(refreshToken)
}
