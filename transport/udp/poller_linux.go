package udp

import "time"

// A poller decides when a reader looks again before it parks. It holds no
// clock and does no waiting, so that its rule can be tested on its own.
//
// Polling pays when the next packet follows within the poll: a miss burns a
// CPU for the whole of it. So a poll happens only if the last two reads were
// close together, and while a running share of at least half the polls found
// a packet. Below that it stops, and tries a single poll ever more rarely,
// in case the traffic has changed.
type poller struct {
	// window is how long a poll lasts; 0 never polls.
	window time.Duration

	last  time.Time
	close bool

	// score is the running share of hits, of fullScore.
	score int
	// skip counts down the chances left out before the next trial; rest is
	// how many that will be after one more failure.
	skip, rest int
}

const (
	fullScore = 256
	// paying is the share from which on polling goes on.
	paying = fullScore / 2
	// weight is the share of the newest poll in the score: 1/weight.
	weight = 8
	// near is how many windows apart two reads may be to count as close.
	near = 4
	// minRest and maxRest bound the chances left out between trials.
	minRest, maxRest = 16, 4096
)

func newPoller(window time.Duration, cpus int) poller {
	if cpus < 2 {
		window = 0
	}
	return poller{window: window, score: fullScore, rest: minRest}
}

func (p *poller) enabled() bool { return p.window > 0 }

// arrived notes a read that returned packets.
func (p *poller) arrived(now time.Time) {
	p.close = !p.last.IsZero() && now.Sub(p.last) <= near*p.window
	p.last = now
}

// want says whether to poll before parking now.
func (p *poller) want() bool {
	if p.window == 0 || !p.close {
		return false
	}
	if p.score >= paying {
		return true
	}
	if p.skip > 0 {
		p.skip--
		return false
	}
	return true
}

// hit notes a poll that found a packet.
func (p *poller) hit() {
	p.score += (fullScore - p.score + weight - 1) / weight
	if p.score >= paying {
		p.rest = minRest
	}
}

// miss notes a poll that did not.
func (p *poller) miss() {
	p.score -= (p.score + weight - 1) / weight
	if p.score < paying {
		p.skip = p.rest
		p.rest = min(2*p.rest, maxRest)
	}
}
