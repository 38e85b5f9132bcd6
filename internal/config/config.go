// Package config is the configuration of a broker: one struct, one table.
//
// [Config] holds the values, grouped by what they govern. The table returned
// by [Config.Settings] binds every value to its YAML key, its environment
// variable, its flag, its default, its bounds and one sentence of help; the
// loader, the printer, the command line and the reference page
// docs/configuration.md are all read off that table, so they cannot differ.
//
// A value is taken from the first of: flag, environment, YAML file, default.
// Nothing is corrected silently: a value that does not parse or lies outside
// its bounds, an unknown key and a combination that cannot work are errors
// that say what was given, where, and what is allowed.
package config

import "time"

// Config is the configuration of one broker. Load builds it; a zero Config is
// not valid. Byte counts are in bytes.
type Config struct {
	Listen    Listen
	TLS       TLS
	Sessions  Sessions
	Catalog   Catalog
	Cluster   Cluster
	Publish   Publish
	Tenants   Tenants
	Subscribe Subscribe
	Cache     Cache
	Groups    Groups
	Storage   Storage
	Shutdown  Shutdown
	Process   Process
}

// Listen holds the sockets of a broker and what they accept.
type Listen struct {
	QUICBind            string        // host:port of the first client listener
	QUICListeners       int           // consecutive UDP ports, 1 or more
	MetricsBind         string        // host:port of the HTTP listener
	PProf               bool          // serve /debug/pprof on the HTTP listener
	MaxConnections      int           // client connections, all listeners together
	MaxConnectionsPerIP int           // per source address; 0 is unlimited
	ConnRecvWindow      int           // QUIC receive window of a client connection
	StreamRecvWindow    int           // QUIC receive window of a stream
	KeepAlive           time.Duration // interval of PINGs on a silent connection
	MaxIdleTimeout      time.Duration // a connection silent for this long is closed
	UDPSendBuffer       int           // SO_SNDBUF asked for
	UDPRecvBuffer       int           // SO_RCVBUF asked for
	UDPGRO              bool          // receive coalesced datagrams where the kernel can
	UDPPoll             time.Duration // longest poll of the socket before parking; 0 never polls
}

// TLS holds the certificate of the client listeners and what is asked of
// clients.
type TLS struct {
	CertFile    string // PEM chain; empty for a self-signed certificate
	KeyFile     string // PEM key; set exactly when CertFile is
	ClientCA    string // PEM bundle; empty asks clients for no certificate
	BindSubject bool   // the token's subject must match the client's certificate
	RequireCert bool   // refuse clients without a certificate
	RequireALPN bool   // refuse clients that offer no ALPN
	CertExport  string // where the self-signed certificate is written; empty nowhere
}

// Sessions holds the limits of client connections and their frames.
type Sessions struct {
	MaxFrameBytes            int           // payload cap of one frame
	PreauthMaxFrameBytes     int           // the same before a stream has authenticated
	PreauthMaxStreamsPerConn int           // unauthenticated streams read at once
	AuthTimeout              time.Duration // 0: a connection may stay unauthenticated
	EnforceExpiry            bool          // a stream's rights end with its token
	ControlStreamDrain       time.Duration // how long a closing stream may flush
}

// Catalog says where streams and caches come from.
type Catalog struct {
	File            string // YAML catalog of tenants, streams and caches; empty for none
	AutoCreate      bool   // streams and caches appear on first use
	AutoCreateLimit int    // how many may appear so, all tenants together
}

// Cluster holds the control plane that says what is served, and what this
// broker is among others.
type Cluster struct {
	URL              string // of the control plane, several separated by commas; empty: none
	CAFile           string // PEM bundle; empty: the system's authorities alone
	SyncInterval     time.Duration
	NodeID           string // empty: the broker stands alone
	AdvertiseAddr    string // ip:port for other brokers
	ClientAddr       string // ip:port for clients; empty is offered to none
	Region           string
	Zone             string
	Labels           map[string]string // nil for none
	MaxShards        int               // 0 is no bound
	Weight           int
	Token            string // a secret
	TokenFile        string
	RefreshTokenFile string
}

// Publish holds the budgets between a publisher and the log.
type Publish struct {
	AckOnCommit            bool          // in-memory streams: acknowledge once applied
	QueueWait              time.Duration // deadline of a publish that waits for room
	AckWait                time.Duration // an answer owed for longer is given as unknown
	Workers                int           // executors that run queued batches
	QueueDepth             int           // slots guaranteed to each tenant
	InflightBytes          int           // payload bytes in flight in the process
	ConnInflightBytes      int           // the same for one identity on one connection
	ConnTotalInflightBytes int           // the same for one connection
	Window                 int           // pipelined publishes per stream; 0 grants none
	IngressWait            bool          // unacked publishes wait for room instead of being shed
	RingRecords            int           // records a shard keeps for replay
	RingBytes              int           // bytes a shard keeps for replay
}

