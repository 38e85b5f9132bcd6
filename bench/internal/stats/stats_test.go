package stats

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []float64
		want Summary
	}{
		{"none", nil, Summary{}},
		{"one", []float64{4}, Summary{4, 4, 4, 1}},
		{"odd, unsorted", []float64{9, 1, 5}, Summary{5, 1, 9, 3}},
		{"even takes the mean of the two in the middle", []float64{4, 1, 3, 2}, Summary{2.5, 1, 4, 4}},
		{"one wild round does not move it", []float64{10, 11, 10, 900, 9}, Summary{10, 9, 900, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := slices.Clone(c.in)
			if got := Summarize(in); got != c.want {
				t.Errorf("Summarize(%v) = %+v, want %+v", c.in, got, c.want)
			}
			if !slices.Equal(in, c.in) {
				t.Errorf("Summarize reordered its input to %v", in)
			}
		})
	}
}

func TestSummarizeHalvesTheSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 40).Draw(t, "xs")
		s := Summarize(xs)
		below, above := 0, 0
		for _, x := range xs {
			if x < s.Median {
				below++
			}
			if x > s.Median {
				above++
			}
		}
		if below > len(xs)/2 || above > len(xs)/2 {
			t.Fatalf("median %v of %v has %d below and %d above", s.Median, xs, below, above)
		}
		if s.Min != slices.Min(xs) || s.Max != slices.Max(xs) || s.N != len(xs) {
			t.Fatalf("range of %v is %+v", xs, s)
		}
	})
}

func TestRatiosPairWithinARound(t *testing.T) {
	// The machine slows to a third in the second round: each pair still
	// says one half, which a ratio of medians over unequal rounds would not.
	got := Ratios([]float64{50, 16, 40}, []float64{100, 32, 80})
	if want := []float64{.5, .5, .5}; !slices.Equal(got, want) {
		t.Errorf("Ratios = %v, want %v", got, want)
	}
	if got := Ratios([]float64{1, 2}, []float64{0, 4}); !slices.Equal(got, []float64{.5}) {
		t.Errorf("a zero denominator is left out: got %v", got)
	}
}

func TestLatencyQuantiles(t *testing.T) {
	l := NewLatency()
	for i := 1; i <= 1000; i++ {
		l.Record(time.Duration(i) * time.Microsecond)
	}
	for q, want := range map[float64]time.Duration{.5: 500 * time.Microsecond, .99: 990 * time.Microsecond, 1: time.Millisecond} {
		if got := l.Quantile(q); math.Abs(float64(got-want)) > float64(want)/500 {
			t.Errorf("quantile %v = %v, want %v within 0.2 %%", q, got, want)
		}
	}
}

func TestLatencyMergesAndKeepsOutliers(t *testing.T) {
	a, b := NewLatency(), NewLatency()
	a.Record(0)
	a.Record(time.Millisecond)
	b.Record(time.Hour)
	a.Merge(b)
	if a.Count() != 3 {
		t.Fatalf("merged count = %d, want 3", a.Count())
	}
	if got := a.Quantile(1); got < maxLatency {
		t.Errorf("an hour counts as the longest bin, got %v", got)
	}
}
