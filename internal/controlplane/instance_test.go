package controlplane

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
	"github.com/felixlog/felix/controlplane/store/raft"
	"github.com/felixlog/felix/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Tests(m)) }

// patience is how long a test waits for what must happen.
const patience = time.Minute

// noFiles is a file system without configuration.
type noFiles struct{}

func (noFiles) ReadFile(name string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// load is the configuration of flags, on free ports.
func load(t *testing.T, flags map[string]string) *config.ControlPlane {
	t.Helper()
	all := map[string]string{"bind-addr": "127.0.0.1:0", "metrics-bind": "127.0.0.1:0", "shutdown-predrain-ms": "0"}
	maps.Copy(all, flags)
	cfg, _, err := config.LoadControlPlane(config.Sources{Flags: all, FileSystem: noFiles{}})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func begin(t *testing.T, flags map[string]string) *Instance {
	t.Helper()
	i, err := Start(t.Context(), load(t, flags), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// The settings say where the metadata is, and it is there again where it is to
// last.
func TestBackends(t *testing.T) {
	for name, tc := range map[string]struct {
		flags map[string]string
		is    func(store.Store) bool
		lasts bool
	}{
		"memory":   {nil, func(s store.Store) bool { _, ok := s.(*memory.Store); return ok }, false},
		"raft":     {map[string]string{"raft-data-dir": t.TempDir()}, func(s store.Store) bool { _, ok := s.(*raft.Store); return ok }, true},
		"postgres": {map[string]string{"postgres-url": pgtest.Start(t)}, func(s store.Store) bool { _, ok := s.(*postgres.Store); return ok }, true},
	} {
		i := begin(t, tc.flags)
		if !tc.is(i.Store()) {
			t.Errorf("%s: the store is a %T", name, i.Store())
		}
		if err := i.Store().CreateTenant(t.Context(), model.Tenant{TenantID: "acme", DisplayName: "Acme"}); err != nil {
			t.Fatal(err)
		}
		if err := i.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-i.Done()
		if _, err := i.Store().Tenants(t.Context()); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s: the store is not closed: %v", name, err)
		}
		again := begin(t, tc.flags)
		if tenants, err := again.Store().Tenants(t.Context()); err != nil || (len(tenants) == 1) != tc.lasts {
			t.Errorf("%s: after a restart %v, %v", name, tenants, err)
		}
	}
}

// What was opened for a start that fails is closed again.
func TestFailedStartLeavesNothing(t *testing.T) {
	other := begin(t, nil)
	flags := map[string]string{"raft-data-dir": t.TempDir(), "bind-addr": other.Addr()}
	if i, err := Start(t.Context(), load(t, flags), slog.New(slog.DiscardHandler)); err == nil {
		t.Fatalf("two listen on %s", i.Addr())
	}
	delete(flags, "bind-addr")
	begin(t, flags) // the directory is free
	if _, err := Start(t.Context(), load(t, flags), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a directory for two: %v", err)
	}
}

func TestPeers(t *testing.T) {
	for text, want := range map[string]int{
		"1=a:1": 1, "1=a:1, 2=b:1,3=[::1]:1": 3,
		"": 0, ",": 0, "1": 0, "1=": 0, "0=a:1": 0, "x=a:1": 0, "1=a": 0, "1=:1": 0, "1=a:": 0, "1=a:1,1=b:1": 0, "1=a:1,2=a:1": 0, "1=a:1,": 0,
	} {
		peers, err := parsePeers(text)
		var refused *SettingsError
		if len(peers) != want || (want == 0) != errors.As(err, &refused) {
			t.Errorf("%q: %v, %v", text, peers, err)
		}
	}
	for id, right := range map[string]bool{"1": true, "2": true, "3": false, "": false, "-1": false, "a": false} {
		o, err := raftOptions(&config.Raft{Peers: "1=a:1,2=b:1", NodeID: id, Bind: "a:1"})
		var refused *SettingsError
		if right != (err == nil) || !right && (!errors.As(err, &refused) || refused.Key != "raft.node_id") || right && o.Peers[2] != "b:1" {
			t.Errorf("node %q: %+v, %v", id, o, err)
		}
	}
	// One member alone has no peers to count, nor to wait for.
	if o, err := raftOptions(&config.Raft{DataDir: "d", NodeID: "x", Election: time.Hour}); err != nil || len(o.Peers) != 0 || o.NodeID != 0 || o.ElectionTimeout != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// A stop that waits for balancers is hurried by the end of its context, and by a
// second stop.
func TestShutdownIsHurried(t *testing.T) {
	for name, hurry := range map[string]func(i *Instance, cancel context.CancelFunc){
		"context": func(_ *Instance, cancel context.CancelFunc) { cancel() },
		"second":  func(i *Instance, _ context.CancelFunc) { _ = i.Shutdown(context.Background()) },
	} {
		i := begin(t, map[string]string{"shutdown-predrain-ms": "600000"})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- i.Shutdown(ctx) }()
		await(t, "it drains", func() bool { return status(t, i) == http.StatusServiceUnavailable })
		select {
		case <-i.Done():
			t.Errorf("%s: it did not wait", name)
		default:
		}
		hurry(i, cancel)
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
		<-i.Done()
		cancel()
	}
}

func status(t *testing.T, i *Instance) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + i.Addr() + "/v1/system/ready")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// Settings reach the options that they are for.
func TestOptions(t *testing.T) {
	before, o := controlplane.DefaultOptions(), optionsOf(load(t, map[string]string{
		"bind-addr": "127.0.0.1:9", "region-id": "eu", "region-bridges": "eu>us,us>eu", "exchange-token-ttl-seconds": "77", "bootstrap-enabled": "true", "bootstrap-token": strings.Repeat("s", 32),
		"bootstrap-dev-tokens": "true", "bootstrap-bind-addr": "127.0.0.1:8", "node-liveness-heartbeat-interval-ms": "123", "max-concurrent-shard-moves": "11", "shard-move-timeout-ms": "60000",
		"shutdown-drain-timeout-ms": "4321", "oidc-allow-insecure-http": "true", "readiness-timeout-ms": "99",
	}))
	for name, ok := range map[string]bool{
		"listener":  o.BindAddr == "127.0.0.1:9" && o.RegionID == "eu" && len(o.RegionBridges) == 2 && o.RegionBridges[1] == (model.Bridge{Source: "us", Destination: "eu"}),
		"auth":      o.ExchangeTokenTTL == 77*time.Second && o.OIDCAllowInsecureHTTP && !before.OIDCAllowInsecureHTTP && o.RefreshTokenTTL == before.RefreshTokenTTL,
		"bootstrap": o.Bootstrap.Enabled && o.Bootstrap.DevTokens && o.Bootstrap.BindAddr == "127.0.0.1:8" && len(o.Bootstrap.Token) == 32,
		"liveness":  o.NodeHeartbeatInterval == 123*time.Millisecond && o.NodeExpiryTimeout == before.NodeExpiryTimeout,
		"moves":     o.ShardMovesMaxConcurrent == 11 && o.ShardMoveTimeout == time.Minute,
		"ends":      o.ShutdownDrainTimeout == 4321*time.Millisecond && o.ShutdownPredrain == 0 && o.ReadinessTimeout == 99*time.Millisecond,
		"supplied":  o.ValidateName != nil && o.Clock != nil && o.Random != nil,
	} {
		if !ok {
			t.Errorf("%s: %+v", name, o)
		}
	}
	if err := o.ValidateName("stream", "a/b"); err == nil {
		t.Error("names are not checked")
	}
}
