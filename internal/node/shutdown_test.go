package node

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
)

type noFiles struct{}

func (noFiles) ReadFile(name string) ([]byte, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
}

// ready is what /ready says.
func ready(t *testing.T, n *Node) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + n.AdminAddr() + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A member of a cluster hands over while it still serves and says that it is
// leaving, and deregisters when its clients and logs are gone and it can still
// be asked (broker 12.2).
func TestShutdownHooks(t *testing.T) {
	cfg, _, err := config.Load(config.Sources{FileSystem: noFiles{}, Flags: map[string]string{
		"quic-bind": "127.0.0.1:0", "quic-listeners": "1", "metrics-bind": "127.0.0.1:0",
		"durable-storage-dir": t.TempDir(), "shutdown-drain-timeout-ms": "5000",
	}})
	if err != nil {
		t.Fatal(err)
	}
	var n *Node
	var steps []string
	type key struct{}
	o := Options{Config: cfg, Keys: auth.NewStaticKeys()}
	o.BeforeDrain = func(ctx context.Context) {
		steps = append(steps, "before")
		if ctx.Value(key{}) == nil {
			t.Error("another context than that of the shutdown")
		}
		if status, body := ready(t, n); status != http.StatusServiceUnavailable || !strings.Contains(body, "draining") {
			t.Errorf("/ready answers %d %q", status, body)
		}
		if err := n.core.AddTenant("late"); err != nil {
			t.Errorf("the node serves no longer: %v", err)
		}
	}
	o.AfterDrain = func(ctx context.Context) {
		steps = append(steps, "after")
		if ctx.Err() != nil {
			t.Error("no time is left")
		}
		if deadline, bounded := ctx.Deadline(); !bounded || time.Until(deadline) > leaveGrace {
			t.Error("unbounded")
		}
		if status, _ := ready(t, n); status != http.StatusServiceUnavailable {
			t.Errorf("/ready answers %d", status)
		}
		if err := n.core.AddTenant("later"); err == nil {
			t.Error("the core is still open")
		}
	}
	if n, err = Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	n.Ready()
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, true))
	cancel() // the budget is gone from the start: both hooks are called all the same
	_ = n.Shutdown(ctx)
	if strings.Join(steps, " ") != "before after" {
		t.Errorf("%q", steps)
	}
	if _, err := http.Get("http://" + n.AdminAddr() + "/live"); err == nil {
		t.Error("the HTTP listener outlives the node")
	}
}
