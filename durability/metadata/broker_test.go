package metadata

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
)

// A brokerProcess is a broker that follows a plane.
type brokerProcess struct {
	*process
	p     *plane
	id    string
	addr  string // for clients
	dir   string // of its logs
	cert  string // what clients trust
	token string // the file with its credential
}

// broker prepares a broker that is a member of the cluster. Its own directory is
// its storage.
func (p *plane) broker(id string, settings ...string) *brokerProcess {
	p.t.Helper()
	return p.brokerAt(p.url(), id, settings...)
}

// brokerAt prepares a broker that looks for its control plane somewhere.
func (p *plane) brokerAt(url, id string, settings ...string) *brokerProcess {
	p.t.Helper()
	dir := p.t.TempDir()
	b := &brokerProcess{
		p: p, id: id, addr: freeAddr(p.t), dir: filepath.Join(dir, "data"),
		cert: filepath.Join(dir, "cert.pem"), token: filepath.Join(dir, "token"),
	}
	b.credential(p.operator)
	args := append([]string{
		"broker", "--json", "--data", b.dir, "--controlplane-url", url, "--node-id", id,
		"--node-advertise-addr", freeAddr(p.t), "--node-client-addr", b.addr, "--quic-bind", b.addr, "--quic-listeners", "1",
		"--metrics-bind", "127.0.0.1:0", "--tls-cert-export", b.cert, "--node-token-file", b.token,
		"--controlplane-sync-interval-ms", "500", "--shutdown-drain-timeout-ms", "5000",
	}, settings...)
	b.process = newProcess(p.t, id, nil, args...)
	return b
}

func (b *brokerProcess) credential(token string) {
	b.p.t.Helper()
	must(b.p.t, os.WriteFile(b.token, []byte(token), 0o600))
}

// dial connects a client that was not there before, with the shop's worker.
func (b *brokerProcess) dial(t testing.TB, others ...*brokerProcess) *client.Client {
	t.Helper()
	return b.dialWith(t, others)
}

func (b *brokerProcess) dialWith(t testing.TB, others []*brokerProcess, more ...client.Option) *client.Client {
	t.Helper()
	var c *client.Client
	eventually(t, "connect to "+b.id, func() (err error) {
		addrs, pem := []string{b.addr}, []byte(nil)
		for _, x := range append([]*brokerProcess{b}, others...) {
			one, err := os.ReadFile(x.cert)
			if err != nil {
				return err
			}
			pem = append(pem, one...)
			if x != b {
				addrs = append(addrs, x.addr)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		options := append([]client.Option{
			client.WithTenant(shop), client.WithToken(b.p.worker), client.WithCAPEM(pem),
			client.WithKeepAlive(250*time.Millisecond, 1500*time.Millisecond),
		}, more...)
		c, err = client.Dial(ctx, addrs, options...)
		return err
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// publish adds a record to a shard of a stream once that is served.
func publish(t testing.TB, c *client.Client, stream, text string, opts ...client.PublishOption) client.Ack {
	t.Helper()
	var ack client.Ack
	eventually(t, "publish to "+stream, func() (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		ack, err = c.Publish(ctx, stream, []byte(text), opts...)
		return err
	})
	return ack
}

// put writes a key once its cache is served.
func put(t testing.TB, c *client.Cache, key, value string) {
	t.Helper()
	eventually(t, "put "+key, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return c.Put(ctx, key, []byte(value))
	})
}

// records are all of a shard.
func records(t testing.TB, c *client.Client, stream string, shard uint32) (all []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("read shard %d of %s", shard, stream), func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		all = nil
		for e, err := range c.Records(ctx, stream, client.Range{Shard: shard}) {
			if err != nil {
				return err
			}
			all = append(all, string(e.Payload))
		}
		return nil
	})
	return all
}

// remembers waits until the broker has on disk what it takes to serve a stream
// without a control plane. It is written within a second or so.
func (b *brokerProcess) remembers(stream string) {
	b.p.t.Helper()
	eventually(b.p.t, b.id+" remembers", func() error {
		data, err := os.ReadFile(b.state())
		if err != nil {
			return err
		}
		var file struct {
			Known struct {
				Keys map[string]json.RawMessage `json:"keys"`
			} `json:"known"`
		}
		if err := json.Unmarshal(data, &file); err != nil {
			return err
		}
		if len(file.Known.Keys[shop]) == 0 || !strings.Contains(string(data), strconv.Quote(stream)) {
			return fmt.Errorf("it knows keys of %d tenants", len(file.Known.Keys))
		}
		return nil
	})
}

// state is the file in which the broker keeps what it knows of the cluster.
func (b *brokerProcess) state() string { return filepath.Join(b.dir, "catalog.json") }

// saying waits for words in the log of a process.
func (p *process) saying(words ...string) {
	p.t.Helper()
	eventually(p.t, p.name+" says it", func() error {
		said := p.logged()
		for _, w := range words {
			if !strings.Contains(said, w) {
				return fmt.Errorf("%q is not in its log:\n%s", w, tail(said, 4<<10))
			}
		}
		return nil
	})
}
