package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/internal/auth"
)

func TestStreamVerbs(t *testing.T) {
	p := startPlane(t, nil)
	ta := p.app(t, administrator()...)
	ta.fails(t, ExitNotFound, "stream", "create", "orders")
	ta.runs(t, "namespace", "create", "default")
	out := ta.runs(t, "stream", "create", "orders", "--shards", "4", "--retention-secs", "3600", "--routing", "jump-hash")
	if !strings.Contains(out, "orders with 4 shards") {
		t.Errorf("said %q", out)
	}
	if out = ta.runs(t, "stream", "create", "orders", "--shards", "4", "--retention-secs", "3600", "--routing", "jump-hash"); !strings.Contains(out, "already") {
		t.Errorf("made again: %q", out)
	}
	if said := ta.fails(t, ExitRefused, "stream", "create", "orders", "--shards", "5"); !strings.Contains(said, "shards is 4, not 5") {
		t.Errorf("made with other settings: %q", said)
	}
	var s model.Stream
	if err := json.Unmarshal([]byte(ta.runs(t, "stream", "info", "orders", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Shards != 4 || s.Retention.MaxAgeSeconds == nil || *s.Retention.MaxAgeSeconds != 3600 || s.Routing != model.JumpHash || !s.Durable || s.UID == "" {
		t.Errorf("%+v", s)
	}
	ta.runs(t, "stream", "set", "orders", "--retention-bytes", "1048576")
	out = ta.runs(t, "stream", "set", "orders", "--retention-secs", "default")
	if !strings.Contains(out, "retention: 1 MiB, was 1h0m0s, 1 MiB") {
		t.Errorf("changed: %q", out)
	}
	if said := ta.fails(t, ExitUsage, "stream", "set", "orders"); !strings.Contains(said, "nothing to change") {
		t.Errorf("said %q", said)
	}
	ta.fails(t, ExitUsage, "stream", "create", "x", "--retention-secs", "0")
	ta.fails(t, ExitUsage, "stream", "create", "x", "--kind", "table")
	for _, flag := range []string{"--kind", "--durable", "--consistency", "--delivery", "--routing", "--retention-secs"} {
		ta.fails(t, ExitUsage, "stream", "create", "x", flag, "") // a variable that is not set
	}
	if said := ta.fails(t, ExitUsage, "stream", "create", "x", "--durable", "no", "--kind", "x"); !strings.Contains(said, "--durable") || !strings.Contains(said, "--kind") {
		t.Errorf("said %q", said)
	}
	for range 2 { // the defaults, and what is raised to them
		ta.runs(t, "stream", "create", "plain", "--replication", "0")
	}
	ta.runs(t, "stream", "create", "plain", "--routing", "modulo", "--json")
	if said := ta.fails(t, ExitRefused, "stream", "create", "plain", "--retention-bytes", "1048577", "--kind", "queue"); !strings.Contains(said, "kind is stream, not queue; retention is the broker's, not 1,048,577 bytes") {
		t.Errorf("said %q", said)
	}
	if out := ta.runs(t, "stream", "set", "plain", "--durable", "true"); out != "nothing changed\n" {
		t.Errorf("said %q", out)
	}
	ta.fails(t, ExitNotFound, "stream", "set", "nothing", "--durable", "true")
	ta.fails(t, ExitUsage, "stream", "set", "nothing")
	ta.runs(t, "stream", "rm", "plain", "-y")
	ta.fails(t, ExitUsage, "stream", "create", "a/b")
	ta.runs(t, "stream", "create", "memory", "--durable", "false", "--delivery", "at-most-once", "--kind", "queue")
	out = ta.runs(t, "stream", "ls")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "memory") || !strings.HasPrefix(lines[2], "orders") {
		t.Errorf("listed %q", out)
	}
	ta.fails(t, ExitUsage, "stream", "rm", "orders") // nobody to ask
	ta.runs(t, "stream", "rm", "orders", "--yes")
	ta.fails(t, ExitNotFound, "stream", "info", "orders")
	ta.fails(t, ExitNotFound, "stream", "rm", "orders", "--yes")
}

func TestCacheVerbs(t *testing.T) {
	ta := startPlane(t, nil).app(t, administrator()...)
	ta.runs(t, "namespace", "create", "default")
	ta.runs(t, "cache", "create", "users", "--shards", "2")
	ta.runs(t, "cache", "create", "users", "--shards", "2")
	if said := ta.fails(t, ExitRefused, "cache", "create", "users", "--shards", "3"); !strings.Contains(said, "shards is 2, not 3") {
		t.Errorf("said %q", said)
	}
	ta.fails(t, ExitUsage, "cache", "create", "x", "--consistency", "")
	ta.fails(t, ExitUsage, "cache", "rm", "users") // nobody to ask
	ta.runs(t, "cache", "set", "users", "--display-name", "User profiles")
	ta.fails(t, ExitUsage, "cache", "set", "users")
	if out := ta.runs(t, "cache", "ls"); !strings.Contains(out, "users  2") || !strings.Contains(out, "User profiles") {
		t.Errorf("listed %q", out)
	}
	ta.runs(t, "cache", "rm", "users", "--yes")
	if out := ta.runs(t, "cache", "ls", "--json"); out != "" {
		t.Errorf("listed %q", out)
	}
}

func TestTenantAndNamespaceVerbs(t *testing.T) {
	ta := startPlane(t, nil).app(t, administrator()...)
	ta.runs(t, "tenant", "create", "other", "--display-name", "Other Inc.")
	ta.fails(t, ExitRefused, "tenant", "create", "other")
	if out := ta.runs(t, "tenant", "ls"); !strings.Contains(out, "acme") || !strings.Contains(out, "Other Inc.") {
		t.Errorf("listed %q", out)
	}
	ta.runs(t, "tenant", "info", "other")
	ta.fails(t, ExitNotFound, "tenant", "info", "nobody")
	ta.runs(t, "namespace", "create", "billing")
	ta.runs(t, "namespace", "info", "billing")
	ta.fails(t, ExitNotFound, "namespace", "info", "shipping")
	ta.runs(t, "namespace", "rm", "billing", "--yes")
	if out := ta.runs(t, "namespace", "ls", "--json"); out != "" {
		t.Errorf("listed %q", out)
	}
	ta.runs(t, "tenant", "rm", "other", "--yes")
	ta.fails(t, ExitNotFound, "tenant", "rm", "other", "--yes")
}

// A token that may not says so, with what to do, and exit code 4.
func TestRefusedVerbs(t *testing.T) {
	p := startPlane(t, nil)
	ta := p.app(t, "stream.manage:stream:acme/default/orders")
	if said := ta.fails(t, ExitRefused, "tenant", "ls"); !strings.Contains(said, "forbidden") || !strings.Contains(said, "felix whoami") {
		t.Errorf("said %q", said)
	}
	expired := newTestApp(t, map[string]string{
		"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme",
		"FELIX_CONTROLPLANE_TOKEN_FILE": p.tokenFile(t, auth.AudienceControlPlane, -time.Minute, "node.view:cluster:*"),
	})
	if said := expired.fails(t, ExitRefused, "node", "ls"); !strings.Contains(said, "felix login") {
		t.Errorf("said %q", said)
	}
	nobody := newTestApp(t, map[string]string{"FELIX_CONTROLPLANE_URL": "http://127.0.0.1:1", "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN": "x"})
	nobody.fails(t, ExitUnreachable, "node", "ls")
	newTestApp(t, nil).fails(t, ExitUsage, "node", "ls")
}

func TestRBACVerbs(t *testing.T) {
	ta := startPlane(t, nil).app(t, administrator()...)
	ta.runs(t, "rbac", "policy", "add", "role:reader", "stream:acme/default/*", "stream.subscribe")
	ta.fails(t, ExitUsage, "rbac", "policy", "add", "role:reader", "stream:acme/default/*", "stream.eat")
	for _, object := range []string{"stream:acme", "stream:acme/default", "cache:acme/default/c", "tenant:acme", "x"} { // told before anybody is asked
		away := newTestApp(t, map[string]string{"FELIX_CONTROLPLANE_URL": "http://127.0.0.1:1", "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN": "x"})
		away.fails(t, ExitUsage, "rbac", "policy", "add", "role:reader", object, "stream.subscribe")
	}
	if out := ta.runs(t, "-q", "rbac", "principal", "https://idp.example", "ann"); out != auth.PrincipalID("https://idp.example", "ann")+"\n" {
		t.Errorf("printed %q", out)
	}
	ta.fails(t, ExitRefused, "rbac", "policy", "add", "role:reader", "cluster:*", "node.view")
	ann := strings.TrimSpace(ta.runs(t, "rbac", "principal", "https://idp.example", "ann"))
	if ann != auth.PrincipalID("https://idp.example", "ann") {
		t.Errorf("principal %q", ann)
	}
	ta.runs(t, "rbac", "grouping", "add", ann, "role:reader")
	if out := ta.runs(t, "rbac", "policy", "ls", "--subject", "role:reader"); !strings.Contains(out, "stream.subscribe") {
		t.Errorf("listed %q", out)
	}
	if out := ta.runs(t, "rbac", "grouping", "ls", "--user", ann, "--json"); !strings.Contains(out, `"role":"role:reader"`) {
		t.Errorf("listed %q", out)
	}
	ta.runs(t, "rbac", "grouping", "rm", ann, "role:reader")
	ta.runs(t, "rbac", "policy", "rm", "role:reader", "stream:acme/default/*", "stream.subscribe")
	ta.fails(t, ExitNotFound, "rbac", "policy", "rm", "role:reader", "stream:acme/default/*", "stream.subscribe")
}

func TestKeyVerbs(t *testing.T) {
	ta := startPlane(t, nil).app(t, administrator()...)
	var keys struct {
		Current   string
		Verifying []string
	}
	read := func(args ...string) {
		t.Helper()
		if err := json.Unmarshal([]byte(ta.runs(t, append([]string{"tenant", "keys"}, args...)...)), &keys); err != nil {
			t.Fatal(err)
		}
	}
	read("ls", "--json")
	first := keys.Current
	read("stage", "--json")
	if keys.Current != first || len(keys.Verifying) != 2 {
		t.Fatalf("%+v", keys)
	}
	staged := keys.Verifying[0] + keys.Verifying[1]
	staged = strings.Replace(staged, first, "", 1)
	read("activate", staged, "--json")
	if keys.Current != staged {
		t.Fatalf("%+v", keys)
	}
	ta.fails(t, ExitRefused, "tenant", "keys", "retire", staged)
	read("retire", first, "--json")
	if len(keys.Verifying) != 1 {
		t.Fatalf("%+v", keys)
	}
	ta.fails(t, ExitRefused, "tenant", "ls") // signed by the retired key
}

func TestNodeAndPlacementVerbs(t *testing.T) {
	p := startPlane(t, map[string]string{"placement-settle-ms": "0"})
	ta := p.app(t, administrator()...)
	for _, id := range []string{"b1", "b2"} {
		spec := model.NodeSpec{AdvertiseAddr: "127.0.0.1:700" + id[1:], ClientAddr: "127.0.0.1:500" + id[1:], Region: "local", Labels: map[string]string{"rack": id}, Capacity: model.Capacity{Weight: 1}}
		if _, err := p.Store().RegisterNode(t.Context(), id, spec); err != nil {
			t.Fatal(err)
		}
	}
	ta.runs(t, "namespace", "create", "default")
	ta.runs(t, "stream", "create", "orders", "--shards", "2")
	waitFor(t, func() bool { return strings.Count(ta.runs(t, "shard", "ls", "--name", "orders"), "orders/") == 2 })
	if out := ta.runs(t, "node", "ls", "--label", "rack=b2"); strings.Contains(out, "b1") || !strings.Contains(out, "b2    live") {
		t.Errorf("listed %q", out)
	}
	ta.runs(t, "node", "info", "b1")
	ta.fails(t, ExitNotFound, "node", "info", "b9")
	ta.runs(t, "shard", "moves")
	ta.runs(t, "placement", "plan")
	ta.runs(t, "placement", "replication", "--json")
	if out := ta.runs(t, "placement", "pause", "--json"); out != "{\"paused\":true}\n" {
		t.Errorf("said %q", out)
	}
	ta.runs(t, "placement", "resume")
	ta.fails(t, ExitNotFound, "shard", "move", "orders", "7", "--to", "b2")
	ta.fails(t, ExitUsage, "placement", "abandon", "orders", "0")
	ta.runs(t, "node", "drain", "b1", "--yes")
	if out := ta.runs(t, "node", "ls", "--lifecycle", "draining"); !strings.Contains(out, "b1") {
		t.Errorf("listed %q", out)
	}
	ta.runs(t, "node", "deregister", "b2", "--yes")
}

// Somebody begins tenants, and a second time it is refused.
func TestTenantInit(t *testing.T) {
	secret := strings.Repeat("s", 40)
	p := startPlane(t, map[string]string{"bootstrap-enabled": "true", "bootstrap-token": secret})
	ta := newTestApp(t, map[string]string{"FELIX_BOOTSTRAP_TOKEN": secret})
	args := []string{"tenant", "init", "ops", "--operator", "--bootstrap-url", "http://" + p.BootstrapAddr(), "--issuer", "https://idp.example", "--audience", "felix", "--admin", "alice"}
	ta.runs(t, args...)
	ta.fails(t, ExitRefused, args...)
	policies, err := p.Store().Policies(t.Context(), "ops")
	if err != nil {
		t.Fatal(err)
	}
	found := keep(policies, func(p model.Policy) bool { return p.Object == "cluster:*" })
	if len(found) != 3 {
		t.Errorf("the operators may %v", found)
	}
	wrong := newTestApp(t, map[string]string{"FELIX_BOOTSTRAP_TOKEN": "guess"})
	args[2] = "more"
	if said := wrong.fails(t, ExitRefused, args...); strings.Contains(said, "guess") {
		t.Errorf("the secret is told: %q", said)
	}
	newTestApp(t, nil).fails(t, ExitUsage, args...)
	for _, missing := range []string{"--issuer", "--audience", "--admin"} {
		at := slices.Index(args, missing)
		ta.fails(t, ExitUsage, slices.Delete(slices.Clone(args), at, at+2)...)
	}
	// The authorities of the API's TLS do not matter to a listener without.
	ta.runs(t, append(slices.Clone(args), "--controlplane-ca-file", "gone.pem", "--broker-group", "brokers")...)
	if policies, err = p.Store().Policies(t.Context(), "more"); err != nil || len(keep(policies, func(p model.Policy) bool { return p.Object == "cluster:*" && p.Subject == brokerRole })) != 2 {
		t.Errorf("brokers may %v (%v)", policies, err)
	}
}

func TestTokenInspect(t *testing.T) {
	p := startPlane(t, nil)
	ta := newTestApp(t, nil)
	file := p.tokenFile(t, auth.AudienceBroker, time.Hour, "stream.publish:stream:acme/default/orders")
	out := ta.runs(t, "token", "inspect", file)
	if !strings.Contains(out, "stream.publish:stream:acme/default/orders") || !strings.Contains(out, "felix-broker") {
		t.Errorf("said %q", out)
	}
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if signature := token[len(token)-20 : len(token)-1]; strings.Contains(out, string(signature)) {
		t.Error("the token is printed")
	}
	ta.Stdin = strings.NewReader(string(token))
	if out = ta.runs(t, "token", "inspect", "-", "--json"); !strings.Contains(out, `"expired":false`) {
		t.Errorf("said %q", out)
	}
	ta.Stdin = strings.NewReader("a.b.c")
	ta.fails(t, ExitUsage, "token", "inspect", "-")
}
