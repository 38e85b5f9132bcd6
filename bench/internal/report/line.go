// Package report turns the samples of a run into the table and the document
// that a reader judges Felix by.
package report

import (
	"fmt"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/schedule"
	"github.com/felixlog/felix/bench/internal/stats"
)

// MinRounds is how many valid rounds a verdict takes.
const MinRounds = 5

// A Row is one comparison: one figure of a Felix run beside the same figure
// of a reference run.
type Row struct {
	// ID is the name a user selects the row by.
	ID string `json:"id"`
	// Work is what both sides do.
	Work string `json:"work"`
	// Reference says what Felix is compared with.
	Reference string `json:"reference"`
	// Metric is the figure.
	Metric measure.Metric `json:"-"`
	// Floor must hold and Goal is aimed for; both are ratios of Felix to
	// the reference. A row with neither informs and is not judged.
	Floor float64 `json:"floor,omitempty"`
	Goal  float64 `json:"goal,omitempty"`
}

// A Sample is one run of one case.
type Sample struct {
	Round  int            `json:"round"`
	Result measure.Result `json:"result"`
	// Failed says why there is no result.
	Failed string `json:"failed,omitempty"`
	// ClientCPU and ServerCPU are CPU seconds over the whole life of the
	// two processes, warm-up included.
	ClientCPU float64 `json:"client_cpu_seconds"`
	ServerCPU float64 `json:"server_cpu_seconds"`
	// Foreign is the share of all CPUs that other processes used meanwhile,
	// 0 to 1.
	Foreign float64 `json:"foreign_load"`
}

// Invalid says why the sample must not be used, and is empty for a good one.
func (s Sample) Invalid() string {
	if s.Failed != "" {
		return s.Failed
	}
	return s.Result.Invalid()
}

// A Verdict is what a row's ratio says.
type Verdict string

const (
	// Goal, Floor and Below say which mark the median ratio reaches.
	Goal  Verdict = "goal"
	Floor Verdict = "floor"
	Below Verdict = "BELOW"
	// Info is the verdict of a row that is not judged.
	Info Verdict = "info"
	// Unproven says that too few rounds were run for a verdict.
	Unproven Verdict = "unproven"
	// Invalid says that a run was not what it should measure.
	Invalid Verdict = "INVALID"
)

// A Line is one row in one mode.
type Line struct {
	Row
	Unit      string        `json:"unit"`
	Mode      schedule.Mode `json:"mode"`
	Felix     stats.Summary `json:"felix"`
	Ref       stats.Summary `json:"reference_value"`
	Ratio     stats.Summary `json:"ratio"`
	Verdict   Verdict       `json:"verdict"`
	Why       string        `json:"why,omitempty"`
	Foreign   float64       `json:"foreign_load_median"`
	Notes     []string      `json:"notes,omitempty"`
	FelixRuns []Sample      `json:"felix_samples,omitempty"`
	RefRuns   []Sample      `json:"reference_samples,omitempty"`
}

// Judge compares the samples of the two sides of a row round by round.
//
// One invalid Felix run makes the whole line invalid: a median would hide
// it. A round whose reference run is invalid is left out, and with more than
// half of the rounds left out there is nothing to compare with.
func Judge(row Row, mode schedule.Mode, felix, ref []Sample) Line {
	line := Line{Row: row, Unit: row.Metric.Unit(), Mode: mode, FelixRuns: felix, RefRuns: ref}
	var ours, theirs, foreign []float64
	bad := 0
	for i := range min(len(felix), len(ref)) {
		if why := felix[i].Invalid(); why != "" {
			line.Verdict, line.Why = Invalid, fmt.Sprintf("felix, round %d: %s", felix[i].Round+1, why)
			return line
		}
		if why := ref[i].Invalid(); why != "" {
			bad++
			line.Why = fmt.Sprintf("reference, round %d: %s", ref[i].Round+1, why)
			continue
		}
		ours = append(ours, row.Metric.Of(felix[i].Result))
		theirs = append(theirs, row.Metric.Of(ref[i].Result))
		foreign = append(foreign, felix[i].Foreign, ref[i].Foreign)
	}
	line.Felix, line.Ref = stats.Summarize(ours), stats.Summarize(theirs)
	line.Ratio = stats.Summarize(stats.Ratios(ours, theirs))
	line.Foreign = stats.Summarize(foreign).Median
	line.Verdict = verdict(row, line.Ratio, bad)
	return line
}

func verdict(row Row, ratio stats.Summary, bad int) Verdict {
	reaches := func(mark float64) bool {
		if row.Metric.LowerIsBetter() {
			return ratio.Median <= mark
		}
		return ratio.Median >= mark
	}
	switch {
	case ratio.N == 0 || bad > ratio.N:
		return Invalid
	case row.Floor == 0:
		return Info
	case ratio.N < MinRounds:
		return Unproven
	case reaches(row.Goal):
		return Goal
	case reaches(row.Floor):
		return Floor
	default:
		return Below
	}
}
