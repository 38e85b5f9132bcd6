package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"iter"
	"log/slog"
	"time"
)

type config struct {
	tenant, namespace, serverName, caFile, certFile, keyFile string
	token                                                    func(context.Context) (string, error)
	renewable, alpn, ackOnCommit, publishers, timestamps     bool
	roots                                                    *x509.CertPool
	tls                                                      *tls.Config
	logger                                                   *slog.Logger
	pools                                                    Pools
	windows                                                  Windows
	reconnect                                                ReconnectPolicy
	udp                                                      UDP
	maxFrame, inflightBytes                                  int
	ackTimeout, dialTimeout, keepAlive, idleTimeout          time.Duration
}

func (c *config) applyEnvironment([]string) error { return nil }

// A Client is a connection to Felix. It is safe for concurrent use.
type Client struct{}

// Dial connects to the first seed ("host:port") that answers, authenticates,
// and learns what the broker can do. Further brokers of a cluster are
// discovered. ctx bounds Dial only.
func Dial(ctx context.Context, seeds []string, opts ...Option) (*Client, error) {
	return nil, ErrClosed
}

// Close ends every call, subscription and connection at once. Publishes not
// answered yet fail with an unknown outcome, and unacknowledged ones may not
// have been sent: [Client.Drain] first where that matters. Close may be
// called more than once.
func (c *Client) Close() error { return nil }

// Drain waits until every publish so far was answered, and every
// unacknowledged one was read by the broker, then closes the client.
func (c *Client) Drain(ctx context.Context) error { return nil }

// Endpoints lists the brokers the client knows: seeds first, then discovered
// ones.
func (c *Client) Endpoints() []string { return nil }

// An Owner names the broker that owns a shard.
type Owner struct {
	NodeID     string
	Addr       string // "host:port", empty when not published
	Generation uint64 // of the assignment
}

// An Ack is the answer to an acknowledged publish.
type Ack struct {
	// Offset is that of the batch's first record, if HasOffset: record i has
	// Offset + i. Streams without a log, and acks given on acceptance, have
	// none.
	Offset    uint64
	HasOffset bool
	// Shard is the shard the client computed; zero when it is the broker's
	// to choose.
	Shard uint32
	// Owner is the shard's owner where the broker named it.
	Owner *Owner
}

// Publish sends one record and waits for its answer (unless [AckNone]).
func (c *Client) Publish(ctx context.Context, stream string, payload []byte, opts ...PublishOption) (Ack, error) {
	return Ack{}, ErrClosed
}

// PublishBatch sends records as one batch: to one shard, stored in one
// piece, answered once.
func (c *Client) PublishBatch(ctx context.Context, stream string, payloads [][]byte, opts ...PublishOption) (Ack, error) {
	return Ack{}, ErrClosed
}

// A Publisher keeps many batches of one stream in flight.
type Publisher struct{}

// Publisher gives a pipelined publisher.
func (c *Client) Publisher(stream string, opts ...PublishOption) *Publisher { return nil }

// Send hands over one batch, waiting only while the publish window or the
// bound on unanswered bytes is full. The payloads are copied. The batch is
// written when the connection is ready, together with its neighbours.
func (p *Publisher) Send(ctx context.Context, payloads ...[]byte) (*Pending, error) {
	return nil, ErrClosed
}

// SendKeyed is [Publisher.Send] with a key of its own.
func (p *Publisher) SendKeyed(ctx context.Context, key []byte, payloads ...[]byte) (*Pending, error) {
	return nil, ErrClosed
}

// SendFunc is [Publisher.Send] with a callback instead of a [Pending]. It
// runs on the goroutine that reads the answers, so it must not block.
func (p *Publisher) SendFunc(ctx context.Context, done func(Ack, error), payloads ...[]byte) error {
	return ErrClosed
}

// SendKeyedFunc is [Publisher.SendFunc] with a key of its own.
func (p *Publisher) SendKeyedFunc(ctx context.Context, key []byte, done func(Ack, error), payloads ...[]byte) error {
	return ErrClosed
}

