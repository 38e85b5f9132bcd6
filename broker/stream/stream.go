package stream

import (
	"fmt"
	"sync/atomic"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/schedule"
)

// An Owner is the tenant a stream belongs to, as the publish pipeline knows
// it: its turn in the queue and its account.
type Owner struct {
	Queue   *schedule.Tenant
	Account *admission.Account
}

// A Stream is a named set of shards.
type Stream struct {
	name   Name
	opts   Options
	shards []*Shard
	active atomic.Bool

	retention retention
	// before is closed when the stream that had the name before has let go of
	// its logs; nil when there was none.
	before chan struct{}
}

// NewStream makes an active stream. Shards in memory are empty; durable ones
// are opened in the background, and what needs them waits for them.
func (h *Hub) NewStream(name Name, opts Options, owner Owner) (*Stream, error) {
	if opts.Shards == 0 {
		opts.Shards = 1
	}
	if opts.Shards > MaxShards {
		return nil, fmt.Errorf("stream %s: %d shards, more than %d", name, opts.Shards, MaxShards)
	}
	if opts.Durable && h.cfg.Logs == nil {
		return nil, fmt.Errorf("stream %s is durable and there is no storage", name)
	}
	s := &Stream{name: name, opts: opts, shards: make([]*Shard, opts.Shards)}
	s.retention.bounds = opts.Retention
	for i := range s.shards {
		s.shards[i] = h.newShard(s, uint32(i), owner)
	}
	s.active.Store(true)
	if opts.Durable {
		h.opener.start(s)
	}
	return s, nil
}

// Name is the stream's full name.
func (s *Stream) Name() Name { return s.name }

// Options are those the stream was registered with, Shards at least 1, and
// its retention now.
func (s *Stream) Options() Options {
	opts := s.opts
	opts.Retention = s.Retention()
	return opts
}

// Shards is the number of shards.
func (s *Stream) Shards() uint32 { return s.opts.Shards }

// Shard is the shard with index i, or nil when there is none.
func (s *Stream) Shard(i uint32) *Shard {
	if i >= uint32(len(s.shards)) {
		return nil
	}
	return s.shards[i]
}

// Active says that the stream is registered.
func (s *Stream) Active() bool { return s.active.Load() }

// End deactivates the stream and its shards for good: publishes and subscribes
// are refused with cause, subscriptions end with it after what they had
// queued, history is let go. The cause is [ErrRemoved] unless the whole broker
// stops.
func (s *Stream) End(cause error) {
	if !s.active.CompareAndSwap(true, false) {
		return
	}
	for _, sh := range s.shards {
		sh.finish(cause)
	}
	if s.opts.Durable {
		s.shards[0].hub.opener.stop(s)
	}
}
