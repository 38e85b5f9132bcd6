package recovery

import (
	"fmt"

	"github.com/felixlog/felix/storage/segment"
)

// An Op is a kind of step.
type Op uint8

const (
	// RemoveSegment deletes a segment and then its index, and makes the
	// directory durable.
	RemoveSegment Op = iota
	// RemoveIndex deletes an index whose segment does not exist.
	RemoveIndex
	// LowerMark writes durable.mark and makes it durable, before the file it
	// names gets shorter.
	LowerMark
	// Cut shortens a segment to Size bytes and makes it durable.
	Cut
	// Flush makes a segment durable as it is.
	Flush
	// WriteIndex replaces the index of a segment.
	WriteIndex
	// WriteGenerations replaces the generation history.
	WriteGenerations
	// WriteMark writes durable.mark and makes it and the directory durable.
	WriteMark
)

var opNames = [...]string{
	RemoveSegment: "remove segment", RemoveIndex: "remove index", LowerMark: "lower mark", Cut: "cut",
	Flush: "flush", WriteIndex: "write index", WriteGenerations: "write generations", WriteMark: "write mark",
}

func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", o)
}

// A Step is one change to a directory. Each may be executed again after a
// crash, with the same result.
type Step struct {
	Op Op
	// Segment is the id of the segment concerned.
	Segment uint64
	// Size is the length a Cut leaves, in bytes.
	Size int64
	// Base and Index are what WriteIndex writes.
	Base  uint64
	Index []segment.IndexEntry
	// Mark is what LowerMark and WriteMark write.
	Mark segment.Mark
	// Generations is what WriteGenerations writes.
	Generations segment.Generations
	// Why says in a few words what the step is for.
	Why string
	// Repairs is true for a step that removes or rebuilds something, false
	// for one that only writes out what is known.
	Repairs bool
}

func (s Step) String() string {
	switch s.Op {
	case Cut:
		return fmt.Sprintf("cut segment %d to %d bytes: %s", s.Segment, s.Size, s.Why)
	case WriteGenerations:
		return fmt.Sprintf("%s: %s", s.Op, s.Why)
	case LowerMark, WriteMark:
		return fmt.Sprintf("%s to segment %d, %d bytes: %s", s.Op, s.Mark.Segment, s.Mark.SyncedBytes, s.Why)
	}
	return fmt.Sprintf("%s %d: %s", s.Op, s.Segment, s.Why)
}
