package admission

import (
	"math"
	"math/bits"
	"sync"
	"time"
)

// A Quota is what a tenant may publish per second; 0 means unlimited.
type Quota struct {
	BytesPerSec, MessagesPerSec int64
}

// A bucket is a token bucket kept as one instant: when it will be full again.
// It holds burst's worth of tokens; a cost above that is admitted by a full
// bucket and leaves a debt, or it could never be.
type bucket struct {
	perSec int64
	burst  time.Duration
	full   time.Duration // since the meter's start
}

// price is how long n tokens take to come back.
func (b *bucket) price(n int64) time.Duration {
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(time.Second))
	if hi >= uint64(b.perSec) {
		return math.MaxInt64 / 4
	}
	q, r := bits.Div64(hi, lo, uint64(b.perSec))
	if r > 0 {
		q++
	}
	return time.Duration(min(q, math.MaxInt64/4))
}

// wait is how long after now the bucket can pay the price.
func (b *bucket) wait(now, price time.Duration) time.Duration {
	return max(0, max(b.full-now, 0)+min(price, b.burst)-b.burst)
}

func (b *bucket) take(now, price time.Duration) { b.full = max(b.full, now) + price }

// A meter is one tenant's two buckets.
type meter struct {
	mu              sync.Mutex
	start           time.Time
	bytes, messages bucket
}

// take admits a batch, or says how long it has to wait and takes nothing.
func (m *meter) take(now time.Time, bytes, messages int64) (wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := now.Sub(m.start)
	type charge struct {
		b     *bucket
		price time.Duration
	}
	var charges [2]charge
	for i, c := range [2]struct {
		b *bucket
		n int64
	}{{&m.bytes, bytes}, {&m.messages, messages}} {
		if c.b.perSec > 0 {
			charges[i] = charge{c.b, c.b.price(c.n)}
			wait = max(wait, c.b.wait(at, charges[i].price))
		}
	}
	if wait > 0 {
		return wait
	}
	for _, c := range charges {
		if c.b != nil {
			c.b.take(at, c.price)
		}
	}
	return 0
}

// refund gives back what a batch took that was refused later on.
func (m *meter) refund(bytes, messages int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes.perSec > 0 {
		m.bytes.full -= m.bytes.price(bytes)
	}
	if m.messages.perSec > 0 {
		m.messages.full -= m.messages.price(messages)
	}
}
