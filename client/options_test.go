package client

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// configured applies options the way Dial does.
func configured(opts ...Option) (config, error) {
	c := defaultConfig()
	for _, o := range opts {
		if err := o.applyClient(&c); err != nil {
			return c, err
		}
	}
	c.fill()
	return c, c.validate()
}

func base(opts ...Option) []Option {
	return append([]Option{WithTenant("t1"), WithToken("x")}, opts...)
}

func TestDefaultsAreValid(t *testing.T) {
	c, err := configured(base()...)
	if err != nil {
		t.Fatal(err)
	}
	if c.namespace != "default" || c.maxFrame != 16<<20 || c.inflightBytes != 4<<20 || c.renewable {
		t.Errorf("defaults %+v", c)
	}
}

func TestValidateNamesBothNumbers(t *testing.T) {
	cases := []struct {
		opts []Option
		want []string
	}{
		{nil, []string{"tenant", "no token"}},
		{base(WithNamespace("a b")), []string{"namespace", "white space"}},
		{base(WithMaxFrame(100)), []string{"maximum frame is 100 bytes", "least is 1024 bytes"}},
		{base(WithMaxFrame(2 << 30)), []string{"2147483648", "most is 1073741824"}},
		{base(WithPools(Pools{PublishConns: 65})), []string{"publish connections is 65", "most is 64"}},
		{base(WithPools(Pools{EventConns: -1})), []string{"event connections is -1", "least is 1"}},
		{base(WithKeepAlive(4*time.Second, 6*time.Second)), []string{"keep-alive period is 4000 ms", "most is 3000 ms"}},
		{base(WithReconnect(ReconnectPolicy{Initial: time.Second, Max: time.Millisecond})), []string{"longest reconnect wait is 1 ms", "least is 1000 ms"}},
		{base(WithCAFile("a"), WithCAPEM([]byte("b"))), []string{"more than one"}},
		{base(WithClientCertificate("a", "")), []string{"both its certificate and its key"}},
		{base(WithPublishInflight(1), WithAckTimeout(0)), []string{"unanswered publish bytes is 1 bytes", "ack timeout is 0 ms"}},
	}
	for _, tc := range cases {
		_, err := configured(tc.opts...)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v does not say %q", err, want)
			}
		}
	}
}

func TestSeeds(t *testing.T) {
	got, err := checkSeeds([]string{"a:1, b:2", "", "[::1]:3"})
	if err != nil || strings.Join(got, " ") != "a:1 b:2 [::1]:3" {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range [][]string{nil, {""}, {"host"}, {"host:"}, {"::1"}} {
		if _, err := checkSeeds(bad); err == nil {
			t.Errorf("%q is taken for seeds", bad)
		}
	}
}

func TestServerName(t *testing.T) {
	for seed, want := range map[string]string{"broker.example:7440": "broker.example", "127.0.0.1:7440": "localhost", "[::1]:1": "localhost"} {
		c, err := configured(base()...)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.tlsClient(seed)
		if err != nil {
			t.Fatal(err)
		}
		if got.ServerName != want || got.NextProtos != nil || got.MinVersion != tls.VersionTLS13 {
			t.Errorf("%s: server name %q, protocols %v, version %#x", seed, got.ServerName, got.NextProtos, got.MinVersion)
		}
	}
	c, err := configured(base(WithServerName("other"), WithALPN(), WithTLSConfig(&tls.Config{ServerName: "mine"}), WithCAPEM(testCA(t).CAPEM()))...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.tlsClient("h:1")
	if err != nil {
		t.Fatal(err)
	}
	if got.ServerName != "other" || len(got.NextProtos) != 1 || got.NextProtos[0] != "felix/1" || got.RootCAs == nil {
		t.Errorf("TLS %q %v %v", got.ServerName, got.NextProtos, got.RootCAs)
	}
	c.serverName = ""
	if got, err := c.tlsClient("h:1"); err != nil || got.ServerName != "mine" {
		t.Errorf("server name %q, %v", got.ServerName, err)
	}
}

func TestEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(" from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configured(WithEnvironment([]string{
		"FELIX_AUTH_TENANT=acme", "FELIX_NAMESPACE=n", "FELIX_AUTH_TOKEN_FILE=" + file,
		"FELIX_SERVER_NAME=s", "FELIX_CA_FILE=ca.pem",
		"FELIX_PUB_CONN_POOL=2", "FELIX_PUB_STREAMS_PER_CONN=3", "FELIX_CACHE_CONN_POOL=4", "FELIX_CACHE_STREAMS_PER_CONN=5",
		"FELIX_EVENT_CONN_POOL=6", "FELIX_PUBLISH_INFLIGHT_BYTES=70000", "FELIX_MAX_FRAME_BYTES=80000",
		"FELIX_EVENT_CONN_RECV_WINDOW=90000", "FELIX_EVENT_STREAM_RECV_WINDOW=80000",
		"FELIX_CLIENT_SUB_QUEUE_CAPACITY=11", "FELIX_CLIENT_SUB_QUEUE_POLICY=drop_old",
		"FELIX_KEEPALIVE_MS=1000", "FELIX_MAX_IDLE_TIMEOUT_MS=9000", "FELIX_EVENT_ROUTER_MAX_PENDING=12", "OTHER=1", "FELIX_CACHE_CONN_RECV_WINDOW=",
	}), WithNamespace("override"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.token(context.Background())
	if err != nil || token != "from-file" || !c.renewable {
		t.Errorf("token %q %v", token, err)
	}
	if c.tenant != "acme" || c.namespace != "override" || c.serverName != "s" || c.caFile != "ca.pem" {
		t.Errorf("names %q %q %q %q", c.tenant, c.namespace, c.serverName, c.caFile)
	}
	want := Pools{PublishConns: 2, PublishStreams: 3, CacheConns: 4, CacheStreams: 5, EventConns: 6, PendingEventStreams: 12}
	if c.pools != want {
		t.Errorf("pools %+v, want %+v", c.pools, want)
	}
	if c.inflightBytes != 70000 || c.maxFrame != 80000 || c.windows.EventConn != 90000 || c.windows.EventStream != 80000 ||
		c.subBuffer != 11 || c.subPolicy != DropOld || c.keepAlive != time.Second || c.idleTimeout != 9*time.Second {
		t.Errorf("tuning %+v", c)
	}
	_, err = configured(base(WithEnvironment([]string{"FELIX_PUB_CONN_POOL=many", "FELIX_CLIENT_SUB_QUEUE_POLICY=maybe"}))...)
	for _, want := range []string{`FELIX_PUB_CONN_POOL="many"`, "drop_new"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}
