package credential

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/felixtest/stepped"
)

// clockSteps are how a test sets the machine's clock; the control plane's is
// right.
var clockSteps = map[string]func(*stepped.Clock){
	"an hour forth":   func(c *stepped.Clock) { c.Step(time.Hour) },
	"an hour back":    func(c *stepped.Clock) { c.Step(-time.Hour) },
	"ten years forth": func(c *stepped.Clock) { c.Step(87_600 * time.Hour) },
	"to 1970":         func(c *stepped.Clock) { c.Set(time.Unix(0, 0)) },
	"right":           func(c *stepped.Clock) { c.Set(time.Now()) },
}

// valid has the source give a token each minute, and the control plane take it.
func (r *rig) valid(minutes int, when string) {
	r.t.Helper()
	for minute := range minutes {
		token, err := r.source.Token(r.t.Context())
		if err != nil {
			r.t.Fatalf("%s, minute %d: %v", when, minute, err)
		}
		c, err := parse(token)
		must(r.t, err)
		if !c.expires.After(time.Now()) {
			r.t.Fatalf("%s, minute %d: the control plane gets a token that ended at %v", when, minute, c.expires)
		}
		synctest.Wait() // for a refresh beside
		time.Sleep(time.Minute)
	}
}

// TestRenewalOnASteppedClock sets the broker's clock wrong and right, or has it
// wrong from the start: the control plane gets no token that has ended, and is not
// asked for more than ever.
func TestRenewalOnASteppedClock(t *testing.T) {
	for name, set := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, fresh("first"))
				clock := new(stepped.Clock)
				r.restart(clock, fresh("second"))
				r.valid(5, "right")
				set(clock)
				r.valid(90, "set "+name)
				clock.Set(time.Now())
				r.valid(90, "put right")
				// One each ten minutes, and one for each step.
				if calls := r.issuer.called(); calls > 185/10+2 {
					t.Errorf("%d refreshes in three hours", calls)
				}
			})
		})
		t.Run(name+" from the start", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, fresh("first"))
				clock := new(stepped.Clock)
				set(clock)
				r.restart(clock, fresh("second"))
				r.valid(5, "set "+name)
				clock.Set(time.Now())
				r.valid(90, "put right")
				if calls := r.issuer.called(); calls > 95/10+2 {
					t.Errorf("%d refreshes in an hour and a half", calls)
				}
			})
		})
	}
}

// restart makes the source anew, on that clock.
func (r *rig) restart(clock *stepped.Clock, token string) {
	r.t.Helper()
	o := r.source.o
	o.Now, o.Token = clock.Now, token
	s, err := New(o)
	must(r.t, err)
	r.source = s
}

// A step back is no reason to wait for the next attempt.
func TestRetriesOnASteppedClock(t *testing.T) {
	for name, set := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, fresh("first"))
				clock := new(stepped.Clock)
				r.restart(clock, fresh("second"))
				r.issuer.err = errors.New("away")
				time.Sleep(14 * time.Minute)
				for range 5 {
					_, err := r.source.Token(t.Context())
					must(t, err)
					synctest.Wait()
					time.Sleep(time.Second)
				}
				set(clock)
				before := r.issuer.called()
				time.Sleep(retryMax)
				_, _ = r.source.Token(t.Context())
				synctest.Wait()
				if r.issuer.called() != before+1 {
					t.Error("no attempt after the longest pause")
				}
			})
		})
	}
}

// A token that has not ended is shown where the clock says that it has and it
// cannot be renewed.
func TestAFailedRenewalOnASteppedClock(t *testing.T) {
	for name, set := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, fresh("first"))
				clock := new(stepped.Clock)
				r.restart(clock, fresh("second"))
				r.issuer.err = errors.New("away")
				set(clock)
				r.valid(15, "set "+name)
				clock.Set(time.Now())
				if _, err := r.source.Token(t.Context()); err == nil {
					t.Error("a token that has ended is shown")
				}
			})
		})
	}
}

// A token that cannot be renewed is shown until it has ended by the right time,
// whatever the clock is set to.
func TestATokenFileOnASteppedClock(t *testing.T) {
	for name, set := range clockSteps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				file, clock := filepath.Join(t.TempDir(), "token"), new(stepped.Clock)
				must(t, os.WriteFile(file, []byte(fresh("only")), 0o600))
				s, err := New(Options{TokenFile: file, Now: clock.Now})
				must(t, err)
				set(clock)
				(&rig{t: t, source: s}).valid(15, "set "+name)
			})
		})
	}
}
