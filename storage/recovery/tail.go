package recovery

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/felixlog/felix/storage/segment"
)

// sectorBytes is what a device writes whole or not at all.
const sectorBytes = 512

// decideLive judges the segments that have a header, oldest first.
func (p *planner) decideLive(live []*file) (*decision, error) {
	sealed, newest := live[:len(live)-1], live[len(live)-1]
	if newest.err != nil {
		return nil, newest.err // it was durable before anything was written behind it
	}
	end, torn, found, err := p.walkSealed(sealed, newest)
	switch {
	case err != nil:
		return nil, err
	case torn != nil:
		return p.unfinishedSeal(torn, found, newest)
	case len(sealed) > 0 && !newest.follows(end):
		return p.abandonedRoll(sealed, newest, end)
	}
	return p.tail(newest)
}

// tail judges the end of the segment that is appended to.
func (p *planner) tail(f *file) (*decision, error) {
	found, err := p.readWhole(f)
	if err != nil {
		return nil, err
	}
	d := &decision{active: f, found: found}
	if found.damage != nil {
		if err := p.cutTail(d); err != nil {
			return nil, err
		}
	}
	p.keep(f, found)
	return d, nil
}

// readWhole verifies all of a segment.
func (p *planner) readWhole(f *file) (found scanned, err error) {
	err = p.withWindow(f, func(w *window) error {
		found, err = p.scan(w, f, f.start())
		return err
	})
	return found, err
}

// cutTail decides that what follows the last good batch of the active segment
// is cut off, or that it must not be. It is a torn write when nothing proves
// that it was durable: not the mark, and no later batch. Where there is no mark
// it must look like a torn write as well.
func (p *planner) cutTail(d *decision) error {
	damage := d.found.damage
	if damage.foreign {
		return damage.err
	}
	d.cuts = []cutting{{d.active, damage.pos}}
	return p.withWindow(d.active, func(w *window) error {
		through, found, err := provenThrough(w, max(damage.end, damage.pos+1))
		if err != nil {
			return err
		}
		if found && through > damage.offset {
			return durable(damage.err, fmt.Sprintf("a later batch was written when everything below offset %d was durable", through))
		}
		if p.opts.RepairChecksumTail && damage.last(w.size) && !p.markIsPast(d.active.id) {
			d.lower = p.markVouches(d.active.id, damage.pos)
			return nil
		}
		if p.markVouches(d.active.id, damage.pos) {
			return durable(damage.err, fmt.Sprintf("the mark says %d bytes were durable", p.plan.Mark.SyncedBytes))
		}
		if p.plan.HasMark {
			return nil
		}
		torn, err := damage.looksTorn(w)
		if err == nil && !torn {
			err = durable(damage.err, "there is no mark that would say it is an unfinished write")
		}
		return err
	})
}

// durable adds to the error of a damage why it is no torn write.
func durable(err *segment.CorruptionError, why string) *segment.CorruptionError {
	out := *err
	if out.Detail != "" {
		out.Detail += "; "
	}
	out.Detail += why
	return &out
}

// markVouches reports whether the mark says that the byte at pos of a segment
// was durable.
func (p *planner) markVouches(id uint64, pos int64) bool {
	mark := p.plan.Mark
	return p.plan.HasMark && (mark.Segment > id || mark.Segment == id && mark.SyncedBytes > uint64(pos))
}

// markIsPast reports whether the mark names a segment after id.
func (p *planner) markIsPast(id uint64) bool { return p.plan.HasMark && p.plan.Mark.Segment > id }

// last reports whether the damaged batch is all there, by what its header says
// where that verifies, and nothing follows it.
func (d *damage) last(size int64) bool {
	if d.err.Kind == segment.Truncated {
		return false
	}
	return d.extent() >= size
}

// extent is where the damaged batch ends, or its header where that does not
// say.
func (d *damage) extent() int64 {
	if d.end > 0 {
		return d.end
	}
	return d.pos + segment.BatchHeaderSize
}

// looksTorn reports whether the damage is what an unfinished write leaves: a
// batch that is not all there, or zeros where its last sectors should be.
func (d *damage) looksTorn(w *window) (bool, error) {
	if d.err.Kind == segment.Truncated {
		return true, nil
	}
	zero, err := w.zeroFrom(d.pos)
	if err != nil || zero == w.size {
		return false, err
	}
	sector := (zero + sectorBytes - 1) / sectorBytes * sectorBytes
	return zero == d.pos || sector < d.extent(), nil
}

