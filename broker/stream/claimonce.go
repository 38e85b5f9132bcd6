package stream

import (
	"fmt"

	"github.com/felixlog/felix/storage/producer"
)

// A RefusedError refuses a batch of an idempotent producer (wire 9.6). Nothing
// was appended.
type RefusedError struct{ Verdict producer.Verdict }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("batch of an idempotent producer refused: %s, expected sequence %d", e.Verdict.Outcome, e.Verdict.Expected)
}

// ClaimOnce is Claim for a numbered batch of a shard without a log, whose
// memory of producers lasts as long as the shard. A duplicate has the offset
// its batch got the first time and is not to be applied. Error also:
// [*RefusedError].
func (sh *Shard) ClaimOnce(e *Envelope, id, sequence uint64) (first uint64, duplicate bool, err error) {
	if err := sh.Err(); err != nil {
		return 0, false, err
	}
	if sh.producers == nil {
		sh.producers = producer.NewTable(0, 0)
	}
	digest := producer.Digest(e.block)
	v := sh.producers.Check(id, sequence, digest)
	switch v.Outcome {
	case producer.Next:
		if first, err = sh.Claim(e); err != nil {
			return 0, false, err
		}
		sh.producers.Record(id, sequence, digest, first, uint32(e.meta.Count))
		return first, false, nil
	case producer.Duplicate:
		return v.First, true, nil
	}
	return 0, false, &RefusedError{Verdict: v}
}
