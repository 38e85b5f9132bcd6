package metadata

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
	"github.com/felixlog/felix/felixtest/idp"
)

// A plane is instances of a control plane, and whoever vouches for its users.
type plane struct {
	t         testing.TB
	idp       *idp.Provider
	instances []*process
	urls      []string

	operator, admin string // tokens for the API
	worker          string // a token for brokers
}

// newPlane prepares a plane with its first instance to come.
func newPlane(t testing.TB) *plane {
	t.Helper()
	return &plane{t: t, idp: idp.Start(t)}
}

// instance prepares a further instance; further settings win.
func (p *plane) instance(settings ...string) *process {
	p.t.Helper()
	addr := freeAddr(p.t)
	args := append([]string{
		"controlplane", "--json", "--bind-addr", addr, "--metrics-bind", "127.0.0.1:0", "--oidc-allow-insecure-http",
		"--shutdown-predrain-ms", "200", "--placement-settle-ms", "0", "--exchange-token-ttl-seconds", "86400",
		"--bootstrap-enabled", "--bootstrap-bind-addr", "127.0.0.1:0",
	}, settings...)
	i := newProcess(p.t, fmt.Sprintf("instance-%d", len(p.instances)+1), []string{"FELIX_BOOTSTRAP_TOKEN=" + bootstrapSecret}, args...)
	p.instances, p.urls = append(p.instances, i), append(p.urls, "http://"+addr)
	return i
}

// backends are where instances that replace each other keep the metadata.
var backends = map[string]func(t testing.TB, settings ...string) *plane{
	"raft": raftPlane, "postgres": postgresPlane,
}

// raftPlane is a running group of three.
func raftPlane(t testing.TB, settings ...string) *plane {
	t.Helper()
	p := newPlane(t)
	var peers []string
	for n := range 3 {
		peers = append(peers, fmt.Sprintf("%d=%s", n+1, freeAddr(t)))
	}
	for n := range 3 {
		_, addr, _ := strings.Cut(peers[n], "=")
		p.instance(append([]string{
			"--raft-node-id", fmt.Sprint(n + 1), "--raft-data-dir", filepath.Join(t.TempDir(), "raft"), "--raft-bind-addr", addr,
			"--raft-peers", strings.Join(peers, ","), "--raft-cluster-id", "test", "--raft-insecure-peers",
		}, settings...)...).launch("--raft-initial-cluster-state", "new")
	}
	p.begin()
	return p
}

// postgresPlane is three running instances on one database.
func postgresPlane(t testing.TB, settings ...string) *plane {
	t.Helper()
	p := newPlane(t)
	url := pgtest.Start(t)
	for range 3 {
		p.instance(append([]string{"--postgres-url", url}, settings...)...).launch()
	}
	p.begin()
	return p
}

// lonePlane is one running instance with its metadata in dir.
func lonePlane(t testing.TB, dir string, settings ...string) *plane {
	t.Helper()
	p := newPlane(t)
	p.instance(append([]string{"--raft-data-dir", dir}, settings...)...).launch()
	p.begin()
	return p
}

// begin waits for the instances and makes the tenants and tokens.
func (p *plane) begin() {
	p.t.Helper()
	p.up()
	p.beginOperators()
	p.beginShop()
}

// up waits for instances that were launched.
func (p *plane) up() {
	p.t.Helper()
	for n := range p.instances {
		p.instances[n].serving()
		p.awaitReady(n)
	}
}

// url names all instances.
func (p *plane) url() string { return strings.Join(p.urls, ",") }

// urlFrom names all instances, beginning with the n-th.
func (p *plane) urlFrom(n int) string {
	n %= len(p.urls)
	return strings.Join(append(append([]string(nil), p.urls[n:]...), p.urls[:n]...), ",")
}

// client asks all instances, and gives up a call after many rounds.
func (p *plane) client(token string) *apiclient.Client { return newClient(p.t, p.url(), token) }

func newClient(t testing.TB, url, token string) *apiclient.Client {
	t.Helper()
	c, err := apiclient.New(apiclient.Options{
		URL: url, Token: func(context.Context) (string, error) { return token, nil }, Timeout: 5 * time.Second,
		Retry: apiclient.Retry{Attempts: 1000, Base: 20 * time.Millisecond, Max: 200 * time.Millisecond},
	})
	must(t, err)
	t.Cleanup(c.CloseIdle)
	return c
}

// onceClient leaves it to the caller to repeat what was not done.
func onceClient(t testing.TB, url, token string) *apiclient.Client {
	t.Helper()
	c, err := apiclient.New(apiclient.Options{URL: url, Token: func(context.Context) (string, error) { return token, nil }, Timeout: 5 * time.Second})
	must(t, err)
	t.Cleanup(c.CloseIdle)
	return c
}

// awaitReady waits until the n-th instance is ready.
func (p *plane) awaitReady(n int) {
	p.t.Helper()
	c := onceClient(p.t, p.urls[n], "")
	eventually(p.t, p.instances[n].name+" ready", func() error {
		ctx, cancel := bounded(p.t)
		defer cancel()
		return c.Ready(ctx)
	})
}

// restart starts the n-th instance again and waits until it is ready.
func (p *plane) restart(n int) {
	p.t.Helper()
	p.instances[n].start()
	p.awaitReady(n)
}

// leader is the instance that leads the group; false while there is none.
func (p *plane) leader() (int, bool) {
	for n, i := range p.instances {
		if i.running() && !i.frozen && strings.Contains(metrics(i), "\nfelix_meta_raft_is_leader 1\n") {
			return n, true
		}
	}
	return 0, false
}

// metrics is what a process tells of itself, nothing if it does not answer.
func metrics(i *process) string {
	c := http.Client{Timeout: 5 * time.Second}
	res, err := c.Get(i.said.Admin + "/metrics")
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(res.Body, 4<<20))
	return string(data)
}