// Tenants holds the publish quotas and the bound on tenant-labelled metrics.
type Tenants struct {
	BytesPerSec uint64        // default quota; 0 is unlimited
	MsgsPerSec  uint64        // default quota; 0 is unlimited
	Burst       time.Duration // bucket size as time at the full rate
	Quotas      []TenantQuota // overrides, sorted by tenant
	MetricsMax  int           // tenants with series of their own
}

// A TenantQuota overrides the default quota for one tenant; 0 is unlimited.
type TenantQuota struct {
	Tenant      string
	BytesPerSec uint64
	MsgsPerSec  uint64
}

// Subscribe holds the batching and the queues between the log and a
// subscriber.
type Subscribe struct {
	BatchMaxEvents        int
	BatchMaxBytes         int
	BatchMaxDelay         time.Duration // 0 never waits
	FanoutBatch           int           // 1 is one event a frame, sent at once
	QueueCapacity         int           // batches
	QueueCapacityMax      int           // the most a client may ask for
	QueueMaxBytes         int
	QueuePolicy           QueuePolicy
	MaxBytesPerWrite      int // bytes a subscriber's feeder gathers before it writes
	MaxPerIdentity        int // subscriptions and watches of one identity on one connection
	MaxPerConnectionTotal int // the same for one connection
}

// QueuePolicy says what a full subscriber queue does.
type QueuePolicy string

// The queue policies (broker 7.4).
const (
	DropNew QueuePolicy = "drop_new" // the arriving batch is dropped for that subscriber
	DropOld QueuePolicy = "drop_old" // accepted for compatibility; counted apart, acts as drop_new
	Block   QueuePolicy = "block"    // the publisher's completion waits for room
)

// Cache holds the bounds of caches without storage, and of watches.
type Cache struct {
	MaxBytes           int
	MaxEntries         int
	WatchQueueCapacity int // changes that may wait for one watch
}

// Groups holds the terms on which consumer groups are given records.
type Groups struct {
	Visibility    time.Duration // of a claim that names none
	MaxVisibility time.Duration // of claims, extensions and delays
	MaxAttempts   int           // deliveries before a record is a dead letter
	MaxWait       time.Duration // of a poll
	MaxInFlight   int           // unfinished records of one group and shard
}

// Storage holds where the logs lie, when they are durable and what they keep.
// Byte counts and ages of 0 are none where the field says so.
type Storage struct {
	Dir                      string // empty: everything is in memory
	Fsync                    FsyncMode
	FsyncInterval            time.Duration // with FsyncPeriodic
	SegmentBytes             int
	RetentionBytes           int           // of a stream's shard; 0 keeps all
	RetentionAge             time.Duration // of a stream's records; 0 keeps all
	RetentionInterval        time.Duration
	IndexSpacing             int // bytes between index entries
	MaxRecordsPerRead        int
	Preallocate              bool
	VerifyAll                bool // check sealed files, too, when a log is opened
	RepairChecksumTail       bool
	RolloverThresholdPercent int // 100 prepares nothing in the background
	MaxOvershootPercent      int
	CompactionBytesPerSec    uint64 // 0 is unlimited
	SoftFreeBytes            int    // writes are refused below; 0 never
	MaxOpenSealed            int    // files
	JournalBytes             int    // each of two files; 0: none
	MaxFlushes               int    // at once
	OpenParallel             int    // logs
	RecordPublishers         bool   // keep the token's subject with durable batches
}

// FsyncMode says when a write reaches the disk (storage 8).
type FsyncMode string

// The modes.
const (
	FsyncOnCommit FsyncMode = "on_commit" // before it is acknowledged
	FsyncPeriodic FsyncMode = "periodic"  // within an interval
	FsyncNone     FsyncMode = "none"      // when the operating system likes
)

// Shutdown holds the deadlines of a clean stop.
type Shutdown struct {
	Drain    time.Duration // one budget for every subsystem
	PreDrain time.Duration // not ready, but still accepting
	Handoff  time.Duration // for shards to go to other brokers; 0 waits for none
}

// Process holds logging and the knobs of the Go runtime.
type Process struct {
	Log           string    // level, or a list of module=level
	LogFormat     LogFormat // text or json
	GCPercent     int       // as GOGC; -1 is off
	MemoryLimit   int64     // as GOMEMLIMIT; 0 is none
	WorkerThreads int       // as GOMAXPROCS; 0 leaves it to the runtime
}

// LogFormat is the encoding of log lines.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)
