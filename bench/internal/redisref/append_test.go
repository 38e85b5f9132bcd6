package redisref

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/pki"
)

// TestAppendWaitsForTheDisk runs against the real Redis, where there is one.
func TestAppendWaitsForTheDisk(t *testing.T) {
	path, err := Find()
	if errors.Is(err, ErrMissing) {
		t.Log("no Redis here; the row that needs it says how to install it")
		return
	}
	target, err := NewTarget(false, pki.Files{})
	if err != nil {
		t.Fatal(err)
	}
	target.Durable = true
	args, err := target.Args(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(path, args...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	ctx := t.Context()
	if err := target.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	r, err := Append(ctx, AppendSpec{Target: target, Phases: measure.Phases{Measure: 100 * time.Millisecond}, Publishers: 4, RecordBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.Bytes != 64*r.Records || r.P50 <= 0 || r.P99 < r.P50 {
		t.Errorf("result %+v", r)
	}
}
