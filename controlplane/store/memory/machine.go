package memory

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// A Machine is a [store.Store] over a [State]. It reads the state under a lock,
// and writes one [Command] a call through a [Proposer], which hands it back to
// [Machine.Apply], in its place in the order of all commands.
type Machine struct {
	propose Proposer
	hooks   Hooks

	random sync.Mutex // over hooks.Random

	mu      sync.RWMutex
	state   *State
	changed chan struct{} // closed at the next change of an assignment
	closed  bool
}

var _ store.Store = (*Machine)(nil)

// NewMachine is the store over a state, which belongs to it from now on.
func NewMachine(state *State, p Proposer, h Hooks) *Machine {
	if h.Random == nil {
		h.Random = rand.Reader
	}
	return &Machine{propose: p, hooks: h, state: state, changed: make(chan struct{})}
}

// Apply is [State.Apply] under the machine's lock. It wakes those who wait for
// assignments.
func (m *Machine) Apply(c Command) Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.state.assignmentFeed.next
	r := m.state.Apply(c)
	if m.state.assignmentFeed.next != before {
		m.wake()
	}
	return r
}

func (m *Machine) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// Image is [State.Image] under the machine's lock, to encode outside of it.
func (m *Machine) Image() (*Image, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.Image()
}

// Snapshot is [State.Snapshot].
func (m *Machine) Snapshot() ([]byte, error) {
	i, err := m.Image()
	if err != nil {
		return nil, err
	}
	return i.Encode()
}

// Restore is [State.Restore] under the machine's lock. It wakes those who wait
// for assignments.
func (m *Machine) Restore(snapshot []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.state.Restore(snapshot); err != nil {
		return err
	}
	m.wake()
	return nil
}

// Clock is [State.Clock] under the machine's lock.
func (m *Machine) Clock() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.Clock()
}

// Stuck is [State.Stuck] under the machine's lock.
func (m *Machine) Stuck() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.Stuck()
}

// Repeats is [State.Repeats] under the machine's lock.
func (m *Machine) Repeats() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.Repeats()
}

// read finds something in the state for a caller of the store.
func read[T any](m *Machine, find func(s *State) (T, error)) (T, error) {
	if m.hooks.Serve != nil {
		if err := m.hooks.Serve(); err != nil {
			var none T
			return none, err
		}
	}
	return look(m, find)
}

// look finds something in the state.
func look[T any](m *Machine, find func(s *State) (T, error)) (T, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		var none T
		return none, store.ErrClosed
	}
	return find(m.state)
}

// write makes a command of a body and gets it applied.
func (m *Machine) write(ctx context.Context, op string, body any) (Result, error) {
	m.mu.RLock()
	closed := m.closed
	m.mu.RUnlock()
	if closed {
		return Result{}, store.ErrClosed
	}
	b, err := json.Marshal(body)
	if err != nil {
		return Result{}, fmt.Errorf("%s: %w", op, err)
	}
	rid, err := m.newRID()
	if err != nil {
		return Result{}, err
	}
	r, err := m.propose.Propose(ctx, Command{V: CommandVersion, RID: rid, Op: op, Body: b})
	if err != nil {
		return Result{}, err
	}
	return r, r.Err()
}

// ask is write for an operation that gives a value.
func ask[V any](ctx context.Context, m *Machine, op string, body any) (V, error) {
	var v V
	r, err := m.write(ctx, op, body)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return v, fmt.Errorf("%s: result of kind %s: %w", op, r.Kind, err)
	}
	return v, nil
}

// tell is write for an operation that gives nothing.
func (m *Machine) tell(ctx context.Context, op string, body any) error {
	_, err := m.write(ctx, op, body)
	return err
}

func (m *Machine) newRID() (string, error) {
	var b [16]byte
	m.random.Lock()
	defer m.random.Unlock()
	if _, err := io.ReadFull(m.hooks.Random, b[:]); err != nil {
		return "", fmt.Errorf("name a write: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// NowMillis implements [store.Store].
func (m *Machine) NowMillis(ctx context.Context) (uint64, error) {
	now, err := look(m, func(s *State) (uint64, error) { return s.Clock(), nil })
	if err != nil || m.hooks.Now == nil {
		return now, err
	}
	return m.hooks.Now(ctx)
}

// CatchUp implements [store.Store].
func (m *Machine) CatchUp(ctx context.Context) error {
	if _, err := read(m, func(*State) (struct{}, error) { return struct{}{}, nil }); err != nil || m.hooks.CatchUp == nil {
		return err
	}
	return m.hooks.CatchUp(ctx)
}

// Health implements [store.Store].
func (m *Machine) Health(ctx context.Context) error {
	_, err := look(m, func(s *State) (struct{}, error) { return struct{}{}, s.Stuck() })
	if err != nil || m.hooks.Health == nil {
		return err
	}
	return m.hooks.Health(ctx)
}

// Durable implements [store.Store].
func (m *Machine) Durable() bool { return m.hooks.Durable }

// Name implements [store.Store].
func (m *Machine) Name() string { return m.hooks.Name }

// Export implements [store.Store].
func (m *Machine) Export(context.Context) (*model.Dump, error) {
	i, err := read(m, (*State).Image)
	if err != nil {
		return nil, err
	}
	return i.dump(), nil
}

// Import implements [store.Store].
func (m *Machine) Import(ctx context.Context, d *model.Dump, overwrite bool) error {
	return m.tell(ctx, "import_state", importBody{Dump: *d, Overwrite: overwrite})
}

// Close implements [store.Store].
func (m *Machine) Close() error {
	m.mu.Lock()
	first := !m.closed
	m.closed = true
	m.mu.Unlock()
	if !first || m.hooks.Close == nil {
		return nil
	}
	return m.hooks.Close()
}