// Flush waits until everything sent so far was answered, and returns the
// first failure since the last Flush. With [AckNone] it waits until the
// broker has read everything.
func (p *Publisher) Flush(ctx context.Context) error { return ErrClosed }

// Close flushes without bound in time and refuses further sends.
func (p *Publisher) Close() error { return nil }

// A Pending is the future answer to one batch.
type Pending struct{}

// Wait waits for the answer. When ctx ends first, the batch is still under
// way and Wait may be called again.
func (p *Pending) Wait(ctx context.Context) (Ack, error) { return Ack{}, ErrClosed }

// Done is closed when the answer is there.
func (p *Pending) Done() <-chan struct{} { return nil }

// A Start is a position to subscribe from.
type Start struct {
	kind   uint8
	offset uint64
}

// Latest starts with the next record published.
func Latest() Start { return Start{} }

// Earliest starts with the oldest record held.
func Earliest() Start { return Start{kind: 1} }

// Offset starts at the first record not yet seen.
func Offset(n uint64) Start { return Start{kind: 2, offset: n} }

// An Event is one record of a subscription.
type Event struct {
	Payload       []byte
	Offset        uint64 // if HasOffset
	HasOffset     bool
	Shard         uint32
	SkippedBefore uint64    // offsets right before that hold no record; not a loss
	Gap           uint64    // records lost right before this one
	Publisher     string    // see WithPublishers
	Time          time.Time // see WithTimestamps; zero when unknown
}

// A Subscription delivers the records of a stream. One goroutine reads it.
type Subscription struct{}

// Subscribe starts a subscription.
func (c *Client) Subscribe(ctx context.Context, stream string, opts ...SubscribeOption) (*Subscription, error) {
	return nil, ErrClosed
}

// Next waits for the next record. The payload is the caller's to keep.
// After the broker ended the subscription it returns [ErrEnded].
func (s *Subscription) Next(ctx context.Context) (Event, error) { return Event{}, ErrClosed }

// Events ranges over records until the subscription ends, ctx ends, or the
// loop is left. An error is the last pair; a clean end yields none.
func (s *Subscription) Events(ctx context.Context) iter.Seq2[Event, error] { return nil }

// NextBatch waits for the next batch, which is valid until the next call of
// Next, NextBatch or Close. It does not allocate per record or batch.
func (s *Subscription) NextBatch(ctx context.Context) (*Batch, error) { return nil, ErrClosed }

// Close ends the subscription and unblocks its reader.
func (s *Subscription) Close() error { return nil }

// Stats reads the counters.
func (s *Subscription) Stats() SubscriptionStats { return SubscriptionStats{} }

// Positions gives, for each shard with a known position, the offset of the
// next record: what [ResumeAt] takes.
func (s *Subscription) Positions() map[uint32]uint64 { return nil }

// Shards is the number of shards this subscription reads.
func (s *Subscription) Shards() int { return 0 }

// StartOffset is where the subscription began, where the broker said it.
func (s *Subscription) StartOffset(shard uint32) (uint64, bool) { return 0, false }

// LiveOffset is the first offset that was not history when the subscription
// began, where the broker said it.
func (s *Subscription) LiveOffset(shard uint32) (uint64, bool) { return 0, false }

// A Batch is a run of records of one shard, as they came in one frame.
type Batch struct {
	Shard         uint32
	BaseOffset    uint64 // of the first record, if HasOffset
	HasOffset     bool
	SkippedBefore uint64
	Gap           uint64
	Publisher     string
}

// Len is the number of records.
func (b *Batch) Len() int { return 0 }

// Bytes is the sum of the payloads.
func (b *Batch) Bytes() int { return 0 }

// Events ranges over the records. Their payloads are views, valid as long as
// the batch is.
func (b *Batch) Events() iter.Seq[Event] { return nil }