// unfinishedSeal judges a damaged segment before the newest. A roll in the
// background begins the newest before the one before it is flushed, so power
// loss can tear that one. It is cut where the mark allows, and the newest stays
// only if it begins at the cut.
func (p *planner) unfinishedSeal(f *file, held scanned, newest *file) (*decision, error) {
	damage := held.damage
	switch {
	case damage.foreign:
		return nil, damage.err
	case !p.plan.HasMark:
		return nil, durable(damage.err, "a segment follows, and there is no mark")
	case p.markVouches(f.id, damage.pos):
		return nil, durable(damage.err, fmt.Sprintf("the mark says segment %d was durable up to byte %d", p.plan.Mark.Segment, p.plan.Mark.SyncedBytes))
	}
	behind, _, err := p.proven(f, max(damage.end, damage.pos+1))
	if err != nil {
		return nil, err
	}
	later, found, err := p.proven(newest, segment.HeaderSize)
	if err != nil {
		return nil, err
	}
	if through := max(behind, later); through > damage.offset {
		return nil, durable(damage.err, fmt.Sprintf("a later batch was written when everything below offset %d was durable", through))
	}
	here := cutting{f, damage.pos}
	p.keep(f, held)
	if !newest.follows(held.place) {
		if found && newest.header.BaseOffset <= damage.offset {
			return nil, durable(damage.err, "the segment after it holds other batches of these offsets")
		}
		return &decision{active: f, found: held, cuts: []cutting{here}, drop: []*file{newest}}, nil
	}
	if err := p.rebuildIndex(f, held.index); err != nil {
		return nil, err
	}
	d, err := p.tail(newest)
	if err != nil {
		return nil, err
	}
	d.cuts = append(d.cuts, here)
	return d, nil
}

// abandonedRoll judges a newest segment that does not begin where the one
// before it ends: a roll that was abandoned, or one whose predecessor lost its
// end to power loss. It goes where the mark says that it was never flushed, and
// nothing in it says otherwise; the one before it is then the newest.
func (p *planner) abandonedRoll(sealed []*file, newest *file, end place) (*decision, error) {
	gap := newest.gap(end)
	if !p.plan.HasMark {
		return nil, durable(gap, "there is no mark that would say it was never flushed")
	}
	if p.plan.Mark.Segment >= newest.id {
		return nil, durable(gap, fmt.Sprintf("the mark says it was durable up to byte %d", p.plan.Mark.SyncedBytes))
	}
	before := sealed[len(sealed)-1]
	if err := p.checkMark(&decision{active: before, found: scanned{place: end}}); err != nil {
		return nil, err
	}
	through, found, err := p.proven(newest, segment.HeaderSize)
	switch {
	case err != nil:
		return nil, err
	case found && newest.header.BaseOffset <= end.offset:
		return nil, durable(gap, "it holds batches")
	case through > end.offset:
		return nil, durable(gap, fmt.Sprintf("a batch in it was written when everything below offset %d was durable", through))
	}
	p.plan.Segments = p.plan.Segments[:len(p.plan.Segments)-1]
	p.forgetIndex(before.id)
	d, err := p.tail(before)
	if err != nil {
		return nil, err
	}
	d.drop = append(d.drop, newest)
	return d, nil
}

// forgetIndex drops the plan to write the index of a segment.
func (p *planner) forgetIndex(id uint64) {
	if n := len(p.indices); n > 0 && p.indices[n-1].Segment == id {
		p.indices = p.indices[:n-1]
	}
}

// proven looks for batches in a segment from a position on, see provenThrough.
func (p *planner) proven(f *file, from int64) (through uint64, found bool, err error) {
	err = p.withWindow(f, func(w *window) error {
		through, found, err = provenThrough(w, from)
		return err
	})
	return through, found, err
}

// dropBlanks adds the files without a header to what is deleted. One in the
// middle lost the race to be rolled to: its neighbours meet without it, which
// has been checked. One at the end was begun and never flushed.
func (p *planner) dropBlanks(d *decision, blanks []*file) error {
	for _, f := range blanks {
		if f.id > d.active.id && p.markVouches(f.id, 0) {
			return blankError(f, fmt.Sprintf("the mark says it was durable up to byte %d", p.plan.Mark.SyncedBytes))
		}
		if f.size > segment.HeaderSize {
			through, found, err := p.proven(f, segment.HeaderSize)
			switch {
			case err != nil:
				return err
			case found && (f.id < d.active.id || !p.plan.HasMark):
				return blankError(f, "it holds batches")
			case through > d.found.offset:
				return blankError(f, fmt.Sprintf("a batch in it was written when everything below offset %d was durable", through))
			}
		}
		d.drop = append(d.drop, f)
	}
	return nil
}

// checkMark refuses a log that ends below what the mark says was durable,
// however well it ends. A mark of no bytes says so of the segments before the
// one it names, which itself may be gone if nothing but its name was durable.
func (p *planner) checkMark(d *decision) error {
	mark, f := p.plan.Mark, d.active
	switch {
	case !p.plan.HasMark || f == nil || d.lower || mark.Segment < f.id:
		return nil
	case mark.Segment > f.id && mark.SyncedBytes == 0 && p.exists(mark.Segment):
		d.lower = true
		return nil
	case mark.Segment > f.id:
		return p.lost()
	case mark.SyncedBytes > uint64(d.found.pos):
		return &segment.CorruptionError{
			Kind: segment.BelowMark, Path: filepath.Join(p.dir, segment.FileName(f.id)), Segment: f.id, Position: d.found.pos,
			Expected: mark.SyncedBytes, Found: uint64(d.found.pos),
			Detail: "the segment ends before what the mark says was durable",
		}
	}
	return nil
}

// exists reports whether there is a file of that segment.
func (p *planner) exists(id uint64) bool {
	return slices.ContainsFunc(p.files, func(f *file) bool { return f.id == id })
}
