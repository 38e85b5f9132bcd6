package auth_test

import (
	"bytes"
	"strings"
	"sync"
	"time"
)

// A clock stands still until it is told to go on.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// A transcript is all that a service says to the outside but its answers: its
// log, and the texts of its errors.
type transcript struct {
	mu      sync.Mutex
	text    bytes.Buffer
	secrets map[string]bool
}

func (l *transcript) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// secret remembers what must not be said, in whole or in part.
func (l *transcript) secret(texts ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range texts {
		for _, part := range append(strings.Split(text, "."), text) {
			if len(part) >= 16 {
				l.secrets[part] = true
			}
		}
	}
}

// TB is what tests, fuzz targets and properties have in common.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(func())
}

// leaks fails the test if a secret was said. The head of a token is the same
// for all of a key and no secret; what follows is.
func (l *transcript) leaks(t TB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := l.text.String()
	for secret := range l.secrets {
		if strings.Contains(said, secret) {
			t.Errorf("a secret was said: %.12s...", secret)
		}
	}
}
