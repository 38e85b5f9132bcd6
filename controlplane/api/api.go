package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/planner"
	"github.com/felixlog/felix/controlplane/store"
)

// Options are what [New] needs. All but FleetFeatures and the limits must be
// set.
type Options struct {
	Store   store.Store
	Auth    *auth.Service
	Planner *planner.Planner

	RegionID          string
	HeartbeatInterval time.Duration // told to brokers
	ExpiryTimeout     time.Duration // told to brokers
	// FleetFeatures are the features of the fleet that this build knows.
	FleetFeatures []string

	// TokenRate and TokenBurst bound what one address may ask of the token
	// routes, in requests a second and at once; 0 is 20 and 200.
	TokenRate  float64
	TokenBurst int

	ValidateName func(kind, name string) error
	// Ready says why this instance should get no requests, nil if it should. It
	// is bounded by its maker.
	Ready    func(ctx context.Context) error
	Observer Observer
	Logger   *slog.Logger
	Clock    func() time.Time
	Random   io.Reader
}

// An Observer is told what the API did, for the metrics of control plane 22.
// Calls are quick and come from many goroutines.
type Observer interface {
	RequestBegan()
	RequestEnded()
	Forbidden()                                // a caller may not
	StreamChanged(op model.Op)                 // by a route of its own, not with its namespace or tenant
	CacheChanged(op model.Op)                  // likewise
	NodeChanged(op model.Op)                   // of the node feed
	NodeRegistered(outcome string)             // "new", "restart" or "rejected"
	NodeTransitioned(from, to model.Lifecycle) // by a request
	ReportRejected(outcome model.ReportOutcome)
}

// An API serves the routes of one instance.
type API struct {
	o      Options
	random io.Reader // guarded and buffered
	limits *addressLimits

	pollers pollers

	tenants     *watch[model.TenantChange]
	namespaces  *watch[model.NamespaceChange]
	streams     *watch[model.StreamChange]
	caches      *watch[model.CacheChange]
	assignments *watch[model.AssignmentChange]

	main, bootstrap *surface
	handler         http.Handler
	bootHandler     http.Handler
}

// The defaults of the limits of token routes.
const (
	defaultTokenRate  = 20
	defaultTokenBurst = 200
)

// New makes the routes. It starts nothing.
func New(o Options) (*API, error) {
	switch {
	case o.Store == nil, o.Auth == nil, o.Planner == nil, o.ValidateName == nil, o.Ready == nil,
		o.Observer == nil, o.Logger == nil, o.Clock == nil, o.Random == nil:
		return nil, errors.New("an API needs a store, auth, a planner, a check of names, readiness, an observer, a logger, a clock and randomness")
	}
	if o.TokenRate <= 0 {
		o.TokenRate = defaultTokenRate
	}
	if o.TokenBurst <= 0 {
		o.TokenBurst = defaultTokenBurst
	}
	a := &API{
		o: o, random: &lockedReader{r: bufio.NewReader(o.Random)},
		limits:  newAddressLimits(o.TokenRate, o.TokenBurst, o.Clock),
		pollers: pollers{drain: make(chan struct{})},
	}
	st := o.Store
	a.tenants = newWatch(a, st.CatchUp, st.TenantChanges, nil)
	a.namespaces = newWatch(a, st.CatchUp, st.NamespaceChanges, nil)
	a.streams = newWatch(a, st.CatchUp, st.StreamChanges, nil)
	a.caches = newWatch(a, st.CatchUp, st.CacheChanges, nil)
	a.assignments = newWatch(a, st.CatchUp, st.AssignmentChanges, st.AssignmentsChanged)

	a.main = newSurface(a)
	a.main.systemRoutes()
	a.main.tenantRoutes()
	a.main.namespaceRoutes()
	a.main.streamRoutes()
	a.main.cacheRoutes()
	a.main.resourceRoutes()
	a.main.nodeRoutes()
	a.main.membershipRoutes()
	a.main.reportRoutes()
	a.main.assignmentRoutes()
	a.main.moveRoutes()
	a.main.placementRoutes()
	a.main.feedRoutes()
	a.main.tokenRoutes()
	a.main.issuerRoutes()
	a.main.rbacRoutes()
	a.main.keyRoutes()
	a.main.bridgeRoutes()
	a.main.fleetRoutes()
	if err := a.main.documentRoutes(); err != nil {
		return nil, err
	}
	a.bootstrap = newSurface(a)
	a.bootstrap.bootstrapRoutes()
	a.handler = a.enclose(a.main.mux)
	a.bootHandler = a.enclose(a.bootstrap.mux)
	return a, nil
}

// Handler serves the API.
func (a *API) Handler() http.Handler { return a.handler }

// BootstrapHandler serves the routes that make a system's first tenants. They
// belong on a listener of their own (control plane 17).
func (a *API) BootstrapHandler() http.Handler { return a.bootHandler }

// Drain answers all waiting readers now, and later ones without waiting.
func (a *API) Drain() { a.pollers.stop() }

// Close drains, and waits for what runs on behalf of waiting readers.
func (a *API) Close() {
	a.pollers.stop()
	a.pollers.running.Wait()
}

// A lockedReader lets requests share a source of randomness, and saves a call
// of the system for each.
type lockedReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (l *lockedReader) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return io.ReadFull(l.r, p)
}
