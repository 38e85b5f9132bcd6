package memory

import (
	"context"
	"io"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

// Options of the memory backend.
type Options struct {
	Limits store.Limits
	Clock  func() time.Time // nil is time.Now
	Random io.Reader        // of the names of writes; nil is crypto/rand
}

// A Store is the memory backend (control plane 13): for tests, and for clusters
// of one node that may forget. All is lost with the process.
type Store struct {
	*Machine
}

// Open makes an empty store.
func Open(o Options) *Store {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	p := &direct{clock: NewClock(o.Clock)}
	p.machine = NewMachine(NewState(o.Limits), p, Hooks{
		Name:   "memory",
		Random: o.Random,
		Now:    func(context.Context) (uint64, error) { return p.millis(), nil },
	})
	return &Store{p.machine}
}

// direct applies what is proposed at once.
type direct struct {
	clock   *Clock
	machine *Machine
}

func (p *direct) millis() uint64 { return p.clock.Millis(p.machine.Clock()) }

// Propose implements [Proposer].
func (p *direct) Propose(_ context.Context, c Command) (Result, error) {
	c.At = p.millis()
	return p.machine.Apply(c), nil
}
