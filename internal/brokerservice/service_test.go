package brokerservice

import (
	"context"
	"crypto/rand"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/controlplane"
	"github.com/felixlog/felix/internal/node"
)

// What a start that fails, or a service that ends, leaves behind fails the
// tests.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noFiles is a file system without configuration.
type noFiles struct{}

func (noFiles) ReadFile(name string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// A plane is a control plane with the tenant acme and its stream orders.
type plane struct {
	*controlplane.Instance
	signer *auth.Signer
}

func startPlane(t *testing.T) *plane {
	t.Helper()
	cfg, _, err := config.LoadControlPlane(config.Sources{FileSystem: noFiles{}, Flags: map[string]string{
		"bind-addr": "127.0.0.1:0", "metrics-bind": "127.0.0.1:0", "shutdown-predrain-ms": "0", "placement-settle-ms": "0",
	}})
	if err != nil {
		t.Fatal(err)
	}
	i, err := controlplane.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	private, err := auth.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{i, auth.NewSigner("", private)}
	key := model.SigningKey{KID: p.signer.Key().ID, Seed: private.Seed(), Public: p.signer.Key().Public, Status: model.KeyCurrent}
	s := i.Store()
	must(t, s.CreateTenant(t.Context(), model.Tenant{TenantID: "acme", DisplayName: "Acme"}))
	_, err = s.EnsureSigningKey(t.Context(), "acme", key)
	must(t, err)
	must(t, s.CreateNamespace(t.Context(), model.Namespace{TenantID: "acme", Namespace: "default", DisplayName: "default"}))
	must(t, s.CreateStream(t.Context(), model.Stream{
		TenantID: "acme", Namespace: "default", Stream: "orders", UID: strings.Repeat("ab", 16), Kind: model.KindStream, Shards: 1, ReplicationFactor: 1,
		Consistency: model.Leader, Delivery: model.AtMostOnce, Routing: model.Modulo,
	}))
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// options are those of a node that follows p, with a token that allows some
// things.
func (p *plane) options(t *testing.T, permissions []string, flags map[string]string) node.Options {
	t.Helper()
	token, err := p.signer.Mint(auth.Claims{
		Tenant: "acme", Subject: "broker", Audience: auth.AudienceControlPlane, Permissions: permissions, IssuedAt: time.Now(), Expires: auth.NoExpiry(),
	})
	must(t, err)
	all := map[string]string{
		"controlplane-url": "http://" + p.Addr(), "node-token": token, "quic-bind": "127.0.0.1:0", "quic-listeners": "1", "metrics-bind": "127.0.0.1:0",
	}
	maps.Copy(all, flags)
	cfg, _, err := config.Load(config.Sources{Flags: all, FileSystem: noFiles{}})
	must(t, err)
	if !Follows(cfg) {
		t.Fatal("it follows nobody")
	}
	return node.Options{Config: cfg, Logger: slog.New(slog.DiscardHandler), Version: "test"}
}

func member(id string) map[string]string {
	return map[string]string{"node-id": id, "node-advertise-addr": "127.0.0.1:7001", "node-client-addr": "127.0.0.1:5001"}
}

var both = []string{"node.view:cluster:*", "node.manage:cluster:*"}

// It is ready when it has started: what the control plane knows is known here.
func TestServiceFollows(t *testing.T) {
	p := startPlane(t)
	s, err := Start(t.Context(), p.options(t, both[:1], nil))
	must(t, err)
	if _, err := s.Core().Stream("acme", "default", "orders"); err != nil {
		t.Errorf("the stream is not there: %v", err)
	}
	select {
	case <-s.Done():
		t.Error("it has ended")
	default:
	}
	must(t, s.Shutdown(t.Context()))
	<-s.Done()
	must(t, s.Shutdown(t.Context())) // a second time it says the same
}

// A member registers, and says that it leaves.
func TestMemberJoinsAndLeaves(t *testing.T) {
	p := startPlane(t)
	s, err := Start(t.Context(), p.options(t, both, member("b1")))
	must(t, err)
	<-s.Agent().Joined()
	lifecycle := func() model.Lifecycle {
		n, err := p.Store().Node(t.Context(), "b1")
		must(t, err)
		return n.Status.Lifecycle
	}
	if now := lifecycle(); now != model.Live {
		t.Errorf("it is %s", now)
	}
	must(t, s.Shutdown(t.Context()))
	if now := lifecycle(); now != model.Left {
		t.Errorf("it is %s", now)
	}
}

// A node that the control plane will not have ends, and says why.
func TestRefusedMemberEnds(t *testing.T) {
	p := startPlane(t)
	s, err := Start(t.Context(), p.options(t, both[:1], member("b1"))) // may look, and not register
	must(t, err)
	<-s.Done()
	if err := s.Shutdown(t.Context()); err == nil || !strings.Contains(err.Error(), "the control plane refuses this node") || !strings.Contains(err.Error(), "node.manage") {
		t.Errorf("it ended with %v", err)
	}
}

// What was started before the start fails is ended again; TestMain looks.
func TestFailedStart(t *testing.T) {
	p := startPlane(t)
	data := t.TempDir()
	holder, err := Start(t.Context(), p.options(t, both, map[string]string{"durable-storage-dir": data}))
	must(t, err)
	defer func() { must(t, holder.Shutdown(context.Background())) }()
	for name, o := range map[string]node.Options{
		"no right to look":           p.options(t, nil, nil),
		"a directory for two":        p.options(t, both, map[string]string{"durable-storage-dir": data}),
		"no file of authorities":     p.options(t, both, map[string]string{"controlplane-ca": filepath.Join(data, "gone.pem"), "controlplane-url": "https://127.0.0.1:1"}),
		"no file with a token":       p.options(t, both, map[string]string{"node-token": "", "node-token-file": filepath.Join(data, "gone")}),
		"an address for two brokers": p.options(t, both, map[string]string{"metrics-bind": holder.AdminAddr()}),
	} {
		s, err := Start(t.Context(), o)
		if err == nil {
			must(t, s.Shutdown(t.Context()))
			t.Errorf("%s: it started", name)
			continue
		}
		if strings.Contains(err.Error(), o.Config.Cluster.Token) && o.Config.Cluster.Token != "" {
			t.Errorf("%s: the token is told", name)
		}
	}
	// One that nobody answers tries until its start is given up.
	o := p.options(t, both, map[string]string{"controlplane-url": "http://127.0.0.1:1"})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Start(ctx, o)
		ended <- err
	}()
	cancel()
	if err := <-ended; err == nil {
		t.Error("it started without a control plane")
	}
}
