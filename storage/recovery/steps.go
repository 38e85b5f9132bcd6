package recovery

import (
	"bytes"
	"slices"

	"github.com/felixlog/felix/storage/segment"
)

// steps turns a decision into steps and the verdict they amount to.
func (p *planner) steps(d *decision) error {
	plan := p.plan
	for _, id := range p.orphans {
		plan.add(Step{Op: RemoveIndex, Segment: id, Why: "its segment does not exist"})
	}
	if d.lower {
		lowered := segment.Mark{Segment: plan.NextID}
		if d.active != nil {
			lowered = segment.Mark{Segment: d.active.id, SyncedBytes: uint64(d.found.pos)}
		}
		plan.add(Step{Op: LowerMark, Mark: lowered, Repairs: true, Why: "what it names goes"})
	}
	for _, f := range d.drop {
		why := "it was begun and never used"
		if !f.blank {
			why = "it was never flushed, and does not follow what was"
			plan.CutBytes += f.size - segment.HeaderSize
		}
		plan.AbandonedRolls++
		plan.add(Step{Op: RemoveSegment, Segment: f.id, Repairs: true, Why: why})
	}
	for _, cut := range d.cuts {
		plan.CutBytes += cut.file.size - cut.size
		plan.add(Step{Op: Cut, Segment: cut.file.id, Size: cut.size, Repairs: true, Why: "what follows was never finished"})
	}
	for _, step := range p.indices {
		plan.IndexRebuilds++
		plan.add(step)
	}
	if d.active == nil {
		plan.Verdict = Fresh
		return nil
	}
	if err := p.activeIndex(d); err != nil {
		return err
	}
	p.generations()
	p.markSteps(d)
	plan.Verdict = Clean
	if slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Repairs }) {
		plan.Verdict = Repair
	}
	return nil
}

func (p *Plan) add(s Step) { p.Steps = append(p.Steps, s) }

// activeIndex hands out the index of the active segment, and plans to write it
// where the file has another. That the last entries are not written yet is no
// damage.
func (p *planner) activeIndex(d *decision) error {
	entries := d.found.index
	p.plan.Active().Index = entries
	want := segment.AppendIndex(nil, d.active.header.BaseOffset, entries)
	have, exists, err := p.readIndex(d.active, len(entries))
	if err != nil {
		return err
	}
	if exists && bytes.Equal(have, want) {
		return nil
	}
	step := Step{Op: WriteIndex, Segment: d.active.id, Base: d.active.header.BaseOffset, Index: entries, Why: "it was not written out"}
	if !bytes.HasPrefix(want, have) {
		step.Repairs, step.Why = true, "it does not fit the segment"
	}
	p.plan.add(step)
	return nil
}

// generations leaves out what the log does not reach any more.
func (p *planner) generations() {
	plan := p.plan
	kept := plan.Generations
	for len(kept) > 0 && kept[len(kept)-1].Start > plan.Tail {
		kept = kept[:len(kept)-1]
	}
	if len(kept) < len(plan.Generations) {
		plan.add(Step{Op: WriteGenerations, Generations: kept, Repairs: true, Why: "the newest start past the tail"})
	}
	plan.Generations = kept
}

// markSteps makes the active segment durable as it is, and the mark say so.
func (p *planner) markSteps(d *decision) {
	plan, active := p.plan, p.plan.Active()
	whole := segment.Mark{Segment: active.ID, SyncedBytes: uint64(active.Size)}
	if plan.HasMark && plan.Mark == whole {
		return
	}
	// A roll in the background seals the old segment after the swap, so a
	// process that died in between left that one unflushed too. The mark may
	// not vouch for it before it is.
	if n := len(plan.Segments); n > 1 && (!plan.HasMark || plan.Mark.Segment < active.ID) {
		plan.add(Step{Op: Flush, Segment: plan.Segments[n-2].ID, Why: "its seal may not have been finished"})
	}
	plan.add(Step{Op: Flush, Segment: active.ID, Why: "not all of it is known to be durable"})
	plan.add(Step{Op: WriteMark, Mark: whole, Why: "all of it is durable now"})
}
