package stream

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/placed"
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
	hub    *Hub
	name   Name
	opts   Options
	owner  Owner
	shards []atomic.Pointer[Shard]
	active atomic.Bool

	// placing guards seats, and the shards against two changes at once.
	placing sync.Mutex
	seats   []placed.Seat // nil unless placed

	retention retention
}

// NewStream makes an active stream. Shards in memory are empty; durable ones
// are opened in the background, and what needs them waits for them. Placed ones
// wait to be assigned.
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
	s := &Stream{hub: h, name: name, opts: opts, owner: owner, shards: make([]atomic.Pointer[Shard], opts.Shards)}
	s.retention.bounds = opts.Retention
	if opts.Placed {
		s.seats = make([]placed.Seat, opts.Shards)
	}
	s.active.Store(true)
	s.placing.Lock()
	defer s.placing.Unlock()
	var begun []*Shard
	for i := range opts.Shards {
		if opts.Placed {
			s.vacate(i, placed.NotAssigned, nil)
		} else if sh := s.serve(i); sh != nil {
			begun = append(begun, sh)
		}
	}
	s.openLogs(begun)
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

// Shard is the shard with index i as it is served now, or nil when there is
// none. One that is not served here refuses everything.
func (s *Stream) Shard(i uint32) *Shard {
	if i >= uint32(len(s.shards)) {
		return nil
	}
	return s.shards[i].Load()
}

// Active says that the stream is registered.
func (s *Stream) Active() bool { return s.active.Load() }

// End deactivates the stream and its shards for good: publishes and subscribes
// are refused with cause, subscriptions end with it after what they had
// queued, history is let go. The cause is [ErrRemoved] unless the whole broker
// stops.
func (s *Stream) End(cause error) {
	s.placing.Lock()
	defer s.placing.Unlock()
	if !s.active.CompareAndSwap(true, false) {
		return
	}
	var ended []*Shard
	for i := range s.shards {
		sh := s.shards[i].Load()
		sh.finish(cause)
		if !sh.vacant {
			ended = append(ended, sh)
		}
	}
	if s.opts.Durable && len(ended) > 0 {
		s.hub.opener.stop(ended, cause)
	}
}
