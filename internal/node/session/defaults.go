package session

import (
	"time"

	"github.com/felixlog/felix/wire"
)

// Bounds of a control stream that are no settings (broker 2.3).
const (
	// DefaultFrameReadTimeout is the longest pause inside a frame.
	DefaultFrameReadTimeout = 30 * time.Second
	// DefaultReplyWriteTimeout is the longest a blocked answer may take.
	DefaultReplyWriteTimeout = 30 * time.Second
	// DefaultMaxOutstanding is how many acked publishes a stream without the
	// pipeline may leave unanswered.
	DefaultMaxOutstanding = 1024
)

// Served is what a node offers its clients (wire 5.4): with storage, what
// needs a log as well. A feature is offered only if it is served.
func Served(publishWindow int, storage bool) wire.Offer {
	f := wire.FeatureCacheDelete | wire.FeatureStreamShards | wire.FeatureCacheShards | wire.FeatureShardOwners |
		wire.FeatureErrorCodes | wire.FeatureShardMoved | wire.FeatureUnsupported | wire.FeatureCacheConditional |
		wire.FeatureSubscribeQueue | wire.FeatureAckOnCommit |
		wire.FeatureIdempotentProducer | wire.FeatureSequenceReused
	if publishWindow > 0 {
		f |= wire.FeaturePublishPipeline | wire.FeatureStreamPublishWindow
	}
	if storage {
		f |= wire.FeaturePublishConditional | wire.FeatureAtomicCommit | wire.FeatureStreamRead | wire.FeatureRecordTimestamps | wire.FeatureSubscriptionLagged |
			wire.FeatureCounters | wire.FeatureCacheWatch | wire.FeatureCacheWatchRetained |
			wire.FeatureConsumerGroup | wire.FeatureGroupDeadLetters | wire.FeatureGroupConsumer | wire.FeatureGroupSkipped |
			wire.FeatureGroupPublisher | wire.FeatureGroupAdmin | wire.FeatureGroupClaimControl
	}
	return wire.Offer{Flags: wire.KnownFlags, Features: f, HasFlags: true}
}
