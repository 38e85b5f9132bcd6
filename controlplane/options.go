package controlplane

import (
	"crypto/rand"
	"io"
	"log/slog"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// Options are the settings of one instance (control plane 21). Begin with
// [DefaultOptions]: [Start] takes every field as it stands.
type Options struct {
	// Store is opened by the caller and closed by him, after Shutdown.
	Store store.Store

	BindAddr    string // of the API, host:port
	MetricsBind string // of /metrics, /live and /ready
	// TLSCert and TLSKey are PEM files of the API's certificate, both or
	// neither. They are read again when they change.
	TLSCert, TLSKey string

	RegionID string
	// RegionBridges are stored at the start if the store holds no bridge.
	RegionBridges []model.Bridge

	OIDCAllowedAlgorithms []string // of upstream tokens; at least one
	OIDCAllowInsecureHTTP bool     // plain HTTP to identity providers on loopback and elsewhere
	OIDCAllowPrivateIDP   bool     // identity providers on private addresses
	AcceptBrokerAudience  bool     // tokens for brokers are taken by the API as well
	ExchangeTokenTTL      time.Duration
	RefreshTokenTTL       time.Duration

	Bootstrap BootstrapOptions

	NodeHeartbeatInterval   time.Duration // told to brokers
	NodeExpiryTimeout       time.Duration // length of a broker's lease
	NodeRegrantMargin       time.Duration // waited beyond it; at least a quarter of it
	NodeExpirySweepInterval time.Duration
	ShardReconcileInterval  time.Duration

	ShardMovesMaxConcurrent     int           // copies at once in the cluster; 0 starts none
	ShardMovesMaxPerNode        int           // copies at once of a node; 0 is no bound
	ShardMoveFenceMaxLagRecords uint64        // a copy this close counts as level
	ShardMoveTimeout            time.Duration // of a copy that was not fenced; 0 is none
	ShardRestoreAfter           time.Duration // a shard short of copies waits this long; 0 is for ever
	PlacementSettle             time.Duration // a young cluster waits this long for its brokers

	ReadinessTimeout     time.Duration // of one check of the store
	ReadinessCacheTTL    time.Duration
	ShutdownPredrain     time.Duration // unready and still serving; may be 0
	ShutdownDrainTimeout time.Duration // for work in flight

	// FleetFeatures are the features of the fleet that this build knows.
	FleetFeatures []string
	// TokenRate and TokenBurst bound what one address may ask of the routes that
	// give tokens: requests a second, and at once.
	TokenRate  float64
	TokenBurst int
	// DelegateUnboundTokens lets a gateway act for users whose tokens do not name
	// it.
	DelegateUnboundTokens bool

	// ValidateName checks the name of a "tenant", "namespace", "stream" or
	// "cache". It is required.
	ValidateName func(kind, name string) error
	// Clock, Random and Logger default to those of the process.
	Clock  func() time.Time
	Random io.Reader
	Logger *slog.Logger
}

// BootstrapOptions are the settings of the listener that makes a system's first
// tenants (control plane 17).
type BootstrapOptions struct {
	Enabled              bool
	BindAddr             string
	Token, TokenPrevious string // both are accepted
	// TLSCert, TLSKey and TLSClientCA are PEM files, all three or none; with
	// them, a client has to present a certificate of that CA.
	TLSCert, TLSKey, TLSClientCA string
	// DevTokens gives out access tokens without an identity provider. It is for
	// development and needs a listener on loopback.
	DevTokens bool
}

// DefaultOptions are the defaults of control plane 21.
func DefaultOptions() Options {
	return Options{
		BindAddr:                    "0.0.0.0:8443",
		MetricsBind:                 "0.0.0.0:8080",
		RegionID:                    "local",
		OIDCAllowedAlgorithms:       []string{"ES256"},
		ExchangeTokenTTL:            15 * time.Minute,
		RefreshTokenTTL:             30 * 24 * time.Hour,
		Bootstrap:                   BootstrapOptions{BindAddr: "127.0.0.1:9095"},
		NodeHeartbeatInterval:       5 * time.Second,
		NodeExpiryTimeout:           15 * time.Second,
		NodeRegrantMargin:           3750 * time.Millisecond,
		NodeExpirySweepInterval:     2 * time.Second,
		ShardReconcileInterval:      5 * time.Second,
		ShardMovesMaxConcurrent:     1,
		ShardMoveFenceMaxLagRecords: 1000,
		ShardMoveTimeout:            30 * time.Minute,
		ShardRestoreAfter:           5 * time.Minute,
		PlacementSettle:             10 * time.Second,
		ReadinessTimeout:            2 * time.Second,
		ReadinessCacheTTL:           time.Second,
		ShutdownPredrain:            5 * time.Second,
		ShutdownDrainTimeout:        25 * time.Second,
		TokenRate:                   20,
		TokenBurst:                  200,
		Clock:                       time.Now,
		Random:                      rand.Reader,
		Logger:                      slog.Default(),
	}
}
