package controlplane

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/memory"
)

// dataFiles names every log file of a broker.
func dataFiles(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(filepath.Base(path), StateFile) && strings.Contains(path, "orders") && !strings.HasSuffix(path, ".tmp") {
			names = append(names, path)
		}
		return err
	}))
	return names
}

// TestNoDataFileIsRemoved is BR-45 with a broker's real files: whatever the
// control plane has become, every file is there after a restart and after a
// while, and what can be served is.
func TestNoDataFileIsRemoved(t *testing.T) {
	for name, harm := range map[string]func(*cluster) (url string){
		"empty": func(c *cluster) string {
			other := &cluster{t: c.t, store: memory.Open(memory.Options{}), signers: c.signers, change: c.change}
			c.t.Cleanup(func() { _ = other.store.Close() })
			other.start("127.0.0.1:0")
			// The broker's own credential has to hold, or it would read nothing at all.
			key, err := c.store.SigningKeys(c.t.Context(), "ops")
			must(c.t, err)
			must(c.t, other.store.CreateTenant(c.t.Context(), model.Tenant{TenantID: "ops"}))
			_, err = other.store.EnsureSigningKey(c.t.Context(), "ops", key[0])
			must(c.t, err)
			return other.url()
		},
		"404":     answers(404, `{"code":"not_found","message":"no such route"}`),
		"cut off": answers(200, `{"items":[{"tenant_id":"t1","name`),
	} {
		for _, id := range []string{"", "b1"} {
			t.Run(name+", node "+id, func(t *testing.T) {
				t.Parallel()
				c := newCluster(t, 1)
				c.stream("orders", 2, true)
				c.cache("orders", 1)
				b := c.broker(id, true).start()
				cl := b.dial("t1")
				b.publish(cl, "orders", "kept")
				eventually(t, "put", func() error { return put(t.Context(), cl.Cache("orders"), "k", "v") })
				before := dataFiles(t, b.dir)
				if len(before) < 3 {
					t.Fatalf("files are %q", before)
				}
				b.stop()
				good := b.url
				b.url = harm(c)
				b.start()
				eventually(t, "passes", func() error {
					if st := b.agent.Stats().Mirror; st.Failures < 3 && st.Passes < 3 {
						return fmt.Errorf("%+v", st)
					}
					return nil
				})
				expectFiles(t, b, before)
				again := b.dial("t1")
				if got := shardRecords(b, again); len(got) != 1 || got[0] != "kept" {
					t.Errorf("records are %q", got)
				}
				b.stop()
				b.url = good
				b.start()
				expectFiles(t, b, before)
			})
		}
	}
}

func expectFiles(t *testing.T, b *brokerRig, want []string) {
	t.Helper()
	for _, name := range want {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("a data file is gone: %v", err)
		}
	}
}

// shardRecords are the records of both shards of the stream.
func shardRecords(b *brokerRig, c *client.Client) (all []string) {
	b.t.Helper()
	for shard := range uint32(2) {
		eventually(b.t, "read", func() error {
			ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
			defer cancel()
			page, err := c.Read(ctx, "orders", client.Range{Shard: shard})
			if err != nil {
				return err
			}
			for _, e := range page.Records {
				all = append(all, string(e.Payload))
			}
			return nil
		})
	}
	return all
}

// answers is something that answers everything alike.
func answers(status int, body string) func(c *cluster) string {
	return func(c *cluster) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		c.t.Cleanup(s.Close)
		return s.URL
	}
}
