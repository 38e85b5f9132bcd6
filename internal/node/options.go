package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node/session"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/wire"
)

// FileSystem is what the logs are kept in.
type FileSystem = fs.FS

// Options are what a node is started with.
type Options struct {
	// Config is a loaded configuration; its zero value is not valid.
	Config *config.Config
	// Keys verifies clients' tokens. Required.
	Keys auth.KeySource
	// Certificate, if set, is presented instead of the files of Config.TLS.
	Certificate *tls.Certificate
	// ResetKey, if kept across restarts, tells clients of the process before
	// a restart at once that their connection is gone.
	ResetKey *[32]byte
	// Clock is the time that counts for token expiry, TTLs and quotas; nil is
	// the machine's.
	Clock Clock
	// FileSystem holds the logs; nil is the operating system's. For tests.
	FileSystem FileSystem
	// Directory knows the other brokers and who serves which shard; nil is a node
	// that stands alone.
	Directory session.Directory
	// Create makes a stream or cache where the catalog is kept, before it appears
	// on first use; nil lets it appear on this node alone.
	Create session.Creator
	// Cluster tells the metrics what is known of the control plane; nil is a node
	// that follows none.
	Cluster func() telemetry.ClusterSnapshot
	// BeforeDrain is called by Shutdown once /ready says that the node is
	// draining, while clients are still served as before: a member of a cluster
	// hands its shards over (broker 12.2, step 2). Its ctx is that of Shutdown.
	BeforeDrain func(ctx context.Context)
	// AfterDrain is called by Shutdown when clients are gone and logs closed,
	// before the HTTP listener stops: a member deregisters (step 7). Its ctx ends
	// after five seconds, whatever is left of the drain budget.
	AfterDrain func(ctx context.Context)
	// Logger receives what an operator should know; nil is silent.
	Logger *slog.Logger
	// Version is reported by the metrics.
	Version string
}

func (o *Options) validate() error {
	switch {
	case o.Config == nil:
		return errors.New("node needs a configuration")
	case o.Keys == nil:
		return errors.New("node needs a source of token keys")
	}
	return nil
}

// coreConfig sizes the broker core (broker 14.1).
func coreConfig(c *config.Config, store *storage.Store, logger *slog.Logger, onPanic func(any, []byte)) broker.Config {
	p := &c.Publish
	quotas := make(map[string]admission.Quota, len(c.Tenants.Quotas))
	for _, q := range c.Tenants.Quotas {
		quotas[q.Tenant] = admission.Quota{BytesPerSec: int64(q.BytesPerSec), MessagesPerSec: int64(q.MsgsPerSec)}
	}
	return broker.Config{
		Storage:                store,
		Random:                 randomSeed,
		Schedule:               schedule.Config{Executors: p.Workers, Share: p.QueueDepth, OnPanic: onPanic},
		QueueWait:              p.QueueWait,
		InflightBytes:          int64(p.InflightBytes),
		ConnInflightBytes:      int64(p.ConnInflightBytes),
		ConnTotalInflightBytes: int64(p.ConnTotalInflightBytes),
		Quota:                  admission.Quota{BytesPerSec: int64(c.Tenants.BytesPerSec), MessagesPerSec: int64(c.Tenants.MsgsPerSec)},
		Quotas:                 quotas,
		QuotaBurst:             c.Tenants.Burst,
		Streams: stream.Config{
			RingRecords:      p.RingRecords,
			RingBytes:        int64(p.RingBytes),
			QueueCapacity:    c.Subscribe.QueueCapacity,
			QueueCapacityMax: c.Subscribe.QueueCapacityMax,
			QueueBytes:       int64(c.Subscribe.QueueMaxBytes),
			QueuePolicy:      queuePolicy(c.Subscribe.QueuePolicy),
			Encoder:          session.Encoder{},
			Retention:        streamRetention(&c.Storage),
		},
		Caches: cache.Config{
			MaxBytes: int64(c.Cache.MaxBytes), MaxEntries: int64(c.Cache.MaxEntries), Seed: randomSeed(),
			Storage: store, CompactionRate: compactionRate(c), WatchQueue: c.Cache.WatchQueueCapacity, Logger: logger,
		},
		Groups: queue.Config{
			Visibility: c.Groups.Visibility, MaxVisibility: c.Groups.MaxVisibility, MaxWait: c.Groups.MaxWait,
			MaxAttempts: uint32(c.Groups.MaxAttempts), MaxInFlight: c.Groups.MaxInFlight,
			CompactionRate: compactionRate(c), Logger: logger,
		},
	}
}

// compactionRate is what compaction may copy a second; the core writes no
// bound as a negative one.
func compactionRate(c *config.Config) int64 {
	if c.Storage.CompactionBytesPerSec == 0 {
		return -1
	}
	return int64(min(c.Storage.CompactionBytesPerSec, math.MaxInt64))
}

func queuePolicy(p config.QueuePolicy) stream.QueuePolicy {
	switch p {
	case config.DropOld:
		return stream.DropOld
	case config.Block:
		return stream.Block
	default:
		return stream.DropNew
	}
}

// sessionConfig bounds the client protocol (broker 2, 6, 7; wire 18).
func sessionConfig(o *Options, ports []uint16) session.Config {
	c, directory := o.Config, o.Directory
	offer := session.Served(c.Publish.Window, c.Storage.Dir != "")
	if directory != nil {
		offer.Features |= wire.FeatureTopology | wire.FeatureRedirect
	}
	return session.Config{
		MaxFrameBytes:        c.Sessions.MaxFrameBytes,
		PreauthMaxFrameBytes: c.Sessions.PreauthMaxFrameBytes,
		PreauthMaxStreams:    c.Sessions.PreauthMaxStreamsPerConn,
		AuthTimeout:          c.Sessions.AuthTimeout,
		FrameReadTimeout:     session.DefaultFrameReadTimeout,
		ReplyWriteTimeout:    session.DefaultReplyWriteTimeout,
		PublishWindow:        c.Publish.Window,
		MaxOutstanding:       session.DefaultMaxOutstanding,
		QueueWait:            c.Publish.QueueWait,
		AckOnCommit:          c.Publish.AckOnCommit,
		RecordPublishers:     c.Storage.RecordPublishers,
		IngressWait:          c.Publish.IngressWait,
		AckWait:              c.Publish.AckWait,
		EventMaxEvents:       c.Subscribe.BatchMaxEvents,
		EventMaxBytes:        c.Subscribe.BatchMaxBytes,
		EventMaxDelay:        c.Subscribe.BatchMaxDelay,
		SingleEvent:          c.Subscribe.FanoutBatch <= 1,
		MaxBytesPerSend:      c.Subscribe.MaxBytesPerWrite,
		MaxSubscriptions:     c.Subscribe.MaxPerIdentity,
		MaxSubscriptionsAll:  c.Subscribe.MaxPerConnectionTotal,
		WatchQueue:           c.Cache.WatchQueueCapacity,
		MaxReadRecords:       c.Storage.MaxRecordsPerRead,
		Storage:              c.Storage.Dir != "",
		EnforceExpiry:        c.Sessions.EnforceExpiry,
		BindSubject:          c.TLS.BindSubject,
		ListenerPorts:        ports,
		AutoCreate:           c.Catalog.AutoCreate,
		AutoCreateLimit:      c.Catalog.AutoCreateLimit,
		Create:               o.Create,
		ControlDrain:         c.Sessions.ControlStreamDrain,
		Directory:            directory,
		Offer:                offer,
	}
}
