package raft

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
)

const (
	importOp   = "import_state"
	maxCommand = 16 << 20 // bytes of a command
	maxImport  = 64 << 20 // bytes of the command that brings a whole store
	maxPending = 1024     // commands of one member on their way

	// defaultBetween is how many entries may lie between the first attempt of a write
	// and a later one. The state remembers ten thousand ids; beyond that a repeat
	// would be taken for a new write.
	defaultBetween = 8000
)

var (
	errNoLeader  = errors.New("the group has no leader")
	errNotLeader = errors.New("this member is not the leader")
	errForming   = errors.New("the group is forming: too few of its members vote yet")
	errForgotten = errors.New("too much was written since the first attempt to tell a repeat from a new write")
)

// A refusedError says that a write was not taken and will not be.
type refusedError struct{ err error }

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

// An attempt is one try to get a command into the log.
type attempt struct {
	data []byte // the command as JSON
	// since is an index that is not above that of the first attempt's entry.
	since  uint64
	repeat bool
}

// Propose gets a command into the log and answers with its result, wherever the
// leader is (control plane 12.2). After Options.WriteTimeout, or when ctx ends,
// it is a [*store.UnavailableError].
func (s *Store) Propose(ctx context.Context, c memory.Command) (memory.Result, error) {
	if err := c.Check(); err != nil {
		return memory.Result{}, err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return memory.Result{}, err
	}
	if err := checkSize(c.Op, len(data)); err != nil {
		return memory.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.WriteTimeout)
	defer cancel()
	a := attempt{data: data, since: s.machine.applied.load()}
	for {
		result, err := s.try(ctx, a)
		var refused *refusedError
		switch {
		case err == nil:
			return result, nil
		case errors.As(err, &refused):
			return memory.Result{}, refused.err
		case errors.Is(err, errForgotten):
			return memory.Result{}, &store.UnavailableError{Err: err}
		}
		a.repeat = true
		if !s.pause(ctx) {
			if s.closed() {
				return memory.Result{}, store.ErrClosed
			}
			s.counts.writeTimeouts.Add(1)
			return memory.Result{}, &store.UnavailableError{Err: err}
		}
	}
}

func checkSize(op string, size int) error {
	limit := maxCommand
	if op == importOp {
		limit = maxImport
	}
	if size > limit {
		return fmt.Errorf("the write has %d bytes, at most %d are allowed", size, limit)
	}
	return nil
}

// pause waits between two attempts; false means that there is no other.
func (s *Store) pause(ctx context.Context) bool {
	t := time.NewTimer(s.opts.RetryInterval)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.done:
		return false
	case <-t.C:
		return true
	}
}

// try makes one attempt, here or at the leader.
func (s *Store) try(ctx context.Context, a attempt) (memory.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.AttemptTimeout)
	defer cancel()
	r := s.raft.Load()
	if r == nil {
		return memory.Result{}, errNoLeader
	}
	if r.State() == hraft.Leader {
		result, _, err := s.accept(ctx, a)
		return result, err
	}
	_, id := r.LeaderWithID()
	leader := memberID(id)
	if leader == 0 || leader == s.opts.NodeID {
		return memory.Result{}, errNoLeader
	}
	return s.forward(ctx, leader, a)
}

// accept puts a command into the log, as the leader, and waits until it is
// applied. The index is that of its entry.
func (s *Store) accept(ctx context.Context, a attempt) (memory.Result, uint64, error) {
	r, reign := s.raft.Load(), s.reign.Load()
	if r == nil || reign == nil || !reign.ready.Load() || s.closed() {
		return memory.Result{}, 0, errNotLeader
	}
	if !s.majorityVotes(r) {
		return memory.Result{}, 0, errForming
	}
	if a.repeat && r.LastIndex() > a.since+s.maxBetween {
		return memory.Result{}, 0, errForgotten
	}
	select {
	case s.pending <- struct{}{}:
	case <-ctx.Done():
		return memory.Result{}, 0, ctx.Err()
	}
	data, err := stamp(a.data, s.nextMillis())
	if err == nil {
		data, err = pack(data)
	}
	if err != nil {
		<-s.pending
		return memory.Result{}, 0, &refusedError{err}
	}
	answer := make(chan outcome, 1)
	go func() { // the library answers when the entry is applied or leadership is lost
		answer <- put(r, data, s.opts.AttemptTimeout)
		<-s.pending
	}()
	select {
	case <-ctx.Done():
		return memory.Result{}, 0, ctx.Err()
	case o := <-answer:
		return o.result, o.index, o.err
	}
}

type outcome struct {
	result memory.Result
	index  uint64
	err    error
}

func put(r *hraft.Raft, data []byte, timeout time.Duration) outcome {
	future := r.Apply(data, timeout)
	if err := future.Error(); err != nil {
		return outcome{err: err}
	}
	result, ok := future.Response().(memory.Result)
	if !ok {
		return outcome{err: fmt.Errorf("entry %d was not applied", future.Index())}
	}
	return outcome{result: result, index: future.Index()}
}

// stamp sets the time of a command. What else it holds stays as it is, also
// what this program does not know.
func stamp(data []byte, at uint64) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("the write is no JSON object: %w", err)
	}
	var err error
	if fields["at"], err = json.Marshal(at); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}
