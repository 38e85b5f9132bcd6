package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/brokerservice"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node"
)

// startMember starts a broker that joins the cluster of p, and returns where it
// is and the file with its certificate.
func startMember(t *testing.T, p *testPlane, id, clientAddr string) (addr, ca string) {
	t.Helper()
	ca = filepath.Join(t.TempDir(), "cert.pem")
	cfg, _, err := config.Load(config.Sources{FileSystem: noConfig{}, Flags: map[string]string{
		"controlplane-url": "http://" + p.Addr(), "node-token-file": p.tokenFile(t, auth.AudienceControlPlane, time.Hour, "node.view:cluster:*", "node.manage:cluster:*"),
		"node-id": id, "node-advertise-addr": "127.0.0.1:7001", "node-client-addr": clientAddr,
		"quic-bind": "127.0.0.1:0", "quic-listeners": "1", "metrics-bind": "127.0.0.1:0", "tls-cert-export": ca,
		"durable-storage-dir": t.TempDir(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := brokerservice.Start(t.Context(), node.Options{Config: cfg, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s.ClientAddrs()[0], ca
}

// A member of a cluster tells who serves what; nodes, shards and plans are told
// by the control plane, each as objects that a script can read.
func TestVerbsOnAMember(t *testing.T) {
	const public = "127.0.0.1:5999" // what the broker says of itself; nobody connects there
	p := startPlane(t, map[string]string{"placement-settle-ms": "0"})
	ta := p.app(t, administrator()...)
	ta.runs(t, "namespace", "create", "default")
	ta.runs(t, "stream", "create", "orders", "--shards", "2")
	ta.runs(t, "cache", "create", "users")
	addr, ca := startMember(t, p, "b1", public)
	token := p.tokenFile(t, auth.AudienceBroker, time.Hour, "stream.publish:stream:acme/*", "stream.subscribe:stream:acme/*", "cache.read:cache:acme/*", "node.view:cluster:*")
	broker := newTestApp(t, map[string]string{"FELIX_BROKERS": addr, "FELIX_AUTH_TENANT": "acme", "FELIX_AUTH_TOKEN_FILE": token, "FELIX_CA_FILE": ca})

	var view topologyView
	waitFor(t, func() bool {
		broker.out.Reset()
		broker.errs.Reset()
		view = topologyView{}
		if broker.Run(t.Context(), []string{"topology", "orders", "--json"}) != ExitOK || json.Unmarshal(broker.out.Bytes(), &view) != nil {
			return false
		}
		served := keep(view.Shards, func(s topologyShard) bool { return s.Leader == "b1" && s.Addr == public && s.Unavailable == "" })
		return len(served) == 2 && len(view.Brokers) == 1 // the addresses of nodes are read now and then
	})
	if view.Shards[1].Shard != 1 || view.Brokers[0] != (topologyBroker{"b1", public}) {
		t.Errorf("%+v", view)
	}
	if out := broker.runs(t, "topology", "orders"); !strings.Contains(out, "b1      "+public) || !strings.Contains(out, "served") {
		t.Errorf("said %q", out)
	}
	waitFor(t, func() bool {
		return broker.Run(t.Context(), []string{"topology", "users", "--cache"}) == ExitOK && strings.Contains(broker.out.String(), "b1")
	})
	broker.fails(t, ExitNotFound, "topology", "nothing")
	if out := broker.runs(t, "whoami"); !strings.Contains(out, "brokers        accepted") {
		t.Errorf("said %q", out)
	}

	node := oneOf[apiclient.NodeView](t, ta, "node", "ls", "--json")
	if node.Node.NodeID != "b1" || node.Node.Spec.ClientAddr != public || node.Node.Status.Lifecycle != model.Live || len(node.Placement.Reasons) != 0 {
		t.Errorf("%+v", node)
	}
	if info := oneOf[apiclient.NodeView](t, ta, "node", "info", "b1", "--json"); info.Node.NodeID != "b1" {
		t.Errorf("%+v", info)
	}
	if shard := oneOf[model.Assignment](t, ta, "shard", "ls", "--name", "users", "--json"); shard.Leader != "b1" || shard.Kind != model.CacheShard {
		t.Errorf("%+v", shard)
	}
	if lines := strings.Count(ta.runs(t, "shard", "ls", "--leader", "b1", "--json"), "\n"); lines != 3 {
		t.Errorf("%d shards", lines)
	}
	if out := ta.runs(t, "shard", "ls", "--leader", "b2", "--json"); out != "" {
		t.Errorf("said %q", out)
	}
	if plan := oneOf[apiclient.Plan](t, ta, "placement", "plan", "--json"); len(plan.Items) != 0 {
		t.Errorf("%+v", plan)
	}
	if out := ta.runs(t, "placement", "plan"); !strings.Contains(out, "nothing to do") {
		t.Errorf("said %q", out)
	}
	if r := oneOf[apiclient.Replication](t, ta, "placement", "replication", "--json"); r.UnderReplicated != 0 || len(r.Items) != 0 {
		t.Errorf("%+v", r)
	}
	ta.runs(t, "stream", "create", "copied", "--replication", "2")
	waitFor(t, func() bool { return strings.Contains(ta.runs(t, "placement", "replication"), "copied/0") })
	if r := oneOf[apiclient.Replication](t, ta, "placement", "replication", "--json"); r.UnderReplicated != 1 || r.Items[0].DesiredReplicas != 2 {
		t.Errorf("%+v", r)
	}
	if moves := oneOf[apiclient.Moves](t, ta, "shard", "moves", "--json"); moves.Paused || len(moves.Items) != 0 {
		t.Errorf("%+v", moves)
	}
	ta.runs(t, "placement", "pause")
	if moves := oneOf[apiclient.Moves](t, ta, "shard", "moves", "--json"); !moves.Paused {
		t.Errorf("%+v", moves)
	}
	ta.fails(t, ExitUsage, "node", "ls", "--lifecycle", "asleep")
	ta.fails(t, ExitUsage, "node", "ls", "--label", "rack")
	ta.fails(t, ExitUsage, "shard", "move", "orders", "0")
	ta.fails(t, ExitUsage, "shard", "move", "orders", "-1", "--to", "b1")
	ta.fails(t, ExitRefused, "shard", "move", "orders", "0", "--to", "b1") // it is there
	ta.fails(t, ExitRefused, "shard", "move", "cancel", "orders", "0")
	ta.fails(t, ExitUsage, "node", "drain", "b1") // nobody to ask
	ta.fails(t, ExitRefused, "node", "rm", "b1", "--yes")
}

// oneOf runs a command that prints one object.
func oneOf[T any](t *testing.T, ta *testApp, args ...string) T {
	t.Helper()
	var object T
	out := ta.runs(t, args...)
	if err := json.Unmarshal([]byte(out), &object); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("felix %s: %q: %v", strings.Join(args, " "), out, err)
	}
	return object
}
