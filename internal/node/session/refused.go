package session

import (
	"errors"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/storage/producer"
	"github.com/felixlog/felix/wire"
)

// refusedReason is the reason of publish_refused for an idempotent or
// conditional batch that was refused as such (wire 9.6, 9.7).
func refusedReason(err error) (wire.RefusedReason, bool) {
	var refused *broker.RefusedError
	var mismatch *broker.OffsetMismatchError
	switch {
	case errors.As(err, &mismatch):
		return wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: mismatch.Tail}, true
	case !errors.As(err, &refused):
		return wire.RefusedReason{}, false
	}
	switch refused.Verdict.Outcome {
	case producer.Gap:
		return wire.RefusedReason{Kind: wire.RefusedSequenceGap, Expected: refused.Verdict.Expected}, true
	case producer.Expired:
		return wire.RefusedReason{Kind: wire.RefusedSequenceExpired}, true
	case producer.Reused:
		return wire.RefusedReason{Kind: wire.RefusedSequenceReused}, true
	case producer.Unknown:
		return wire.RefusedReason{Kind: wire.RefusedUnknownProducer}, true
	default:
		return wire.RefusedReason{}, false
	}
}
