package client

import (
	"context"
	"sync"
	"time"

	"github.com/felixlog/felix/transport"
)

// A role is what a connection of a broker is for.
type role uint8

const (
	rolePublish role = iota
	roleCache
	roleEvent
	roleGroup
	roles
)

// A conn is one connection to a broker.
type conn struct {
	transport.Conn
	b       *broker
	windows windowSizes
	router  router

	mu            sync.Mutex
	publishes     *budget // of unanswered publishes, where the broker counts per connection (wire 9.5)
	subscriptions int
	idle          *session // authenticated, for whoever comes first
	idleSince     time.Time
}

// idleUse is how long an authenticated stream that nobody used stays fit for
// use: its token ages.
const idleUse = 20 * time.Second

func (cn *conn) alive() bool { return cn.Context().Err() == nil }

// keep leaves s for the next stream of this connection.
func (cn *conn) keep(s *session) {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	cn.idle, cn.idleSince = s, time.Now()
}

// takeIdle gives the stream that was kept; nil when there is none, or when
// it is too old.
func (cn *conn) takeIdle() *session {
	cn.mu.Lock()
	s, since := cn.idle, cn.idleSince
	cn.idle = nil
	cn.mu.Unlock()
	if s != nil && time.Since(since) >= idleUse {
		s.cancel()
		return nil
	}
	return s
}

// session gives an authenticated stream.
func (cn *conn) session(ctx context.Context) (*session, error) {
	if s := cn.takeIdle(); s != nil {
		return s, nil
	}
	return cn.open(ctx, nil, false)
}

// eventCapacity is the number of subscriptions a connection carries: the
// broker opens a stream for each, of the 1024 this side allows (wire 2.2),
// and some are on their way at any time.
const eventCapacity = 1000

// reserveSubscription counts one more subscription, if there is room.
func (cn *conn) reserveSubscription() bool {
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.subscriptions >= eventCapacity {
		return false
	}
	cn.subscriptions++
	return true
}

func (cn *conn) releaseSubscription() {
	cn.mu.Lock()
	cn.subscriptions--
	cn.mu.Unlock()
}
