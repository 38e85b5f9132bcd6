package session

import (
	"context"
	"sync"

	"github.com/felixlog/felix/wire"
)

const (
	// maxAnswerBytes bounds the bytes of records, as they stand in answers, that
	// one connection's polls and reads hold until the carrier has them. A peer
	// that asks for much and reads nothing holds no more.
	maxAnswerBytes = 32 << 20
	// pollBytes is what the polls under way on one connection may ask for,
	// together and of payload; each has its part, and no less than leastPollBytes.
	pollBytes      = 16 << 20
	leastPollBytes = 64 << 10
)

// answerBytes counts them. The zero value is ready.
type answerBytes struct {
	mu   sync.Mutex
	used int
	room chan struct{} // closed when something is released; nil if nobody waits
}

// take takes n bytes if there is room. What is larger than the bound is taken
// alone.
func (b *answerBytes) take(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked(n)
}

func (b *answerBytes) takeLocked(n int) bool {
	if b.used > 0 && b.used+n > maxAnswerBytes {
		return false
	}
	b.used += n
	return true
}

// reserve waits until n bytes can be taken. The error is the cause of ctx.
func (b *answerBytes) reserve(ctx context.Context, n int) error {
	for {
		b.mu.Lock()
		if b.takeLocked(n) {
			b.mu.Unlock()
			return nil
		}
		if b.room == nil {
			b.room = make(chan struct{})
		}
		room := b.room
		b.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (b *answerBytes) release(n int) { b.resize(n, 0) }

// resize corrects what was taken by what it has become.
func (b *answerBytes) resize(from, to int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += to - from
	if b.room != nil {
		close(b.room)
		b.room = nil
	}
}

// inAnswer is what a payload takes as base64.
func inAnswer(payload int) int { return (payload + 2) / 3 * 4 }

// pollShare bounds the payloads of a poll that starts with others under way on
// its connection.
func pollShare(running int64) int {
	return int(max(leastPollBytes, min(wire.MaxPollBytes, pollBytes/max(running, 1))))
}
