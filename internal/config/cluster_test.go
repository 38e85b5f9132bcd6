package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestClusterSettings(t *testing.T) {
	cfg, warnings := load(t, Sources{Environ: []string{
		"FELIX_CONTROLPLANE_URL=https://a:8443, https://b:8443", "FELIX_CONTROLPLANE_CA=/ca.pem", "FELIX_NODE_ID=broker-1",
		"FELIX_NODE_ADVERTISE_ADDR=10.0.0.4:7000", "FELIX_CLIENT_ADVERTISE_ADDR=[fd00::1]:5000", "FELIX_NODE_TOKEN_FILE=/token",
		"FELIX_NODE_LABELS=rack=a1, tier=hot=1", "FELIX_NODE_ZONE=z", "FELIX_NODE_MAX_SHARDS=9", "FELIX_SHUTDOWN_HANDOFF_TIMEOUT_MS=0",
	}})
	want := Cluster{
		URL: "https://a:8443, https://b:8443", CAFile: "/ca.pem", SyncInterval: cfg.Cluster.SyncInterval, NodeID: "broker-1",
		AdvertiseAddr: "10.0.0.4:7000", ClientAddr: "[fd00::1]:5000", Region: "local", Zone: "z",
		Labels: map[string]string{"rack": "a1", "tier": "hot=1"}, MaxShards: 9, Weight: 1, TokenFile: "/token",
	}
	if !reflect.DeepEqual(cfg.Cluster, want) || cfg.Cluster.SyncInterval.Seconds() != 2 || cfg.Shutdown.Handoff != 0 || len(warnings) > 0 {
		t.Errorf("cluster is %+v, handoff %s, warnings %q", cfg.Cluster, cfg.Shutdown.Handoff, warnings)
	}
}

func TestClusterSettingsThatCannotWork(t *testing.T) {
	const url, token, id, addr = "FELIX_CONTROLPLANE_URL=http://a:1", "FELIX_NODE_TOKEN=x.y.z", "FELIX_NODE_ID=b1", "FELIX_NODE_ADVERTISE_ADDR=1.2.3.4:5"
	for _, tt := range []struct {
		environ []string
		want    string // in the error; "" for none
	}{
		{[]string{url, token}, ""},
		{[]string{url, token, id, addr}, ""},
		{[]string{url}, "without a credential"},
		{[]string{url, token, "FELIX_NODE_TOKEN_FILE=/t"}, "set one"},
		{[]string{url, token, "FELIX_CATALOG=/c.yml"}, "unset the other"},
		{[]string{url, token, "FELIX_CONTROLPLANE_CA=/ca"}, "not https"},
		{[]string{url, token, id}, "without node_advertise_addr"},
		{[]string{url, token, "FELIX_NODE_ID=B/1", addr}, "want 1 to 253"},
		{[]string{id, addr}, "without controlplane_url"},
		{[]string{url, token, id, "FELIX_NODE_ADVERTISE_ADDR=host:5"}, "want ip:port"},
		{[]string{url, token, id, addr, "FELIX_NODE_CLIENT_ADDR=1.2.3.4:0"}, "ip:port"},
		{[]string{url, token, "FELIX_NODE_LABELS=a=1,a=2"}, "each name once"},
		{[]string{url, token, "FELIX_NODE_LABELS=a"}, "each name once"},
		{[]string{url, token, "FELIX_CONTROLPLANE_SYNC_INTERVAL_MS=0"}, "milliseconds"},
	} {
		_, _, err := Load(Sources{FileSystem: files{}, Environ: tt.environ})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.environ, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "x.y.z") {
			t.Errorf("%q: the error shows the token", err)
		}
	}
}

func TestNodeTokenIsNotPrinted(t *testing.T) {
	cfg, _ := load(t, Sources{Environ: []string{"FELIX_CONTROLPLANE_URL=http://a:1", "FELIX_NODE_TOKEN=secret-token"}})
	var out strings.Builder
	if err := Print(&out, cfg); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "secret-token") || !strings.Contains(out.String(), "node_token: set, not shown") {
		t.Errorf("printed\n%s", out.String())
	}
}
