package fstest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

// Errors to inject.
var (
	ErrNoSpace error = syscall.ENOSPC
	ErrIO      error = syscall.EIO
)

// Rule says which operations go wrong, and how. The zero value fails every
// operation with ErrIO for ever.
type Rule struct {
	Ops  []Op   // none: all
	Path string // what the name contains; for a rename, either name

	Skip  int // how many matching operations are let through first
	Times int // how many then go wrong; 0: all

	Err   error // nil: ErrIO, or with a Gate, none
	Half  bool  // a write puts half of its bytes in place before it fails
	After bool  // the operation is done, and fails all the same
	Gate  *Gate // the operation waits there first
}

func (r Rule) String() string {
	var b strings.Builder
	b.WriteString("on ")
	if len(r.Ops) == 0 {
		b.WriteString("anything")
	}
	for i, op := range r.Ops {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(op.String())
	}
	if r.Path != "" {
		fmt.Fprintf(&b, " of %q", r.Path)
	}
	fmt.Fprintf(&b, " after %d", r.Skip)
	if r.Times > 0 {
		fmt.Fprintf(&b, ", %d times", r.Times)
	}
	if r.Gate != nil {
		b.WriteString(", wait")
	}
	if err := r.err(); err != nil {
		fmt.Fprintf(&b, ", fail: %v", err)
	}
	return b.String()
}

func (r *Rule) err() error {
	if r.Err == nil && r.Gate == nil {
		return ErrIO
	}
	return r.Err
}

// Injected is a rule at work.
type Injected struct {
	f    *Faults
	rule Rule
	seen int // matching operations; under f.mu
	hits int
}

// Stop ends the rule. Who waits at its gate goes on waiting.
func (i *Injected) Stop() {
	i.f.mu.Lock()
	defer i.f.mu.Unlock()
	i.f.rules = slices.DeleteFunc(i.f.rules, func(r *Injected) bool { return r == i })
}

// Hits is how many operations the rule has met.
func (i *Injected) Hits() int {
	i.f.mu.Lock()
	defer i.f.mu.Unlock()
	return i.hits
}

// meets reports whether the rule applies to this operation, and counts it.
func (i *Injected) meets(op Op, names []string) bool {
	r := &i.rule
	if len(r.Ops) > 0 && !slices.Contains(r.Ops, op) {
		return false
	}
	if !slices.ContainsFunc(names, func(n string) bool { return strings.Contains(n, r.Path) }) {
		return false
	}
	i.seen++
	if i.seen <= r.Skip || (r.Times > 0 && i.hits >= r.Times) {
		return false
	}
	i.hits++
	return true
}

// ErrInjected is wrapped by every error a [Faults] makes itself, beside the
// error it plays.
var ErrInjected = errors.New("injected")
