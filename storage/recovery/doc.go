// Package recovery decides what opening a log takes after whatever happened to
// its directory, and does it (storage 12).
//
// [Inspect] reads and plans; [Apply] executes the plan. The same plan tells an
// operator what a start would do, so there is nothing that a start does and an
// inspection does not know of.
//
// # What is kept
//
// Segments are walked from the oldest. Each must have a header, begin at the
// offset and with the checksum that the one before it ends with, and hold
// batches up to its last byte. The newest is read whole, the others from their
// last index entry on, or whole where that leads nowhere: an index is a hint,
// and a wrong one is rebuilt.
//
// The first thing that is not so is either a write that a crash left
// unfinished, which goes with all that follows it, or the loss of something
// that was durable, which is refused: nothing is changed, and the error names
// the file and the position. It is refused when one of these says that it was
// durable:
//
//   - durable.mark. It is written after the bytes it speaks of are on the device,
//     so it may lag and never leads. This holds for a file that ends cleanly,
//     and for one that is missing, as well. A mark of no bytes says that the
//     segments before the one it names are durable, and the name of that one.
//   - a later batch. Each carries the offset that was durable when it was
//     written. Later batches are looked for behind the damage, in what would be
//     deleted.
//   - a segment behind it, but for the two shapes below.
//   - its own checksums. A batch that verifies and that this version does not
//     know was written whole, by another.
//
// What nothing speaks for goes if there is a mark, whatever it looks like. If
// the mark is missing or damaged it must look like an unfinished write as well:
// a batch that the file ends within, or zeros where its last sectors should be.
//
//	first thing that is no batch, at byte P        mark says   no mark   Repair-
//	of the newest segment, L bytes long            P is loose            ChecksumTail
//	---------------------------------------------  ----------  --------  -------------
//	header or body reaches past L                  cut         cut       as without
//	zeros from P, or from a sector of the batch,   cut         cut       as without
//	to L
//	a checksum, the chain or the offset is wrong   cut         refuse    cut, if nothing
//	                                                                     follows
//	the checksums are right, the fields are not    refuse      refuse    refuse
//	any of these, proven durable                   refuse      refuse    cut, if a wrong
//	                                                                     checksum and
//	                                                                     nothing follows
//
// # Two segments at the end
//
// A roll in the background begins a segment before the one it follows is
// flushed, and any roll can be interrupted. So at the end, and only where no
// proof forbids it:
//
//   - a newest segment without a header is deleted;
//   - a newest segment that does not begin where the one before it ends is
//     deleted, given a mark that does not name it;
//   - the segment before the newest is cut to its last good batch, given such a
//     mark; the newest stays if it begins there.
//
// Files without a header between two segments that meet are deleted. A log whose
// only segment has no header and held nothing is fresh.
//
// # Crashes during recovery
//
// Each step is durable before the next: the mark is lowered before the file it
// names gets shorter, segments go from the newest down, and the mark is raised
// last. After a crash between two steps the next plan is the rest of this one.
package recovery
