package recovery

import (
	"github.com/felixlog/felix/storage/segment"
)

// A Report is a plan in the words of a tool: what opening a directory would do,
// and why. It reads as JSON.
type Report struct {
	Dir     string  `json:"dir"`
	Verdict Verdict `json:"verdict"`
	// Of a refusal: what is wrong, in which file and where, in bytes.
	Corruption string `json:"corruption,omitempty"`
	File       string `json:"file,omitempty"`
	Position   *int64 `json:"position,omitempty"`
	Error      string `json:"error,omitempty"`

	// Base and Tail are the first offset held and the next to be given, after
	// the repairs; of a refusal, those of what was found whole before the
	// damage.
	Base uint64 `json:"base"`
	Tail uint64 `json:"tail"`
	// Bytes are those of all segments, CutBytes those that would be removed.
	Bytes    int64           `json:"bytes"`
	CutBytes int64           `json:"cut_bytes,omitempty"`
	Segments []SegmentReport `json:"segments"`
	// Steps are what opening would do, Warnings what it would do without.
	Steps    []string `json:"steps,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// A SegmentReport is a segment of a report. Times are in microseconds since
// 1970, 0 where there is none.
type SegmentReport struct {
	ID            uint64 `json:"id"`
	File          string `json:"file"`
	Base          uint64 `json:"base"`
	End           uint64 `json:"end"`
	Bytes         int64  `json:"bytes"`
	CreatedMicros uint64 `json:"created_micros"`
	NewestMicros  uint64 `json:"newest_micros,omitempty"`
}

// Report describes the plan for a directory.
func (p *Plan) Report(dir string) Report {
	r := Report{
		Dir: dir, Verdict: p.Verdict, Base: p.Base, Tail: p.Tail, CutBytes: p.CutBytes,
		Segments: make([]SegmentReport, 0, len(p.Segments)), Warnings: p.Warnings,
	}
	for _, s := range p.Segments {
		r.Bytes += s.Size
		r.Segments = append(r.Segments, SegmentReport{
			ID: s.ID, File: segment.FileName(s.ID), Base: s.Base, End: s.End, Bytes: s.Size,
			CreatedMicros: s.CreatedMicros, NewestMicros: s.NewestMicros,
		})
	}
	for _, step := range p.Steps {
		r.Steps = append(r.Steps, step.String())
	}
	if p.Err != nil {
		damage := corruption(p.Err)
		r.Corruption, r.File, r.Position, r.Error = damage.Kind.String(), damage.Path, new(damage.Position), p.Err.Error()
	}
	return r
}
