package wire

// Features is the first word of feature bits (wire 5.2).
type Features uint32

// The first word (wire 5.2). A broker's bit says that it serves the request; a
// client's bit says that it reads the message or field.
const (
	FeatureTopology            Features = 1 << 0
	FeatureRedirect            Features = 1 << 1
	FeatureCacheDelete         Features = 1 << 2
	FeatureConsumerGroup       Features = 1 << 3
	FeatureGroupDeadLetters    Features = 1 << 4
	FeatureStreamShards        Features = 1 << 5
	FeatureCacheWatch          Features = 1 << 6
	FeatureCacheWatchRetained  Features = 1 << 7
	FeatureCounters            Features = 1 << 8
	FeatureIdempotentProducer  Features = 1 << 9
	FeatureCacheShards         Features = 1 << 10
	FeatureErrorCodes          Features = 1 << 11
	FeatureShardMoved          Features = 1 << 12
	FeatureUnsupported         Features = 1 << 13
	FeatureSequenceReused      Features = 1 << 14
	FeaturePublishPipeline     Features = 1 << 15
	FeatureAtomicCommit        Features = 1 << 16
	FeatureStreamPublishWindow Features = 1 << 17
	FeatureShardOwners         Features = 1 << 18
	FeatureAckOnCommit         Features = 1 << 19
	FeatureGroupConsumer       Features = 1 << 20
	FeatureSubscriptionLagged  Features = 1 << 21
	FeatureGroupSkipped        Features = 1 << 22
	FeatureGroupPublisher      Features = 1 << 23
	FeatureGroupAdmin          Features = 1 << 24
	FeatureCacheConditional    Features = 1 << 25
	FeatureRecordTimestamps    Features = 1 << 26
	FeatureGroupClaimControl   Features = 1 << 27
	FeaturePublishConditional  Features = 1 << 28
	FeatureStreamRead          Features = 1 << 29
	FeatureSubscribeQueue      Features = 1 << 30
	// FeatureExtended marks that a second word follows; it is no feature.
	FeatureExtended Features = 1 << 31

	// KnownFeatures is every feature of the first word, without the marker.
	KnownFeatures Features = 1<<31 - 1
)

// FeaturesHi is the second word of feature bits (wire 5.3).
type FeaturesHi uint32

const (
	// FeatureInspect: the broker answers shard_inspect and subscriptions_list.
	FeatureInspect FeaturesHi = 1 << 0

	// KnownFeaturesHi is every feature of the second word.
	KnownFeaturesHi = FeatureInspect
)
