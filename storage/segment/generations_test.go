package segment

import (
	"slices"
	"testing"
)

func TestGenerationsRecord(t *testing.T) {
	var g Generations
	for _, r := range []Generation{{3, 0}, {3, 9}, {2, 9}, {5, 4}, {6, 3}, {7, 4}} {
		g = g.Record(r.Number, r.Start)
	}
	if want := (Generations{{3, 0}, {5, 4}, {7, 4}}); !slices.Equal(g, want) {
		t.Errorf("got %v, want %v", g, want)
	}
	for i := range uint64(MaxGenerations) {
		g = g.Record(100+i, 100+i)
	}
	if len(g) != MaxGenerations || g[0].Number != 100 {
		t.Errorf("%d kept, from %d", len(g), g[0].Number)
	}
}

func TestGenerationsEnd(t *testing.T) {
	g := Generations{{3, 0}, {5, 4}}
	for _, c := range []struct {
		number, end uint64
		ok          bool
	}{{3, 4, true}, {5, 20, true}, {4, 0, false}, {2, 0, false}, {6, 0, false}} {
		if end, ok := g.End(c.number, 20); end != c.end || ok != c.ok {
			t.Errorf("generation %d ends at %d, %v", c.number, end, ok)
		}
	}
}

func TestGenerationsCut(t *testing.T) {
	g := Generations{{3, 0}, {5, 4}, {7, 9}}
	for offset, want := range map[uint64]int{0: 0, 1: 1, 4: 1, 5: 2, 9: 2, 10: 3} {
		if got := g.Cut(offset); len(got) != want {
			t.Errorf("cut at %d leaves %v", offset, got)
		}
	}
}