// SubscriptionStats are counters since the subscription began.
type SubscriptionStats struct {
	Records    uint64 // delivered
	Bytes      uint64 // of payload delivered
	Batches    uint64 // delivered
	Lost       uint64 // sum of gaps
	Dropped    uint64 // by the buffer policy
	Duplicates uint64 // seen before, suppressed
	Reconnects uint64 // resumed after a lost connection or stream
	Moves      uint64 // followed to another owner
	Lagged     uint64 // resumed after the broker's queue overflowed
	Reauths    uint64 // resumed after the token expired
	Losses     uint64 // jumps to the tail, see ContinueAtLatest
}

// A Cache is a handle on one cache.
type Cache struct{}

// Cache gives a handle; nothing is sent.
func (c *Client) Cache(name string, opts ...CacheOption) *Cache { return nil }

// An Entry is a value with its version.
type Entry struct {
	Value      []byte
	Version    uint64 // if HasVersion
	HasVersion bool
}

// Get reads a key. ok is false when it is absent or expired; an empty value
// is a value.
func (k *Cache) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	return nil, false, ErrClosed
}

// AppendGet is Get that appends the value to dst.
func (k *Cache) AppendGet(ctx context.Context, dst []byte, key string) (value []byte, ok bool, err error) {
	return nil, false, ErrClosed
}

// GetVersioned reads a key and its version.
func (k *Cache) GetVersioned(ctx context.Context, key string) (entry Entry, ok bool, err error) {
	return Entry{}, false, ErrClosed
}

// Put writes a key.
func (k *Cache) Put(ctx context.Context, key string, value []byte, opts ...PutOption) error {
	return ErrClosed
}

// Delete removes a key and tells the value it had, if it was there.
func (k *Cache) Delete(ctx context.Context, key string) (previous []byte, existed bool, err error) {
	return nil, false, ErrClosed
}

// A Condition guards a conditional write.
type Condition struct {
	absent  bool
	version uint64
}

// IfAbsent holds when the key has no live entry.
func IfAbsent() Condition { return Condition{absent: true} }

// IfVersion holds when the key's entry has this version.
func IfVersion(v uint64) Condition { return Condition{version: v} }

// A ConditionResult tells how a conditional write went. A condition that
// did not hold is not an error.
type ConditionResult struct {
	Applied    bool
	Version    uint64 // the new version when applied, else the current one
	HasVersion bool   // false when there is no live entry
}

// PutIf writes a key if cond holds. It is never sent twice.
func (k *Cache) PutIf(ctx context.Context, key string, value []byte, cond Condition, opts ...PutOption) (ConditionResult, error) {
	return ConditionResult{}, ErrClosed
}

// DeleteIf removes a key if it has this version. It is never sent twice.
func (k *Cache) DeleteIf(ctx context.Context, key string, version uint64) (ConditionResult, error) {
	return ConditionResult{}, ErrClosed
}

// A Broker is one broker of a cluster.
type Broker struct {
	NodeID string
	Addr   string
}

// Topology asks for the brokers of the cluster and adds them to the
// endpoints.
func (c *Client) Topology(ctx context.Context) ([]Broker, error) { return nil, ErrClosed }

// Routing is how keys of a stream map to shards (wire 14).
type Routing string

const (
	Modulo   Routing = "modulo"
	JumpHash Routing = "jump_hash"
)

// StreamShards tells the number of shards of a stream and how keys map to
// them.
func (c *Client) StreamShards(ctx context.Context, stream string, opts ...LookupOption) (shards uint32, routing Routing, err error) {
	return 0, "", ErrClosed
}

// CacheShards tells the number of shards of a cache.
func (c *Client) CacheShards(ctx context.Context, cache string, opts ...LookupOption) (uint32, error) {
	return 0, ErrClosed
}

// A Kind is what a shard belongs to.
type Kind string

const (
	KindStream Kind = "stream"
	KindCache  Kind = "cache"
)

// A ShardOwner tells who serves a shard.
type ShardOwner struct {
	Shard       uint32
	NodeID      string
	Addr        string
	Generation  uint64
	Unavailable string
}

// ShardOwners lists the owners of a stream's or cache's shards, in shard
// order.
func (c *Client) ShardOwners(ctx context.Context, kind Kind, name string, opts ...LookupOption) ([]ShardOwner, error) {
	return nil, ErrClosed
}
