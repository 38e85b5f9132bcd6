// Package stats reduces the samples of a benchmark to the figures a reader
// compares: medians and ranges over rounds, and latency quantiles within one.
package stats

import (
	"slices"
)

// A Summary is the middle and the range of one figure over the rounds of a
// run. It is the zero Summary when no round was valid.
type Summary struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// N is the number of samples behind the figures.
	N int `json:"n"`
}

// Summarize reduces xs, which it leaves as they are.
func Summarize(xs []float64) Summary {
	if len(xs) == 0 {
		return Summary{}
	}
	s := slices.Sorted(slices.Values(xs))
	mid := len(s) / 2
	m := s[mid]
	if len(s)%2 == 0 {
		m = (s[mid-1] + s[mid]) / 2
	}
	return Summary{Median: m, Min: s[0], Max: s[len(s)-1], N: len(s)}
}

// Ratios divides a by b pair by pair. The two were measured one after the
// other in the same round, so a pair shares the noise of its minute; the
// median of these ratios is steadier than a ratio of medians. Pairs with a
// denominator that is not positive are left out.
func Ratios(a, b []float64) []float64 {
	n := min(len(a), len(b))
	out := make([]float64, 0, n)
	for i := range n {
		if b[i] > 0 {
			out = append(out, a[i]/b[i])
		}
	}
	return out
}
