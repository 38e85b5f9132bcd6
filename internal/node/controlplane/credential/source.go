package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/felixlog/felix/broker/steady"
	"github.com/felixlog/felix/controlplane/apiclient"
)

// Options are what a source is made with.
type Options struct {
	// Token is the credential itself, TokenFile a file that holds it: one of
	// them. RefreshFile holds a refresh token of the same tenant and audience,
	// and gets the next one each time it is used.
	Token, TokenFile, RefreshFile string
	// Refresh spends a refresh token for new tokens.
	Refresh func(ctx context.Context, tenant, refreshToken string) (apiclient.TokenResponse, error)
	Now     func() time.Time // the machine's where it is nil
	Logger  *slog.Logger
}

// The times of a refresh.
const (
	// refreshTimeout bounds one. It is long, because an answer that is lost
	// takes the session with it.
	refreshTimeout = 30 * time.Second
	retryBase      = time.Second
	retryMax       = time.Minute
	// usable is how much of its life a token must have left to be shown.
	usable = 5 * time.Second
)

// A Source gives a credential that is valid. It is safe for concurrent use.
type Source struct {
	o Options
	// now takes no part in steps of the machine's clock.
	now func() time.Time

	mu      sync.Mutex
	file    *file
	refresh *file
	token   string
	claims  claims
	renewed bool          // by a refresh: the times in claims are those of now
	flight  chan struct{} // of the refresh under way
	failure error         // of the last refresh
	failed  int           // refreshes in a row
	retryAt time.Time
	unsaved string // a refresh token that could not be written
	stats   Stats
}

// Stats count refreshes.
type Stats struct {
	Refreshes, Failures uint64
}

// New reads the credential. Without one, or with one that ends and cannot be
// renewed, it fails: the broker would lose the control plane later.
func New(o Options) (*Source, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Source{o: o, now: steady.Of(o.Now)}
	switch {
	case o.Token != "" && o.TokenFile != "":
		return nil, errors.New("both a node token and a node token file are given: give one")
	case o.Token == "" && o.TokenFile == "":
		return nil, errors.New("there is no node credential: set FELIX_NODE_TOKEN_FILE or FELIX_NODE_TOKEN to a token with audience felix-controlplane")
	}
	if o.RefreshFile != "" {
		s.refresh = &file{path: o.RefreshFile}
		if _, _, err := s.refresh.read(); err != nil {
			return nil, fmt.Errorf("refresh token: %w", err)
		}
	}
	if o.TokenFile != "" {
		s.file = &file{path: o.TokenFile}
		return s, s.reread()
	}
	c, err := parse(o.Token)
	if err != nil {
		return nil, err
	}
	if s.refresh == nil && c.ends(o.Now()) {
		return nil, fmt.Errorf("the node token ends at %s and cannot be renewed: set FELIX_NODE_REFRESH_TOKEN_FILE, or FELIX_NODE_TOKEN_FILE to a file that is kept up to date",
			c.expires.UTC().Format(time.RFC3339))
	}
	s.token, s.claims = o.Token, c
	return s, nil
}

// reread takes the token file if it is another than before. mu is held, or the
// source is not shared yet.
func (s *Source) reread() error {
	if s.file == nil {
		return nil
	}
	text, changed, err := s.file.read()
	if err != nil {
		return err
	}
	if !changed {
		return nil
	}
	c, err := parse(text)
	if err != nil {
		return err
	}
	s.token, s.claims, s.renewed = text, c, false
	s.failed, s.retryAt = 0, time.Time{}
	return nil
}

// Token is the credential to show now. It waits for a refresh only where there
// is none that is valid.
func (s *Source) Token(ctx context.Context) (string, error) {
	s.mu.Lock()
	err := s.reread()
	if err != nil && s.token == "" {
		s.mu.Unlock()
		return "", err
	}
	now := s.judge()
	if s.refresh == nil || !s.claims.ends(now) {
		defer s.mu.Unlock()
		if s.refresh == nil && s.claims.ends(now) && !s.claims.expires.After(now) {
			return "", fmt.Errorf("the node token has ended at %s: write a new one to %s", s.claims.expires.UTC().Format(time.RFC3339), s.o.TokenFile)
		}
		return s.token, nil
	}
	if now.Before(s.renewal()) {
		defer s.mu.Unlock()
		return s.token, nil
	}
	valid := s.claims.expires.Sub(now) > usable
	flight := s.begin()
	if valid || flight == nil {
		defer s.mu.Unlock()
		if valid {
			return s.token, nil
		}
		return s.unrenewed()
	}
	s.mu.Unlock()
	select {
	case <-flight:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return s.unrenewed()
	}
	return s.token, nil
}

// unrenewed is the answer where the token has ended and could not be renewed. One
// that has ended only because the clock was set is shown all the same. mu is held.
func (s *Source) unrenewed() (string, error) {
	if s.claims.expires.After(s.now()) {
		return s.token, nil
	}
	return "", fmt.Errorf("the node token has ended and could not be renewed: %w", s.failure)
}

// judge is the time that the token's are compared with. One that was read was
// issued by another machine's clock, and this one may have been set wrong since
// the start, or right: where the token can be renewed, the later time costs no
// more than a refresh too many, and where it cannot, the earlier leaves it to the
// control plane to refuse it. mu is held.
func (s *Source) judge() time.Time {
	now, wall := s.now(), s.o.Now().Round(0)
	switch later := wall.After(now.Round(0)); {
	case s.renewed:
		return now
	case later == (s.refresh != nil):
		return wall
	default:
		return now
	}
}

// renewal is when the token is to be renewed: after two thirds of its life.
func (s *Source) renewal() time.Time {
	if s.claims.issued.IsZero() || !s.claims.issued.Before(s.claims.expires) {
		return s.claims.expires.Add(-time.Minute)
	}
	return s.claims.expires.Add(-s.claims.expires.Sub(s.claims.issued) / 3)
}

// begin starts a refresh, unless one is under way or failed a moment ago; mu is
// held.
func (s *Source) begin() chan struct{} {
	if s.flight != nil {
		return s.flight
	}
	if s.now().Before(s.retryAt) && !s.replaced() {
		return nil
	}
	s.flight = make(chan struct{})
	go s.renew(s.flight)
	return s.flight
}

// replaced says whether the file holds another refresh token than at the last
// look, which then counts, and not one that could not be written. mu is held.
func (s *Source) replaced() bool {
	_, changed, err := s.refresh.read()
	if err != nil || !changed {
		return false
	}
	s.unsaved = ""
	return true
}

// Stats reads the counts.
func (s *Source) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// Wait waits for a refresh that is under way.
func (s *Source) Wait(ctx context.Context) {
	s.mu.Lock()
	flight := s.flight
	s.mu.Unlock()
	if flight == nil {
		return
	}
	select {
	case <-flight:
	case <-ctx.Done():
	}
}
