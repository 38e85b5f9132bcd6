package report

import (
	"encoding/json"
	"io"
	"time"
)

// A Document is one whole run, for programs.
type Document struct {
	Started time.Time `json:"started"`
	Machine Machine   `json:"machine"`
	// Rounds and the two spans are what was asked for.
	Rounds         int     `json:"rounds"`
	WarmupSeconds  float64 `json:"warmup_seconds"`
	MeasureSeconds float64 `json:"measure_seconds"`
	Lines          []Line  `json:"lines"`
}

// A Machine says where the figures come from.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
	Go     string `json:"go"`
	Kernel string `json:"kernel,omitempty"`
	CPU    string `json:"cpu,omitempty"`
}

// Write writes the document as one JSON value.
func (d Document) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(d)
}

// Failing lists the rows that keep a run from passing: those below their
// floor and those that measured something else than they should have.
func (d Document) Failing() []Line {
	var out []Line
	for _, l := range d.Lines {
		if l.Verdict == Below || l.Verdict == Invalid {
			out = append(out, l)
		}
	}
	return out
}
