// Package schedule orders the runs of a benchmark so that what is compared
// was measured in the same minute.
package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// A Mode says which CPUs the two processes of a run share.
type Mode string

const (
	// Unpinned leaves client and server free on every CPU: what a user gets.
	Unpinned Mode = "U"
	// Pinned keeps the client on the first CPU and the server on the second:
	// less noise, for telling regressions.
	Pinned Mode = "P"
)

// ParseModes reads a list of modes such as "U,P", in either case. The order
// is kept and a mode named twice is an error.
func ParseModes(s string) ([]Mode, error) {
	var modes []Mode
	for name := range strings.SplitSeq(s, ",") {
		m := Mode(strings.ToUpper(strings.TrimSpace(name)))
		if m != Unpinned && m != Pinned {
			return nil, fmt.Errorf("mode %q is neither U (unpinned) nor P (pinned)", name)
		}
		if slices.Contains(modes, m) {
			return nil, fmt.Errorf("mode %s is given twice", m)
		}
		modes = append(modes, m)
	}
	return modes, nil
}

// A Step is one run of one case.
type Step struct {
	Round int
	Mode  Mode
	Case  string
}

// Plan interleaves: every case runs once in each mode of each round, and
// rounds alternate between the given order and its reverse, so that a drift
// of the machine weighs on both sides of a comparison alike.
func Plan(cases []string, modes []Mode, rounds int) []Step {
	steps := make([]Step, 0, len(cases)*len(modes)*rounds)
	for round := range rounds {
		order := slices.Clone(cases)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, mode := range modes {
			for _, c := range order {
				steps = append(steps, Step{Round: round, Mode: mode, Case: c})
			}
		}
	}
	return steps
}
