package recovery

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// Inspect reads a shard directory and plans what opening it takes. It changes
// nothing. A directory that must not be opened gives a plan whose Verdict is
// Refuse; an error means that it could not be read.
func Inspect(f fs.FS, dir string, o Options) (*Plan, error) {
	p := &planner{fs: f, dir: dir, opts: o, plan: &Plan{}}
	err := p.run()
	if damage, ok := errors.AsType[*segment.CorruptionError](err); ok {
		p.plan.Verdict, p.plan.Err = Refuse, damage
		p.plan.Steps, p.plan.CutBytes, p.plan.IndexRebuilds, p.plan.AbandonedRolls = nil, 0, 0, 0
		p.bound()
		return p.plan, nil
	}
	if err != nil {
		return nil, err
	}
	return p.plan, nil
}

// A planner holds what is known of a directory while it is being judged. Its
// methods answer damage that must not be repaired with a
// *segment.CorruptionError, and a directory that cannot be read with any other
// error.
type planner struct {
	fs   fs.FS
	dir  string
	opts Options
	plan *Plan

	files   []*file  // segments, oldest first
	orphans []uint64 // indices without a segment
	// indices are those to be written, of sealed segments.
	indices []Step
}

func (p *planner) run() error {
	if err := p.list(); err != nil {
		return err
	}
	if err := p.readSideFiles(); err != nil {
		return err
	}
	kept, err := p.decide()
	if err != nil {
		return err
	}
	p.bound()
	return p.steps(kept)
}

// A decision is what of the files is kept.
type decision struct {
	active *file   // the newest that is kept, nil for a fresh log
	found  scanned // what it holds
	drop   []*file // files to delete, newest first
	cuts   []cutting
	// lower is true where what is cut lies below the mark.
	lower bool
}

// A cutting is a segment to shorten, and the bytes it keeps.
type cutting struct {
	file *file
	size int64
}

// decide finds what of the files is kept, or that they must not be touched.
func (p *planner) decide() (*decision, error) {
	var live, blanks []*file
	for _, f := range p.files {
		if f.blank {
			blanks = append(blanks, f)
		} else {
			live = append(live, f)
		}
	}
	if len(live) == 0 {
		return p.decideFresh(blanks)
	}
	if len(blanks) > 0 && blanks[0].id < live[0].id {
		return nil, blankError(blanks[0], "later segments exist")
	}
	d, err := p.decideLive(live)
	if err != nil {
		return nil, err
	}
	if err := p.dropBlanks(d, blanks); err != nil {
		return nil, err
	}
	slices.SortFunc(d.drop, func(a, b *file) int { return cmp.Compare(b.id, a.id) })
	return d, p.checkMark(d)
}

// decideFresh judges a directory without a segment that has a header.
func (p *planner) decideFresh(blanks []*file) (*decision, error) {
	d := &decision{drop: blanks}
	mark, marked := p.plan.Mark, p.plan.HasMark && p.plan.Mark != segment.Mark{}
	switch {
	case len(blanks) > 1:
		return nil, blankError(blanks[0], "later segments exist")
	case len(blanks) == 1:
		blank := blanks[0]
		headerOnly := blank.id == 0 && mark.Segment == 0 && mark.SyncedBytes <= segment.HeaderSize
		if blank.size > segment.HeaderSize || marked && !headerOnly {
			return nil, blankError(blank, "it held more than a header")
		}
		p.plan.NextID, d.lower = blank.id, marked
	case marked:
		return nil, p.lost()
	}
	return d, nil
}

// lost is the error of a segment that the mark names and that is not there.
func (p *planner) lost() *segment.CorruptionError {
	mark := p.plan.Mark
	return &segment.CorruptionError{
		Kind: segment.BelowMark, Path: filepath.Join(p.dir, segment.FileName(mark.Segment)), Segment: mark.Segment,
		Expected: mark.SyncedBytes, Detail: "the mark says the segment was durable, and it is missing",
	}
}

// blankError is the error of a segment whose header is missing and that must
// not be deleted.
func blankError(f *file, why string) *segment.CorruptionError {
	if f.err != nil {
		out := *f.err
		out.Detail = "the header is blank: " + why
		return &out
	}
	return &segment.CorruptionError{
		Kind: segment.Truncated, Path: f.path, Segment: f.id, Needed: segment.HeaderSize, Available: f.size,
		Detail: "the header is missing: " + why,
	}
}

// bound sets what follows from the list of segments.
func (p *planner) bound() {
	plan := p.plan
	if len(plan.Segments) == 0 {
		plan.Base, plan.Tail = p.opts.BaseOffset, p.opts.BaseOffset
		return
	}
	last := plan.Active()
	plan.Base, plan.Tail, plan.LastCRC, plan.NextID = plan.Segments[0].Base, last.End, last.LastCRC, last.ID+1
}
