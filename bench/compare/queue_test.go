package main

import (
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/report"
	"github.com/felixlog/felix/bench/internal/schedule"
)

// TestFlushesAreHeldAgainstOneForEachAck judges a row whose reference is the
// run's own bound.
func TestFlushesAreHeldAgainstOneForEachAck(t *testing.T) {
	rows, err := selectRows(catalogue(), "queue-ack.flushes")
	if err != nil || len(rows) != 1 || rows[0].ref != ownBound {
		t.Fatalf("rows %+v, %v", rows, err)
	}
	ours := []report.Sample{{Result: measure.Result{Records: 4000, Elapsed: time.Second, Flushes: 100}}}
	l := report.Judge(rows[0].Row, schedule.Unpinned, ours, bounds(ours))
	if l.Felix.Median != 25 || l.Ref.Median != 1000 || l.Ratio.Median != .025 || l.Verdict != report.Info {
		t.Errorf("line %+v", l)
	}
}

func TestMemoryIsHeldAgainstItsBound(t *testing.T) {
	rows, err := selectRows(catalogue(), "memory-stalled")
	if err != nil {
		t.Fatal(err)
	}
	ours := []report.Sample{{Result: measure.Result{Records: 1, Elapsed: time.Second, RSS: 30 << 20, RSSBound: 40 << 20}}}
	l := report.Judge(rows[0].Row, schedule.Unpinned, ours, bounds(ours))
	if l.Felix.Median != 30 || l.Ref.Median != 40 || l.Ratio.Median != .75 {
		t.Errorf("line %+v", l)
	}
}

// TestQueueShapesFitTheirBounds checks what a run would only find out at its
// end.
func TestQueueShapesFitTheirBounds(t *testing.T) {
	for _, s := range drainShapes() {
		if s.batch*s.workers > queueClaims {
			t.Errorf("%d workers with %d records each are more than a group may have in flight", s.workers, s.batch)
		}
	}
	if queueClaims > queueBacklog {
		t.Errorf("%d records to claim of %d", queueClaims, queueBacklog)
	}
}
