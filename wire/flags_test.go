package wire

import (
	"errors"
	"testing"
)

// TestFlagCombinations holds every value of the flags field against the list of
// legal combinations.
func TestFlagCombinations(t *testing.T) {
	legal := map[Flags]FrameKind{0: FrameJSON}
	for _, f := range []Flags{0x0001, 0x0041, 0x0009, 0x0049, 0x0109, 0x0149} {
		legal[f] = FramePublish
	}
	for _, f := range []Flags{0x0010, 0x0090, 0x1010, 0x1090} { // success
		legal[f] = FrameAck
	}
	for _, f := range []Flags{0x0010, 0x0210, 0x0610} { // failure
		legal[f] = FrameAck
		legal[f|0x0080] = FrameAck
	}
	for _, base := range []Flags{0x0002, 0x0004} {
		for _, offsets := range []Flags{0, 0x0020, 0x0820} {
			for _, publisher := range []Flags{0, 0x2000} {
				for _, times := range []Flags{0, 0x4000} {
					legal[base|offsets|publisher|times] = FrameEvents
				}
			}
		}
	}
	counts := map[FrameKind]int{}
	for i := range 1 << 16 {
		f := Flags(i)
		kind := f.Kind()
		if kind != legal[f] {
			t.Errorf("%#04x: kind %d, want %d", i, kind, legal[f])
		}
		counts[kind]++
		if kind != FramePublish && !errors.Is(ParsePublish(f, nil, new(Publish)), ErrFlags) {
			t.Errorf("%#04x read as a publish", i)
		}
		if kind != FrameAck && !errors.Is(ParseAck(f, nil, new(Ack)), ErrFlags) {
			t.Errorf("%#04x read as an ack", i)
		}
		if kind != FrameEvents && !errors.Is(ParseEventBatch(f, nil, new(EventBatch)), ErrFlags) {
			t.Errorf("%#04x read as events", i)
		}
	}
	if counts[FramePublish] != 6 || counts[FrameAck] != 8 || counts[FrameEvents] != 24 || counts[FrameJSON] != 1 {
		t.Errorf("combinations: %v", counts)
	}
}

func TestFlagConstants(t *testing.T) {
	bits := []Flags{
		FlagPublishBatch, FlagEventBatch, FlagEventBatchShared, FlagPublishAcked, FlagPublishAck,
		FlagEventOffsets, FlagPublishKeyed, FlagAckOwner, FlagPublishIdempotent, FlagAckCode,
		FlagAckDetail, FlagEventSkipped, FlagAckOffset, FlagEventPublisher, FlagEventTimestamps,
	}
	var all Flags
	for i, f := range bits {
		if f != 1<<i {
			t.Errorf("bit %d is %#04x", i, uint16(f))
		}
		all |= f
	}
	if all != KnownFlags || OriginalFlags != 7 {
		t.Errorf("known %#04x, original %#04x", uint16(all), uint16(OriginalFlags))
	}
}

func TestFeatureConstants(t *testing.T) {
	// The order of wire 5.2.
	words := []Features{
		FeatureTopology, FeatureRedirect, FeatureCacheDelete, FeatureConsumerGroup,
		FeatureGroupDeadLetters, FeatureStreamShards, FeatureCacheWatch, FeatureCacheWatchRetained,
		FeatureCounters, FeatureIdempotentProducer, FeatureCacheShards, FeatureErrorCodes,
		FeatureShardMoved, FeatureUnsupported, FeatureSequenceReused, FeaturePublishPipeline,
		FeatureAtomicCommit, FeatureStreamPublishWindow, FeatureShardOwners, FeatureAckOnCommit,
		FeatureGroupConsumer, FeatureSubscriptionLagged, FeatureGroupSkipped, FeatureGroupPublisher,
		FeatureGroupAdmin, FeatureCacheConditional, FeatureRecordTimestamps, FeatureGroupClaimControl,
		FeaturePublishConditional, FeatureStreamRead, FeatureSubscribeQueue, FeatureExtended,
	}
	var all Features
	for i, f := range words {
		if f != 1<<i {
			t.Errorf("bit %d is %#08x", i, uint32(f))
		}
		all |= f
	}
	if all != KnownFeatures|FeatureExtended || KnownFeaturesHi != 1 {
		t.Errorf("known %#08x, second word %#08x", uint32(all), uint32(KnownFeaturesHi))
	}
}
