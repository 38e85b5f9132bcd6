package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest/stepped"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// steppedStore is a store on a clock that can be set, and what it says.
func steppedStore(t *testing.T, disk *fstest.Mem, clock *stepped.Clock) (*Store, *bytes.Buffer) {
	t.Helper()
	said := new(bytes.Buffer)
	s, err := Open(disk, testConfig(), Deps{Clock: clock, Logger: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s, said
}

func openSteppedLog(t *testing.T, s *Store, name string) *shardlog.Log {
	t.Helper()
	key := Key{Tenant: "t", Namespace: "n", Name: name}
	l, err := s.OpenLog(t.Context(), Streams, key, LogOptions{Retention: shardlog.Retention{MaxAge: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func appendKilobyte(t *testing.T, l *shardlog.Log) {
	t.Helper()
	block := binary.BigEndian.AppendUint32(nil, 1)
	block = binary.BigEndian.AppendUint32(block, 1024)
	block = append(block, make([]byte, 1024)...)
	if _, err := l.AppendWait(&shardlog.Entry{Count: 1, Block: block}); err != nil {
		t.Fatal(err)
	}
}

// A log that is opened after the clock was set keeps what the process wrote
// before.
func TestClockStepsBeforeALogIsOpened(t *testing.T) {
	clock := new(stepped.Clock)
	s, _ := steppedStore(t, fstest.New(1), clock)
	defer s.Close()
	l := openSteppedLog(t, s, "s")
	for range 10 {
		appendKilobyte(t, l)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Step(87_600 * time.Hour)
	l = openSteppedLog(t, s, "s")
	if err := l.EnforceRetention(); err != nil || l.Base() != 0 {
		t.Errorf("the log begins at %d, %v", l.Base(), err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A clock that is behind the records there are is told of once, at the start.
func TestRecordsOfATimeToCome(t *testing.T) {
	const warned = "a time that is still to come"
	for _, back := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			disk, clock := fstest.New(1), new(stepped.Clock)
			for run := range 2 {
				s, said := steppedStore(t, disk, clock)
				for _, name := range []string{"a", "b"} {
					appendKilobyte(t, openSteppedLog(t, s, name))
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				want := 0
				if run == 1 && back > 0 {
					want = 1
				}
				if n := strings.Count(said.String(), warned); n != want {
					t.Errorf("run %d: warned %d times, want %d:\n%s", run, n, want, said)
				}
				clock.Step(-back)
			}
		})
	}
}
