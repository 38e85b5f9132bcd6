package config

import (
	"errors"
	"io"
	"time"
)

// controlPlaneFileEnv names the file of a control plane.
const controlPlaneFileEnv = "FELIX_CONTROLPLANE_CONFIG"

// ControlPlane is the configuration of one instance of the control plane
// (control plane 21). [LoadControlPlane] builds it; a zero one is not valid.
type ControlPlane struct {
	Bind        string // host:port of the API
	MetricsBind string // host:port of /metrics, /live and /ready
	TLSCert     string // PEM chain of the API; empty for plain HTTP
	TLSKey      string
	Region      string
	Bridges     []RegionBridge // stored at the first start
	Backend     Backend
	Postgres    Postgres
	Raft        Raft
	ChangesPage int
	ChangesKept int
	Auth        ControlPlaneAuth
	Bootstrap   Bootstrap
	Liveness    Liveness
	Moves       Moves
	Readiness   ReadinessProbe
	Shutdown    Shutdown
	Log         string
	LogFormat   LogFormat
}

// Backend is where a control plane keeps its metadata.
type Backend string

// The backends.
const (
	BackendMemory   Backend = "memory"
	BackendPostgres Backend = "postgres"
	BackendRaft     Backend = "raft"
)

// A RegionBridge lets streams of one region have copies in another.
type RegionBridge struct{ Source, Destination string }

// Postgres holds the connection to the database.
type Postgres struct {
	URL            string // a secret: it may hold a password
	MaxConnections int
	ConnectTimeout time.Duration
	AcquireTimeout time.Duration
}

// Raft holds the group of instances.
type Raft struct {
	NodeID       string
	DataDir      string
	Peers        string // "1=host:port,2=host:port"; empty for a group of one
	Bind         string // host:port of the peer listener
	ClusterID    string
	PeerToken    string
	InitialState RaftInitialState
	Insecure     bool
	TLSCert      string
	TLSKey       string
	TLSCA        string
	Election     time.Duration // shortest silence of a leader before an election
	SnapshotLogs int
	LogsKept     int
	WriteTimeout time.Duration
}

// RaftInitialState says whether a member without state may form a group.
type RaftInitialState string

// The initial states.
const (
	RaftExisting RaftInitialState = "existing"
	RaftNew      RaftInitialState = "new"
)

// ControlPlaneAuth holds what identities and tokens obey.
type ControlPlaneAuth struct {
	Algorithms           []string // of upstream tokens
	AllowInsecureHTTP    bool     // to providers on loopback
	AllowPrivateIDP      bool     // providers on private addresses
	AcceptBrokerAudience bool
	TokenTTL             time.Duration
	RefreshTTL           time.Duration
}

// Bootstrap holds the listener that gives out the first rights.
type Bootstrap struct {
	Enabled       bool
	Bind          string
	Token         string
	PreviousToken string
	TLSCert       string
	TLSKey        string
	TLSClientCA   string
	DevTokens     bool
}

// Liveness holds the terms of membership and placement.
type Liveness struct {
	Heartbeat time.Duration // asked of brokers
	Expiry    time.Duration // the length of a lease
	Margin    time.Duration // waited beyond it before another node is given the shard
	Sweep     time.Duration
	Reconcile time.Duration
	Settle    time.Duration
}

// Moves holds the limits of moving shards.
type Moves struct {
	Concurrent   int
	PerNode      int // 0: no bound
	FenceLag     int // records
	Timeout      time.Duration
	RestoreAfter time.Duration // 0: never
}

// ReadinessProbe bounds the look at the store.
type ReadinessProbe struct {
	Timeout  time.Duration
	CacheTTL time.Duration
}

// LoadControlPlane resolves every setting of a control plane from the sources,
// as [Load] does for a broker.
func LoadControlPlane(s Sources) (cfg *ControlPlane, warnings []string, err error) {
	cfg = new(ControlPlane)
	l := tableLoader(cfg.Settings(), controlPlaneDialect())
	l.gather(s)
	if len(l.faults) == 0 {
		cfg.complete(l)
		cfg.check(l)
	}
	if len(l.faults) > 0 {
		return nil, l.warnings, errors.Join(l.faults...)
	}
	return cfg, l.warnings, nil
}

// Settings is the table bound to the fields of c.
func (c *ControlPlane) Settings() []Setting {
	var all []Setting
	for _, g := range c.groups() {
		all = append(all, g.settings...)
	}
	return all
}

// ControlPlaneSettings is the table by itself, as [Settings] is a broker's.
func ControlPlaneSettings() []Setting { return new(ControlPlane).Settings() }

// PrintControlPlane writes c as a YAML file, as [Print] does for a broker.
func PrintControlPlane(w io.Writer, c *ControlPlane) error { return printGroups(w, c.groups()) }

func controlPlaneDialect() dialect {
	broker := make(map[string]bool)
	for _, s := range Settings() {
		broker[s.Env] = true
		for _, alias := range s.Aliases {
			broker[alias] = true
		}
	}
	for _, old := range inertSettings {
		broker[old.env] = true
	}
	return dialect{
		fileEnv: controlPlaneFileEnv, nests: true,
		inert: []inert{
			{"raft.heartbeat_ms", "FELIX_RAFT_HEARTBEAT_MS", "it is a tenth of raft.election_timeout_min_ms"},
			{"raft.election_timeout_max_ms", "FELIX_RAFT_ELECTION_TIMEOUT_MAX_MS", "it is twice raft.election_timeout_min_ms"},
		},
		refused: map[string]string{
			"FELIX_CONTROLPLANE_LEGACY_UNSCOPED_GROUPS":  "groups are known by their issuer; a grant to a bare name could be claimed by any issuer",
			"FELIX_CONTROLPLANE_DELEGATE_UNBOUND_TOKENS": "a token is delegated only to whom it names",
		},
		// A broker, its clients and the command line may share the environment.
		foreign: func(name string) bool {
			return broker[name] || name == fileEnv || refusedVariables[name] != "" || isForeign(name) && !ofControlPlane(name)
		},
	}
}
