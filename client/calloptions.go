package client

import "time"

// An AckMode says which answer a publish waits for (wire 9.1).
type AckMode uint8

const (
	// AckNone: no answer at all. The record may be dropped by an overloaded
	// broker, and nobody is told.
	AckNone AckMode = 0
	// AckPerMessage: one answer per request. The default of Publish.
	AckPerMessage AckMode = 1
	// AckPerBatch: one answer per batch. The default of PublishBatch and of
	// a Publisher.
	AckPerBatch AckMode = 2
)

// String is the mode's name on the wire.
func (m AckMode) String() string {
	switch m {
	case AckNone:
		return "none"
	case AckPerMessage:
		return "per_message"
	default:
		return "per_batch"
	}
}

// A PublishOption configures a publish call or a [Publisher].
type PublishOption interface {
	applyPublish(publishOptions) publishOptions
}

// A SubscribeOption configures a subscription.
type SubscribeOption interface {
	applySubscribe(subscribeOptions) subscribeOptions
}

// A CacheOption configures the handle that [Client.Cache] gives.
type CacheOption interface {
	applyCache(cacheOptions) cacheOptions
}

// A PutOption configures a cache write.
type PutOption interface {
	applyPut(putOptions) putOptions
}

// A LookupOption configures a discovery call.
type LookupOption interface {
	applyLookup(lookupOptions) lookupOptions
}

type publishOptions struct {
	namespace   string
	key         []byte
	keyed       bool
	ack         AckMode
	ackSet      bool
	atLeastOnce bool
}

type subscribeOptions struct {
	namespace string
	start     Start
	shard     uint32
	allShards bool
	resume    map[uint32]uint64
	capacity  uint32
	buffer    int
	bufferSet bool
	policy    BufferPolicy
	atLatest  bool
}

type cacheOptions struct{ namespace string }

type putOptions struct {
	ttl    time.Duration
	ttlSet bool
}

type lookupOptions struct{ namespace string }

// A NamespaceOption is what [InNamespace] gives; it fits every call that
// names a stream or cache.
type NamespaceOption string

// InNamespace makes a call name its stream or cache in another namespace
// than the client's ([WithNamespace]).
func InNamespace(namespace string) NamespaceOption { return NamespaceOption(namespace) }

func (n NamespaceOption) applyPublish(o publishOptions) publishOptions {
	o.namespace = string(n)
	return o
}

func (n NamespaceOption) applySubscribe(o subscribeOptions) subscribeOptions {
	o.namespace = string(n)
	return o
}

func (n NamespaceOption) applyCache(o cacheOptions) cacheOptions {
	o.namespace = string(n)
	return o
}

func (n NamespaceOption) applyLookup(o lookupOptions) lookupOptions {
	o.namespace = string(n)
	return o
}

type keyOption []byte

func (k keyOption) applyPublish(o publishOptions) publishOptions {
	o.key, o.keyed = k, true
	return o
}

// WithKey routes the records by key: equal keys go to one shard and keep
// their order. An empty key is a key. Records without one go to shard 0.
func WithKey(key []byte) PublishOption { return keyOption(key) }

// WithAck sets the acknowledgement mode.
func WithAck(mode AckMode) PublishOption { return ackOption(mode) }

type ackOption AckMode

func (a ackOption) applyPublish(o publishOptions) publishOptions {
	o.ack, o.ackSet = AckMode(a), true
	return o
}

// WithAtLeastOnce sends a publish again when its outcome is unknown or when
// the broker asks to retry. A record may then be stored twice, and a batch
// sent again may end up behind later ones.
func WithAtLeastOnce() PublishOption { return atLeastOnceOption{} }

type atLeastOnceOption struct{}

func (atLeastOnceOption) applyPublish(o publishOptions) publishOptions {
	o.atLeastOnce = true
	return o
}

type subscribeOption func(subscribeOptions) subscribeOptions

func (f subscribeOption) applySubscribe(o subscribeOptions) subscribeOptions { return f(o) }

// From sets where a subscription starts. The default is [Latest].
func From(start Start) SubscribeOption {
	return subscribeOption(func(o subscribeOptions) subscribeOptions { o.start = start; return o })
}

// Shard subscribes to one shard. The default is shard 0, where records
// without a key go.
func Shard(shard uint32) SubscribeOption {
	return subscribeOption(func(o subscribeOptions) subscribeOptions {
		o.shard, o.allShards = shard, false
		return o
	})
}

// AllShards subscribes to every shard of the stream and merges their
// records. Order is kept within a shard, not across shards.
func AllShards() SubscribeOption {
	return subscribeOption(func(o subscribeOptions) subscribeOptions { o.allShards = true; return o })
}

// ResumeAt subscribes to every shard, each named one at its offset: the
// first record not yet seen, as [Subscription.Positions] reports. Shards not
// named start where [From] says.
func ResumeAt(positions map[uint32]uint64) SubscribeOption {
	return subscribeOption(func(o subscribeOptions) subscribeOptions {
		o.resume, o.allShards = positions, true
		return o
	})
}

// QueueCapacity asks the broker for a queue of n batches for this
// subscription. Brokers clamp it, and those that do not know the request
// make the call fail with [ErrUnsupported].
func QueueCapacity(n uint32) SubscribeOption {
	return subscribeOption(func(o subscribeOptions) subscribeOptions { o.capacity = n; return o })
}

// A BufferPolicy says what happens to a batch that finds a subscription's
// buffer full.
type BufferPolicy uint8

const (
	// Block leaves the batch on the connection, where flow control slows the
	// broker's feeder down: nothing is lost here.
	Block BufferPolicy = iota
	// DropNew drops the arriving batch.
	DropNew
	// DropOld drops the oldest buffered batch.
	DropOld
)

// Buffer reads ahead of the application by up to n batches. Without it a
// subscription to one shard reads its stream only as the application takes
// records, and one to all shards reads one batch ahead per shard. With a
// dropping policy live records are dropped when the buffer is full, counted
// in [SubscriptionStats.Dropped] and, where offsets are known, seen in
// [Event.Gap]; history is never dropped.
func Buffer(n int, policy BufferPolicy) SubscribeOption {
	return subscribeOption(func(o subscribeOptions) subscribeOptions {
		o.buffer, o.bufferSet, o.policy = n, true, policy
		return o
	})
}

// ContinueAtLatest lets a subscription whose position was lost (no offsets,
// as on streams without a log) carry on with new records, instead of ending
// with a [*SubscriptionLostError]. Each such jump is counted in
// [SubscriptionStats.Losses].
func ContinueAtLatest() SubscribeOption {
	return subscribeOption(func(o subscribeOptions) subscribeOptions { o.atLatest = true; return o })
}

// WithTTL makes a cache entry expire after d, which must be positive and is
// rounded up to whole milliseconds. Without it an entry does not expire.
func WithTTL(d time.Duration) PutOption { return ttlOption(d) }

type ttlOption time.Duration

func (d ttlOption) applyPut(o putOptions) putOptions {
	o.ttl, o.ttlSet = time.Duration(d), true
	return o
}
