package auth

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/felixlog/felix/controlplane/auth/oidc"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// The lifetimes of tokens, where [Options] has none (control plane 21).
const (
	DefaultAccessTTL  = 15 * time.Minute
	DefaultRefreshTTL = 30 * 24 * time.Hour
)

// Store is what the service needs of a [store.Store].
type Store interface {
	store.Auth
	Tenant(ctx context.Context, id string) (model.Tenant, error)
	CreateTenantWithKey(ctx context.Context, t model.Tenant, key model.SigningKey) error
	CatchUp(ctx context.Context) error
}

// Options are what [New] needs. Store, Now, Random and Logger must be set.
type Options struct {
	Store  Store
	Now    func() time.Time
	Random io.Reader // safe for concurrent use: crypto/rand's reader outside of tests
	Logger *slog.Logger

	// Ready says why this instance is not ready, nil if it is. It is asked only
	// where keys or issuers are missing. nil stands for always ready.
	Ready func(ctx context.Context) error
	// ValidateName checks the name of a tenant and of what is in it. nil checks
	// nothing but what would make an object ambiguous.
	ValidateName func(kind, name string) error

	OIDC       oidc.Options  // its Now is set to the service's
	AccessTTL  time.Duration // 0 is DefaultAccessTTL
	RefreshTTL time.Duration // 0 is DefaultRefreshTTL

	// AcceptBrokerAudience lets tokens for brokers call the API too. A broker
	// then sees tokens that it could use against the API.
	AcceptBrokerAudience bool
	// DelegateUnboundTokens lets a gateway act for users whose tokens do not
	// name it.
	DelegateUnboundTokens bool

	Bootstrap BootstrapOptions
	Observer  Observer
}

// BootstrapOptions are how tenants get their first rights (control plane 17).
type BootstrapOptions struct {
	Enabled       bool
	Token         string // the shared secret
	PreviousToken string // accepted too, while callers move to Token
	// DevTokens lets holders of the secret have tokens made to measure. For
	// development only: whoever starts the listener must see to it that it is on
	// a loopback address.
	DevTokens bool
}

// Observer is told what is to be counted (control plane 22). Hooks that are nil
// are left out; they are called from many goroutines and must not block.
type Observer struct {
	AuthRejected     func(Reason)
	RefreshIssued    func(via string) // "exchange" or "refresh"
	RefreshReplayed  func()
	RefreshBadSecret func()
	RefreshRevoked   func(tokens int)
	Delegated        func()
	Bootstrap        func(outcome, reason string)
}

// withDefaults fills in hooks that do nothing.
func (o Observer) withDefaults() Observer {
	if o.AuthRejected == nil {
		o.AuthRejected = func(Reason) {}
	}
	if o.RefreshIssued == nil {
		o.RefreshIssued = func(string) {}
	}
	if o.RefreshReplayed == nil {
		o.RefreshReplayed = func() {}
	}
	if o.RefreshBadSecret == nil {
		o.RefreshBadSecret = func() {}
	}
	if o.RefreshRevoked == nil {
		o.RefreshRevoked = func(int) {}
	}
	if o.Delegated == nil {
		o.Delegated = func() {}
	}
	if o.Bootstrap == nil {
		o.Bootstrap = func(string, string) {}
	}
	return o
}

func (o *Options) validate() error {
	switch {
	case o.Store == nil || o.Now == nil || o.Random == nil || o.Logger == nil:
		return errors.New("auth needs a store, a clock, randomness and a logger")
	case o.AccessTTL < 0 || o.RefreshTTL < 0:
		return errors.New("the lifetime of a token is negative")
	case o.AccessTTL != 0 && o.AccessTTL < time.Second || o.RefreshTTL != 0 && o.RefreshTTL < time.Second:
		return errors.New("the lifetime of a token is below a second")
	case o.Bootstrap.Enabled && o.Bootstrap.Token == "":
		return errors.New("bootstrap is enabled without a token; set FELIX_BOOTSTRAP_TOKEN")
	case o.Bootstrap.PreviousToken != "" && o.Bootstrap.Token == "":
		return errors.New("there is a previous bootstrap token but no current one; set FELIX_BOOTSTRAP_TOKEN")
	case o.Bootstrap.DevTokens && !o.Bootstrap.Enabled:
		return errors.New("development tokens need the bootstrap listener; set FELIX_BOOTSTRAP_ENABLED")
	}
	if o.AccessTTL == 0 {
		o.AccessTTL = DefaultAccessTTL
	}
	if o.RefreshTTL == 0 {
		o.RefreshTTL = DefaultRefreshTTL
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	if o.ValidateName == nil {
		o.ValidateName = func(string, string) error { return nil }
	}
	return nil
}
