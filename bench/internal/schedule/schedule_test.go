package schedule

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPlanAlternatesTheOrder(t *testing.T) {
	got := ""
	for _, s := range Plan([]string{"a", "b"}, []Mode{Unpinned, Pinned}, 3) {
		got += fmt.Sprintf("%d%s%s ", s.Round, s.Mode, s.Case)
	}
	if want := "0Ua 0Ub 0Pa 0Pb 1Ub 1Ua 1Pb 1Pa 2Ua 2Ub 2Pa 2Pb "; got != want {
		t.Errorf("plan %s\nwant %s", got, want)
	}
}

func TestPlanInterleavesFairly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cases := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,4}`), 1, 8, rapid.ID).Draw(t, "cases")
		rounds := rapid.IntRange(1, 9).Draw(t, "rounds")
		steps := Plan(cases, []Mode{Pinned, Unpinned}, rounds)
		if len(steps) != 2*rounds*len(cases) {
			t.Fatalf("%d steps", len(steps))
		}
		seen := make(map[Step]int) // position of each step
		for i, s := range steps {
			if _, dup := seen[s]; dup {
				t.Fatalf("%v runs twice", s)
			}
			seen[s] = i
			if i > 0 && s.Round < steps[i-1].Round {
				t.Fatalf("round %d begins again after round %d", s.Round, steps[i-1].Round)
			}
		}
		// Of any two cases, each goes first equally often, but for one round.
		for _, a := range cases {
			for _, b := range cases {
				if a == b {
					continue
				}
				first := 0
				for r := range rounds {
					if seen[Step{r, Unpinned, a}] < seen[Step{r, Unpinned, b}] {
						first++
					} else {
						first--
					}
				}
				if first < -1 || first > 1 {
					t.Fatalf("%s leads %s by %d rounds", a, b, first)
				}
			}
		}
	})
}

func TestParseModes(t *testing.T) {
	for in, want := range map[string][]Mode{
		"U":    {Unpinned},
		"u,p":  {Unpinned, Pinned},
		"P, U": {Pinned, Unpinned},
		"":     nil,
		"U,U":  nil,
		"X":    nil,
		"U,":   nil,
	} {
		got, err := ParseModes(in)
		if (err != nil) != (want == nil) || (err == nil && !slices.Equal(got, want)) {
			t.Errorf("ParseModes(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
}
