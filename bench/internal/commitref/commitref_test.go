package commitref

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
)

func TestEveryWriterIsAnsweredAndNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	r, err := Run(t.Context(), Spec{
		Dir: dir, Phases: measure.Phases{Measure: 50 * time.Millisecond}, Writers: 8, RecordBytes: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.Bytes != 100*r.Records || r.P50 <= 0 || r.P99 < r.P50 {
		t.Errorf("result %+v", r)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestARecordIsInTheFileWhenItsWriterIsAnswered(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := newCommitter(f)
	defer c.stop()
	for n := int64(1); n <= 20; n++ {
		if err := c.commit([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		if info, err := f.Stat(); err != nil || info.Size() != 10*n {
			t.Fatalf("after %d commits: %v bytes, %v", n, info.Size(), err)
		}
	}
}

func TestAFailedWriteIsToldToItsWriter(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := newCommitter(f)
	defer c.stop()
	answered := make(chan error, 1)
	go func() { answered <- c.commit([]byte("x")) }()
	select {
	case err := <-answered:
		if err == nil {
			t.Error("a write to a closed file was acknowledged")
		}
	case <-ctx.Done():
		t.Fatal("no answer")
	}
}
