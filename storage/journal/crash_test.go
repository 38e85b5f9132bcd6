package journal

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// TestPowerLossLosesNothingCommitted commits and cuts logs at random, loses
// power, starts again, and finds in every log's own file what was committed,
// at least as long as it had become and byte for byte.
func TestPowerLossLosesNothingCommitted(t *testing.T) {
	for seed := range uint64(300 * soak.Times()) {
		powerLoss(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func powerLoss(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	disk := newDisk(seed)
	options := Options{FileBytes: int64(2+rng.IntN(8)) * alignment, MaxBytes: 5000}
	for life := range 3 {
		j := open(t, disk, options)
		var logs []*fakeLog
		for i := range 4 {
			logs = append(logs, makeLog(t, disk, j, logName(10*life+i)))
		}
		for range rng.IntN(120) {
			l := logs[rng.IntN(len(logs))]
			var err error
			if rng.IntN(12) == 0 {
				if err = l.cut(); err == nil {
					l.cuts = 0 // the bytes below the cut are the old ones
				}
			} else {
				err = l.commit(1 + rng.Int64N(6000))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if rng.IntN(4) > 0 {
			j.checkpoints.Wait()
		}
		// Something written and not committed may be there or not.
		last := logs[rng.IntN(len(logs))]
		if _, err := last.f.WriteAt(last.pattern(last.size, last.size+100), last.size); err != nil {
			t.Fatal(err)
		}
		disk = disk.Crash(rng.Uint64())
		recovered := open(t, disk, options)
		for _, l := range logs {
			got := content(t, disk, l.name)
			if want := l.pattern(0, l.acked); len(got) < len(want) || !bytes.Equal(got[:len(want)], want) {
				t.Errorf("life %d, log %s: %d bytes, %d were acknowledged", life, l.name, len(got), len(want))
			}
			if limit := l.size + 100; int64(len(got)) > limit {
				t.Errorf("life %d, log %s: %d bytes, at most %d were written since its last cut", life, l.name, len(got), limit)
			}
		}
		// Recovering once more changes nothing.
		if err := recovered.closeFiles(); err != nil {
			t.Fatal(err)
		}
		before := content(t, disk, logs[0].name)
		again := open(t, disk, options)
		if !bytes.Equal(before, content(t, disk, logs[0].name)) {
			t.Errorf("a second recovery changed %s", logs[0].name)
		}
		if err := again.closeFiles(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestVoidedRoundsAreNotWrittenBack: a log that was cut and has other bytes in
// the place must not get the old ones back.
func TestVoidedRoundsAreNotWrittenBack(t *testing.T) {
	disk := newDisk(1)
	j := open(t, disk, Options{})
	l := makeLog(t, disk, j, logName(0))
	if err := l.commit(1000); err != nil {
		t.Fatal(err)
	}
	if err := l.cut(); err != nil {
		t.Fatal(err)
	}
	// Other bytes, synced by the log itself.
	other := bytes.Repeat([]byte{0xEE}, 700)
	if _, err := l.f.WriteAt(other, l.size); err != nil {
		t.Fatal(err)
	}
	if err := l.f.Sync(); err != nil {
		t.Fatal(err)
	}
	disk = disk.Kill()
	open(t, disk, Options{})
	if got := content(t, disk, l.name); !bytes.Equal(got[500:], other) {
		t.Errorf("the old bytes are back: %x...", got[500:510])
	}
}

// TestAFailedRoundIsVoidToo: a round whose sync failed may be in the file, whole.
// The log has synced for itself and been cut since; the round must not undo that.
func TestAFailedRoundIsVoidToo(t *testing.T) {
	for name, earlier := range map[string]int{"the first": 0, "a later one": 2} {
		t.Run(name, func(t *testing.T) {
			disk := newDisk(1)
			faults := fstest.NewFaults(disk)
			j := open(t, faults, Options{})
			l := makeLog(t, faults, j, logName(0))
			for range earlier {
				if err := l.commit(100); err != nil {
					t.Fatal(err)
				}
			}
			faults.FailSync(".journal", 1)
			if err := l.commit(1000); err != nil || l.direct != 1 {
				t.Fatal(err, l.direct)
			}
			if err := l.cut(); err != nil {
				t.Fatal(err)
			}
			other := bytes.Repeat([]byte{0xEE}, 700)
			if _, err := l.f.WriteAt(other, l.size); err != nil {
				t.Fatal(err)
			}
			if err := l.f.Sync(); err != nil {
				t.Fatal(err)
			}
			disk = disk.Kill()
			open(t, disk, Options{})
			if got := content(t, disk, l.name); !bytes.Equal(got[l.size:], other) {
				t.Errorf("the old bytes are back: %x...", got[l.size:l.size+10])
			}
		})
	}
}

// TestAVoidOutlivesItsMember: a log that is opened anew answers for what was
// committed under its name before.
func TestAVoidOutlivesItsMember(t *testing.T) {
	disk := newDisk(1)
	j := open(t, disk, Options{})
	l := makeLog(t, disk, j, logName(0))
	if err := l.commit(1000); err != nil {
		t.Fatal(err)
	}
	l.m = j.Join(l.name, l)
	if err := l.cut(); err != nil {
		t.Fatal(err)
	}
	disk = disk.Kill()
	open(t, disk, Options{})
	if got := len(content(t, disk, l.name)); got != 500 {
		t.Errorf("%d bytes after the cut to 500", got)
	}
}

func TestASegmentThatIsGoneIsPassedOver(t *testing.T) {
	disk := newDisk(1)
	j := open(t, disk, Options{})
	gone, kept := makeLog(t, disk, j, logName(0)), makeLog(t, disk, j, logName(1))
	for _, l := range []*fakeLog{gone, kept} {
		if err := l.commit(100); err != nil {
			t.Fatal(err)
		}
	}
	disk = disk.Kill()
	if err := disk.Remove("/store/" + gone.name + "/00000000000000000000.log"); err != nil {
		t.Fatal(err)
	}
	open(t, disk, Options{})
	if got := content(t, disk, kept.name); len(got) != 100 {
		t.Errorf("the other log has %d bytes", len(got))
	}
	if _, err := disk.Stat("/store/" + gone.name + "/00000000000000000000.log"); err == nil {
		t.Error("a trimmed segment came back")
	}
}

func TestACleanCloseLeavesNothingToRecover(t *testing.T) {
	disk := newDisk(1)
	j := open(t, disk, Options{})
	l := makeLog(t, disk, j, logName(0))
	if err := l.commit(100); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if info, err := disk.Stat(Dir(root) + "/" + fileName(n)); err != nil || info.Size != 0 {
			t.Errorf("file %d: %+v, %v", n, info, err)
		}
	}
	disk = disk.Crash(7)
	if got := content(t, disk, l.name); !bytes.Equal(got, l.pattern(0, 100)) {
		t.Error("the log lost what it had committed")
	}
	if l.m.Commit(0, 0, []byte("x")) {
		t.Error("a closed journal takes rounds")
	}
}
