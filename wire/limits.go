package wire

// Limits and defaults of the protocol (wire 2.5, 4, 9, 10, 12, 18). Those that a
// configuration may change say "default"; the others are part of the format.
const (
	// MaxFramePayload is the default cap on a frame's payload in bytes, for
	// brokers and for clients. A broker keeps event frames below it.
	MaxFramePayload = 16 << 20
	// MaxPreauthFramePayload is the default cap, in bytes, on a stream that has
	// not authenticated yet.
	MaxPreauthFramePayload = 64 << 10
	// MaxPreauthStreams is the default number of unauthenticated streams a
	// broker reads at once on one connection.
	MaxPreauthStreams = 16
	// MaxConnections is the default number of client connections of a broker.
	MaxConnections = 8192
	// AuthTimeoutMS is the default time for a connection's first authentication.
	AuthTimeoutMS = 10_000

	// MaxShortBytes is the longest key, name, message or reason of a binary
	// layout, in bytes: its length is a u16.
	MaxShortBytes = 1<<16 - 1
	// MaxPublisher is the longest publisher of an event batch, in bytes.
	MaxPublisher = 255
	// MaxAckMessage is where the message of a binary ack is cut, in bytes.
	MaxAckMessage = 512
	// MaxTenantID is the longest tenant_id of an auth message, in bytes.
	MaxTenantID = 256
	// MaxName is the longest tenant, namespace, stream, cache, group or
	// consumer name, in bytes.
	MaxName = 253
	// MaxCacheKey is the longest cache key, in bytes.
	MaxCacheKey = 1<<16 - 1
	// MaxNesting is how deep a JSON value may nest that a decoder skips or keeps raw.
	MaxNesting = 64

	// MaxPollRecords is the most records one group_poll returns.
	MaxPollRecords = 1000
	// MaxPollBytes is about where one group_poll stops adding payloads.
	MaxPollBytes = 4 << 20
	// MaxPollWaitMS is the default cap on wait_ms of group_poll.
	MaxPollWaitMS = 30_000
	// MaxGroupInFlight is the default number of claims of one group and shard.
	MaxGroupInFlight = 10_000
	// DefaultVisibilityMS is the default visibility timeout of a claim.
	DefaultVisibilityMS = 30_000
	// MaxClaimMS caps visibility_ms, delay_ms and extend_ms: 12 hours.
	MaxClaimMS = 12 * 3600 * 1000
	// MaxReadBytes caps the payloads of one stream_read page.
	MaxReadBytes = 4 << 20

	// MaxSubscriptions is the default number of subscriptions plus watches of
	// one connection.
	MaxSubscriptions = 4096
	// DefaultQueueCapacity is the default queue of a subscriber, in batches.
	DefaultQueueCapacity = 512
	// MaxQueueCapacity is the default cap on queue_capacity, in batches.
	MaxQueueCapacity = 4096
	// DefaultWatchQueue is the queue of a cache watch, in changes.
	DefaultWatchQueue = 1024
	// MaxPendingEventStreams is how many event streams a client holds whose
	// subscription has not been answered yet.
	MaxPendingEventStreams = 16_384
	// MaxEventBatchEvents and MaxEventBatchBytes are the default size of an
	// event batch at which it is sent.
	MaxEventBatchEvents = 64
	MaxEventBatchBytes  = 64 << 10

	// DefaultPublishWindow is the default number of unanswered publishes of a
	// pipelined stream.
	DefaultPublishWindow = 256
	// MaxConnectionPublishBytes and MaxProcessPublishBytes are the default
	// publish bytes in flight of one connection and of a broker.
	MaxConnectionPublishBytes = 16 << 20
	MaxProcessPublishBytes    = 64 << 20
	// DefaultPublishQueue is the default publish queue of a tenant, in batches.
	DefaultPublishQueue = 512
	// MaxProducerBatches and MaxProducers are what a shard remembers of
	// idempotent producers: batches of each, and producers.
	MaxProducerBatches = 64
	MaxProducers       = 4096
	// MaxClientUnackedBytes is the default of a client's unanswered publishes.
	MaxClientUnackedBytes = 4 << 20
	// ClientAckTimeoutMS is how long a client waits for an ack before it gives
	// the stream up.
	ClientAckTimeoutMS = 30_000

	// DefaultListLimit and MaxListLimit are the page of subscriptions_list.
	DefaultListLimit = 100
	MaxListLimit     = 1000
)
