package config

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func loadControlPlane(t *testing.T, s Sources) *ControlPlane {
	t.Helper()
	if s.FileSystem == nil {
		s.FileSystem = files{}
	}
	cfg, warnings, err := LoadControlPlane(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	return cfg
}

func TestControlPlaneDefaults(t *testing.T) {
	cfg := loadControlPlane(t, Sources{})
	if cfg.Backend != BackendMemory || cfg.Liveness.Margin != 3750*time.Millisecond || cfg.Bind != "0.0.0.0:8443" ||
		!slices.Equal(cfg.Auth.Algorithms, []string{"ES256"}) || cfg.Auth.TokenTTL != 15*time.Minute || cfg.Moves.Concurrent != 1 {
		t.Errorf("defaults: %+v", cfg)
	}
	if b := loadControlPlane(t, Sources{Flags: map[string]string{"raft-data-dir": "/d"}}).Backend; b != BackendRaft {
		t.Errorf("with a data directory the backend is %s", b)
	}
	if b := loadControlPlane(t, Sources{Environ: []string{"DATABASE_URL=postgres://h/d"}}).Backend; b != BackendPostgres {
		t.Errorf("with a database the backend is %s", b)
	}
}

// A control plane may share its environment with a broker and a command line.
func TestControlPlaneBearsABrokersEnvironment(t *testing.T) {
	loadControlPlane(t, Sources{Environ: []string{
		"FELIX_QUIC_BIND=0.0.0.0:5000", "FELIX_BROKERS=a:1", "FELIX_DURABLE_OFFLOAD_DIR=/x", "FELIX_NODE_ID=b1",
	}})
}

func TestControlPlaneFileNests(t *testing.T) {
	const text = `
region_id: eu
storage: {backend: raft}
raft:
  data_dir: /var/lib/felix
  election_timeout_min_ms: 1000
bootstrap.bind_addr: 127.0.0.1:1
`
	cfg := loadControlPlane(t, Sources{File: "cp.yml", FileSystem: files{"cp.yml": text}})
	if cfg.Region != "eu" || cfg.Backend != BackendRaft || cfg.Raft.DataDir != "/var/lib/felix" ||
		cfg.Raft.Election != time.Second || cfg.Bootstrap.Bind != "127.0.0.1:1" {
		t.Errorf("%+v", cfg)
	}
	var printed bytes.Buffer
	if err := PrintControlPlane(&printed, cfg); err != nil {
		t.Fatal(err)
	}
	again := loadControlPlane(t, Sources{File: "cp.yml", FileSystem: files{"cp.yml": printed.String()}})
	var twice bytes.Buffer
	if err := PrintControlPlane(&twice, again); err != nil || twice.String() != printed.String() {
		t.Errorf("printed and loaded again it is another one (%v):\n%s\n%s", err, &printed, &twice)
	}
}

func TestControlPlaneRefuses(t *testing.T) {
	token := strings.Repeat("x", 32)
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"unknown key":          {"regionid: x", "did you mean region_id?"},
		"unknown nested key":   {"raft: {data_dri: x}", "did you mean raft.data_dir?"},
		"twice":                {"raft: {data_dir: x}\nraft.data_dir: y", "already set"},
		"half a certificate":   {"tls_cert: x", "without tls_key"},
		"expiry":               {"node_liveness: {expiry_timeout_ms: 5000}", "every node would expire"},
		"margin":               {"node_liveness: {regrant_margin_ms: 3749}", "raise it to 3750"},
		"bootstrap":            {"bootstrap: {enabled: true}", "without bootstrap.token"},
		"previous token":       {"bootstrap: {previous_token: x}", "without bootstrap.token"},
		"dev tokens":           {"bootstrap: {dev_tokens: true, bind_addr: '0.0.0.0:1'}", "loopback"},
		"peers alone":          {"raft: {data_dir: x, peers: '1=a:1'}", "without raft.node_id"},
		"peers without secret": {"raft: {data_dir: x, peers: '1=a:1', node_id: 1, bind_addr: 'a:1', cluster_id: c}", "without raft.peer_token"},
		"short secret":         {"raft: {data_dir: x, peers: '1=a:1', node_id: 1, bind_addr: 'a:1', cluster_id: c, peer_token: short}", "shorter than 32"},
		"postgres":             {"storage: {backend: postgres}", "without postgres.url"},
		"raft":                 {"storage: {backend: raft}", "without raft.data_dir"},
		"algorithm":            {"oidc_allowed_algorithms: 'ES256,none'", "oidc_allowed_algorithms"},
		"no algorithm":         {"oidc_allowed_algorithms: ''", "oidc_allowed_algorithms"},
		"bridge":               {"region_bridges: 'a>a'", "region_bridges"},
		"feeds":                {"change_retention_max_rows: 10", "less than changes_limit"},
		"deep":                 {"raft: {data_dir: {x: {y: 1}}}", "raft.data_dir"},
		"too clever groups":    {"", "FELIX_CONTROLPLANE_LEGACY_UNSCOPED_GROUPS"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Sources{File: "cp.yml", FileSystem: files{"cp.yml": c.text}}
			if name == "too clever groups" {
				s.Environ = []string{"FELIX_CONTROLPLANE_LEGACY_UNSCOPED_GROUPS=1"}
			}
			_, _, err := LoadControlPlane(s)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something of %q", err, c.want)
			}
		})
	}
	loadControlPlane(t, Sources{File: "cp.yml", FileSystem: files{"cp.yml": "raft: {data_dir: x, peers: '1=a:1', node_id: 1, bind_addr: 'a:1', cluster_id: c, peer_token: " + token + "}"}})
}

func TestControlPlaneSaysWhatHasNoEffect(t *testing.T) {
	_, warnings, err := LoadControlPlane(Sources{FileSystem: files{}, Environ: []string{"FELIX_RAFT_HEARTBEAT_MS=150"}})
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "no effect") {
		t.Errorf("%q, %v", warnings, err)
	}
}

func TestControlPlaneMistypedVariable(t *testing.T) {
	_, _, err := LoadControlPlane(Sources{FileSystem: files{}, Environ: []string{"FELIX_RAFT_DATADIR=/x"}})
	if err == nil || !strings.Contains(err.Error(), "FELIX_RAFT_DATA_DIR") {
		t.Errorf("got %v", err)
	}
}

// Secrets are neither printed nor quoted.
func TestControlPlaneKeepsSecrets(t *testing.T) {
	const secret = "hunter2hunter2hunter2hunter2hunter2"
	flags := map[string]string{}
	for _, s := range ControlPlaneSettings() {
		if s.Secret {
			flags[s.Flag()] = secret
		}
	}
	if len(flags) < 4 {
		t.Fatalf("%d secrets", len(flags))
	}
	cfg := loadControlPlane(t, Sources{Flags: flags})
	var printed bytes.Buffer
	if err := PrintControlPlane(&printed, cfg); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(printed.String(), secret) {
		t.Errorf("a secret is printed:\n%s", &printed)
	}
	flags["raft-peer-token"] = "short-but-secret"
	flags["raft-data-dir"], flags["raft-peers"] = "x", "1=a:1"
	flags["storage-backend"] = "raft"
	_, _, err := LoadControlPlane(Sources{Flags: flags, FileSystem: files{}})
	if err == nil || strings.Contains(err.Error(), "short-but-secret") || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}
