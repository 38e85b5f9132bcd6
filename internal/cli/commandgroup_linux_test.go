package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/felixlog/felix/client"
)

// A command whose context ends is killed with what it started.
func TestRunnerKills(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	r, _ := newTestRunner(t, `sleep 3600 & echo $! > `+pid+`.part && mv `+pid+`.part `+pid+`; wait`)
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan runResult, 1)
	go func() { ended <- r.run(ctx, &client.Delivery{}) }()
	waitFor(t, func() bool { _, err := os.Stat(pid); return err == nil })
	kill()
	if result := <-ended; result.err == nil || result.Status != -1 {
		t.Errorf("%+v", result)
	}
	child, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return !alive(strings.TrimSpace(string(child))) })
}
