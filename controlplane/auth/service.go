package auth

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/felixlog/felix/controlplane/auth/oidc"
	token "github.com/felixlog/felix/internal/auth"
)

// leeway of clocks for our own tokens (control plane 15.4).
const leeway = 5 * time.Second

// A Service is the auth part of one control-plane instance. It is safe for
// concurrent use.
type Service struct {
	store    Store
	now      func() time.Time
	random   io.Reader
	logger   *slog.Logger
	observer Observer
	ready    func(ctx context.Context) error

	validateName func(kind, name string) error
	accessTTL    time.Duration
	refreshTTL   time.Duration
	unbound      bool // users need not name the gateway that acts for them
	bootstrap    bootstrapGuard

	keys     *keyCache
	upstream *oidc.Verifier
	callers  *token.Verifier // of tokens that the API is called with
	gateways *token.Verifier // of tokens for the control plane only
	clients  *token.Verifier // of tokens for brokers only
}

// New reads and fetches nothing, and starts nothing.
func New(o Options) (*Service, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.OIDC.Now = o.Now
	upstream, err := oidc.New(o.OIDC)
	if err != nil {
		return nil, err
	}
	audiences := []string{token.AudienceControlPlane}
	if o.AcceptBrokerAudience {
		audiences = append(audiences, token.AudienceBroker)
	}
	keys := newKeyCache(o.Store, o.Now, o.Logger)
	return &Service{
		store: o.Store, now: o.Now, random: o.Random, logger: o.Logger, observer: o.Observer.withDefaults(), ready: o.Ready,
		validateName: o.ValidateName, accessTTL: o.AccessTTL, refreshTTL: o.RefreshTTL,
		unbound: o.DelegateUnboundTokens, bootstrap: newBootstrapGuard(o.Bootstrap),
		keys: keys, upstream: upstream,
		callers:  token.NewVerifierFor(keys, o.Now, leeway, audiences...),
		gateways: token.NewVerifierFor(keys, o.Now, leeway, token.AudienceControlPlane),
		clients:  token.NewVerifierFor(keys, o.Now, leeway, token.AudienceBroker),
	}, nil
}

// Forget drops what is cached of a tenant; call it where one is deleted. Other
// instances forget by themselves within seconds.
func (s *Service) Forget(tenant string) { s.keys.drop(tenant) }
