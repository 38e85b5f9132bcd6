package kvlog

import (
	"context"

	"github.com/felixlog/felix/storage/shardlog"
)

// A counterKind gives counter records their meaning (storage 17). The sum is in
// the index; entry.position is the offset of the newest record in it.
type counterKind struct{}

func (counterKind) code() byte     { return 1 }
func (counterKind) readsLog() bool { return false }

func (counterKind) fold(rec []byte, offset uint64, _ shardlog.Location, x *index) (folded, error) {
	r, err := ParseCounterRecord(rec)
	if err != nil {
		return folded{}, err
	}
	s := x.get(r.Key)
	if s.present && offset <= uint64(s.entry.position) {
		return folded{key: r.Key, same: true}, nil
	}
	after := state{true, entry{
		offset:   offset,
		word:     uint64(r.Value),
		position: int64(offset),
		length:   uint32(batchBytes(len(rec))),
	}}
	if r.Op == Delta && s.present {
		sum, ok := add(int64(s.entry.word), r.Value)
		if !ok {
			return folded{}, &RecordError{"delta takes its counter past 64 bits"}
		}
		after.entry.word = uint64(sum)
		after.entry.offset = s.entry.offset
	}
	return folded{key: r.Key, after: after}, nil
}

func (counterKind) load(ctx context.Context, _ []carried) error { return ctx.Err() }

// carry writes a checkpoint of the staged sum, the one the counter has at this
// place in the log; should a delta before it fail, the checkpoint fails too.
func (counterKind) carry(o *op, _ *carried, v view) bool {
	if !v.present {
		return false
	}
	r := CounterRecord{Op: Checkpoint, Value: int64(v.entry.word), Key: o.key}
	o.block = sealBlock(r.Append(newBlock(counterHeader + len(r.Key))))
	o.quiet = true
	o.after = v.state
	return true
}

// add is a+b; false when that leaves the range.
func add(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}
