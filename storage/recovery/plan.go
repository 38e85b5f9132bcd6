package recovery

import (
	"fmt"

	"github.com/felixlog/felix/storage/segment"
)

// Options say how a directory is judged.
type Options struct {
	// VerifyAll reads every byte of the sealed segments too, not only what
	// follows their last index entry.
	VerifyAll bool
	// RepairChecksumTail lets a damaged batch that nothing follows be cut off
	// even where it is known to have been durable. It loses what that batch
	// held, acknowledged or not: it is for an operator who has decided so.
	RepairChecksumTail bool
	// IndexSpacing is the least number of bytes between two index entries; 0
	// means segment.DefaultIndexSpacing.
	IndexSpacing int
	// BaseOffset is where a log that does not exist yet begins.
	BaseOffset uint64
}

// A Verdict says what opening a directory amounts to.
type Verdict uint8

const (
	// Fresh: there is no segment (or none is left after the steps); the log
	// begins at Options.BaseOffset with the segment Plan.NextID.
	Fresh Verdict = iota
	// Clean: the log is whole. There may be steps that only restate what is
	// there, such as an index that was not written out.
	Clean
	// Repair: the steps remove what a crash left unfinished, or rebuild an
	// index that was wrong.
	Repair
	// Refuse: something known to have been durable is damaged or missing.
	// Nothing is changed.
	Refuse
)

var verdictNames = [...]string{Fresh: "fresh", Clean: "clean", Repair: "repair", Refuse: "refuse"}

func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", v)
}

// MarshalText writes the verdict as its name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// A Segment is one file of the log as it is after the steps.
type Segment struct {
	ID uint64
	// Base and End bound its offsets: [Base, End).
	Base, End uint64
	// Size is the length of the file in bytes.
	Size int64
	// LastCRC is the header CRC of its last batch, or the PrevCRC of its
	// header where it holds none: what the next batch chains to.
	LastCRC uint32
	// CreatedMicros is from the segment's header.
	CreatedMicros uint64
	// NewestMicros is the time of its last batch, 0 where it holds none.
	NewestMicros uint64
	// Index is the sparse index; of the newest segment only, nil for others.
	Index []segment.IndexEntry
}

// A Plan is what recovery found in a directory and what it would do about it.
type Plan struct {
	Verdict Verdict
	// Steps are executed by Apply in this order, each made durable before the
	// next. A plan that refuses has none.
	Steps []Step
	// Segments are those of the log as it is after the steps, oldest first;
	// the last is the one to append to. Of a plan that refuses, those that were
	// found whole before the damage.
	Segments []Segment
	// Base is the first offset held, Tail the next to be given.
	Base, Tail uint64
	// LastCRC is what the next batch chains to.
	LastCRC uint32
	// NextID is the id of the next segment to create.
	NextID uint64
	// CutBytes counts the bytes of batches that the steps remove.
	CutBytes int64
	// IndexRebuilds counts indices of sealed segments that the steps rebuild,
	// AbandonedRolls the files of unfinished rolls that they delete.
	IndexRebuilds, AbandonedRolls int

	// Mark is what durable.mark says; HasMark is false where it is missing or
	// damaged.
	Mark    segment.Mark
	HasMark bool
	// Generations is the history in epochs, without entries past Tail; empty
	// where it is missing or damaged.
	Generations segment.Generations
	// Replica and Ballot are zero where their files do not exist.
	Replica segment.Replica
	Ballot  segment.Ballot
	// Identity says whose log it is; HasIdentity is false where its file does
	// not exist.
	Identity    segment.Identity
	HasIdentity bool

	// Warnings tell of derived files that were damaged and are rebuilt or
	// done without.
	Warnings []string
	// Err is why Verdict is Refuse, a *segment.CorruptionError.
	Err error
}

// Active is the segment that appends go to. It must not be called on a plan
// without segments.
func (p *Plan) Active() *Segment { return &p.Segments[len(p.Segments)-1] }
