package udp

import (
	"testing"
	"time"
)

const window = 200 * time.Microsecond

// busy is a poller whose reads follow each other closely.
func busy() poller {
	p := newPoller(window, 2)
	start := time.Unix(0, 0)
	p.arrived(start)
	p.arrived(start.Add(window))
	return p
}

func TestPollerNeedsCPUsAndTraffic(t *testing.T) {
	off, single := newPoller(0, 2), newPoller(window, 1)
	for name, p := range map[string]*poller{"no window": &off, "one CPU": &single} {
		p.arrived(time.Unix(0, 0))
		p.arrived(time.Unix(0, 1))
		if p.enabled() || p.want() {
			t.Errorf("%s: polls", name)
		}
	}
	p := newPoller(window, 2)
	if p.want() {
		t.Error("polls before any traffic")
	}
	now := time.Unix(0, 0)
	p.arrived(now)
	if p.want() {
		t.Error("polls after a lone packet")
	}
	now = now.Add(window)
	p.arrived(now)
	if !p.want() {
		t.Error("does not poll in a conversation")
	}
	now = now.Add(time.Second)
	p.arrived(now)
	if p.want() {
		t.Error("polls after a pause")
	}
}

func TestPollerBacksOffAndReturns(t *testing.T) {
	p := busy()
	misses := 0
	for p.want() && p.skip == 0 && misses < 1000 {
		p.miss()
		misses++
	}
	if misses == 0 || misses > 10 {
		t.Errorf("gave up after %d misses in a row, want a few", misses)
	}
	// Of many chances it now takes ever fewer.
	const chances = 100_000
	polls := 0
	for range chances {
		if p.want() {
			p.miss()
			polls++
		}
	}
	if polls == 0 || polls > 50 {
		t.Errorf("%d polls in %d chances while all miss, want a few trials", polls, chances)
	}
	// The traffic changes: trials hit, and polling is back.
	hits := 0
	for range chances {
		if p.want() {
			p.hit()
			hits++
		}
		if p.score >= paying {
			break
		}
	}
	if p.score < paying || hits > 20 {
		t.Errorf("score %d after %d hits, want polling back", p.score, hits)
	}
	if p.rest != minRest {
		t.Errorf("rest is %d after recovery, want %d", p.rest, minRest)
	}
}

// With a share of hits above and below the threshold, polling goes on or not.
func TestPollerShare(t *testing.T) {
	for _, c := range []struct {
		hitsOf10 int
		on       bool
	}{{10, true}, {8, true}, {2, false}, {0, false}} {
		p := busy()
		polls := 0
		for i := range 1000 {
			if !p.want() {
				continue
			}
			polls++
			if i%10 < c.hitsOf10 {
				p.hit()
			} else {
				p.miss()
			}
		}
		if on := polls > 900; on != c.on {
			t.Errorf("%d hits in 10: %d polls of 1000 chances", c.hitsOf10, polls)
		}
	}
}
