package demo

import (
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/examples"
)

// A wrong value in the cache is seen: here somebody overwrites a network's
// entry after the last quake of that network.
func TestWrongCacheIsSeen(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())[:20]
	d := New(records, 0)
	held := d.expected()
	timing := newTiming(len(records))
	d.published, d.received, d.cached = 20, 20, 20
	d.kill = Kill{After: 10, At: time.Unix(1, 0), Back: time.Unix(2, 0)}
	if r := d.report(held, records, nil, timing, 0); !r.OK || r.RecoveryMS != 1000 {
		t.Fatalf("report %+v", r)
	}
	for network := range held {
		held[network] = []byte("{}")
		break
	}
	if r := d.report(held, records, nil, timing, 0); r.CacheCorrect || r.CacheOK() || r.OK {
		t.Errorf("report %+v", r)
	}
	held["zz"] = []byte("{}")
	if r := d.report(held, records, nil, timing, 0); r.CacheOK() {
		t.Errorf("a network too many: %+v", r)
	}
}

// A record that is missing from the log, or another in its place, is seen.
func TestWrongLogIsSeen(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())[:20]
	d := New(records, 0)
	d.published, d.received, d.cached = 20, 20, 20
	d.kill = Kill{After: 10, At: time.Unix(1, 0), Back: time.Unix(2, 0)}
	other := slices.Clone(records)
	other[7] = []byte("{}")
	for name, again := range map[string][][]byte{"short": records[:19], "other": other, "empty": nil} {
		if r := d.report(d.expected(), again, nil, newTiming(20), 0); r.LogOK() || r.OK {
			t.Errorf("%s: report %+v", name, r)
		}
	}
	d.kill = Kill{}
	if r := d.report(d.expected(), records, nil, newTiming(20), 0); r.LogOK() || r.OK {
		t.Errorf("without a kill: report %+v", r)
	}
}
