package stream

import (
	"fmt"
	"time"
)

// MaxShards bounds the shards of one stream.
const MaxShards = 65536

// A Clock tells the time. Offsets of a shard without a log start at the
// clock's wall microseconds, and a subscription's age is counted from it.
type Clock interface {
	Now() time.Time
}

// A Name is the full name of a stream.
type Name struct {
	Tenant, Namespace, Name string
}

func (n Name) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Name }

// Options describe one stream. They do not change while it is registered.
type Options struct {
	// Shards is the number of logs the stream is split into; 0 means 1.
	Shards uint32
	// Routing is the key-to-shard mapping, opaque to the broker: it is kept
	// for whoever routes keys.
	Routing uint8
	// Durable asks for a log under the shards.
	Durable bool
	// Retention bounds what the logs keep. It is the one option that changes
	// while the stream is registered ([Stream.SetRetention]).
	Retention Retention
	// QueuePolicy is that of subscriptions which name none; DefaultPolicy
	// leaves it to the [Config].
	QueuePolicy QueuePolicy
	// UID is which creation of the name this is (control plane 4.4); it is
	// written beside the logs, and logs of another one are refused. Empty:
	// nobody knows, and nothing is checked.
	UID string
	// Placed has shards served only while they are assigned
	// ([Stream.Assign]); otherwise all are served at once.
	Placed bool
	// Copies is how many brokers are to keep each shard; 0 means 1. With more
	// no shard is served: they would not be kept.
	Copies uint32
}

// A QueuePolicy says what happens to a batch that finds a subscription's
// queue full (broker 7.4).
type QueuePolicy uint8

const (
	// DefaultPolicy is the policy of the [Config].
	DefaultPolicy QueuePolicy = iota
	// DropNew discards the arriving batch for that subscription and counts it.
	DropNew
	// DropOld is accepted, counted apart, and acts as DropNew.
	DropOld
	// Block holds the publish's completion, and with it the shard's lane,
	// until the queue has room. Every other subscription gets the batch first.
	Block
)

func (p QueuePolicy) String() string {
	switch p {
	case DefaultPolicy:
		return "default"
	case DropNew:
		return "drop_new"
	case DropOld:
		return "drop_old"
	case Block:
		return "block"
	}
	return fmt.Sprintf("QueuePolicy(%d)", uint8(p))
}

// ParseQueuePolicy reads the word of a policy: drop_new, drop_old or block.
func ParseQueuePolicy(word string) (QueuePolicy, error) {
	for _, p := range []QueuePolicy{DropNew, DropOld, Block} {
		if p.String() == word {
			return p, nil
		}
	}
	return DefaultPolicy, fmt.Errorf("unknown queue policy %q: want drop_new, drop_old or block", word)
}

// Defaults of a [Config].
const (
	DefaultRingRecords      = 1024
	DefaultRingBytes        = 64 << 20
	DefaultQueueCapacity    = 512
	DefaultQueueCapacityMax = 4096
	DefaultQueueBytes       = 256 << 20
	DefaultPoolBytes        = 64 << 20
	DefaultPageBytes        = 1 << 20
)

// Config holds what all streams of one broker share. A number of zero or less
// means its default.
type Config struct {
	// RingRecords is how many of its newest records a shard keeps for
	// subscriptions that start in the past. Whole batches are kept, so a
	// shard may hold up to one batch more.
	RingRecords int
	// RingBytes bounds the ring's buffers in bytes; it wins over RingRecords.
	RingBytes int64
	// QueueCapacity is a subscription's queue in batches where it asks for
	// none, and QueueCapacityMax the most it may ask for.
	QueueCapacity, QueueCapacityMax int
	// QueueBytes bounds the buffers waiting for one subscription, in bytes.
	QueueBytes int64
	// QueuePolicy is used where a subscription names none; DefaultPolicy
	// means DropNew.
	QueuePolicy QueuePolicy
	// PoolBytes bounds the idle buffers kept for reuse.
	PoolBytes int64
	// PageBytes is how much of a log a replay reads at once.
	PageBytes int
	// Logs opens the logs of durable streams; nil where there is no storage.
	Logs Logs
	// Release is called in the background for each shard of a durable stream
	// that serves no longer, before its log is closed: for what others keep
	// beside it. It may wait for that to be closed. Nil does nothing.
	Release func(sh *Shard, cause error)
	// Retention is what logs keep where their stream has no bound of its own.
	Retention Retention
	// Encoder writes event frames; nil makes the bare block the frame.
	Encoder Encoder
	// OffsetBase gives the first offset of a new shard; nil means the wall
	// microseconds of the clock, so that a cursor of an earlier run is too
	// old rather than pointing at other bytes.
	OffsetBase func(stream Name, shard uint32) uint64
}

func (c Config) withDefaults() Config {
	setDefault(&c.RingRecords, DefaultRingRecords)
	setDefault(&c.RingBytes, DefaultRingBytes)
	setDefault(&c.QueueCapacityMax, DefaultQueueCapacityMax)
	setDefault(&c.QueueCapacity, DefaultQueueCapacity)
	c.QueueCapacityMax = max(c.QueueCapacityMax, c.QueueCapacity)
	setDefault(&c.QueueBytes, DefaultQueueBytes)
	setDefault(&c.PoolBytes, DefaultPoolBytes)
	setDefault(&c.PageBytes, DefaultPageBytes)
	if c.QueuePolicy == DefaultPolicy {
		c.QueuePolicy = DropNew
	}
	if c.Encoder == nil {
		c.Encoder = bareBlock{}
	}
	return c
}

func setDefault[T int | int64](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}
