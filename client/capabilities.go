package client

import "github.com/felixlog/felix/wire"

// capabilities are what a broker answered to the authentication of a stream
// (wire 5). They never change once made.
type capabilities struct {
	wire.Offer
	// window is the granted publish window, zero without one; per stream or
	// per connection (wire 9.5).
	window          int
	windowPerStream bool
	// ports are all UDP ports of the broker (wire 2.6).
	ports []uint16
	// ackBatch is how many acks of a group the broker takes in one request;
	// 0 where it takes them one by one.
	ackBatch int
}

// maxWindow is the largest window believed.
const maxWindow = 1 << 20

func capabilitiesOf(m *wire.AuthOK) *capabilities {
	c := &capabilities{Offer: m.Offer(), ports: m.ListenerPorts, ackBatch: int(min(m.GroupAckBatch, wire.MaxAckBatch))}
	if c.Has(wire.FeaturePublishPipeline) {
		c.window = int(min(m.PublishWindow.Or(0), maxWindow))
		c.windowPerStream = c.Has(wire.FeatureStreamPublishWindow)
	}
	return c
}

// require is an [*UnsupportedError] unless the broker advertises f.
func (c *capabilities) require(f wire.Features, name, addr string) error {
	if c.Has(f) {
		return nil
	}
	return &UnsupportedError{Feature: name, Broker: addr}
}

// offer is what this client says it reads (wire 5.5): what the original's
// client offers, and what the application asked for.
func (c *config) offer() wire.Offer {
	o := wire.Offer{
		Flags:      wire.KnownFlags &^ (wire.FlagEventPublisher | wire.FlagEventTimestamps),
		Features:   wire.KnownFeatures &^ (wire.FeatureAckOnCommit | wire.FeatureGroupPublisher | wire.FeatureRecordTimestamps),
		FeaturesHi: wire.KnownFeaturesHi,
		HasFlags:   true,
	}
	if c.publishers {
		o.Flags |= wire.FlagEventPublisher
		o.Features |= wire.FeatureGroupPublisher
	}
	if c.timestamps {
		o.Flags |= wire.FlagEventTimestamps
		o.Features |= wire.FeatureRecordTimestamps
	}
	if c.ackOnCommit {
		o.Features |= wire.FeatureAckOnCommit
	}
	return o
}
