package kvlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage/shardlog"
	"pgregory.net/rapid"
)

// held is what the model says a key holds.
type held struct {
	present bool
	value   string
	version uint64
	expires int64
}

func (h held) live(now int64) bool { return h.present && (h.expires == 0 || h.expires > now) }

// A sent write is one of a burst, and what became of it.
type sent struct {
	w   Write
	end answered
	answer
}

// The model of a map: every key and what it may hold.
type model struct {
	*rapid.T
	r      *rig
	keys   map[string]held
	writes int
}

func (m *model) now() int64 { return m.r.clock.millis() }

var modelKeys = []string{"a", "b", "c", "long-" + string(bytes.Repeat([]byte("k"), 300)), "é"}

func (m *model) drawWrite() Write {
	key := rapid.SampledFrom(modelKeys).Draw(m.T, "key")
	m.writes++
	w := put(key, fmt.Sprintf("%d-%s", m.writes, bytes.Repeat([]byte("v"), rapid.IntRange(0, 200).Draw(m.T, "size"))))
	if rapid.IntRange(0, 3).Draw(m.T, "delete") == 0 {
		w = del(key)
	} else if d := rapid.SampledFrom([]int64{0, 0, 1, 50, 1000}).Draw(m.T, "ttl"); d != 0 {
		w.ExpiresAtMillis = m.now() + d
	}
	switch rapid.IntRange(0, 4).Draw(m.T, "condition") {
	case 0:
		w.Condition = Absent()
	case 1:
		w.Condition = AtVersion(m.keys[key].version)
	case 2:
		w.Condition = AtVersion(m.r.m.Tail()) // of a write staged just before, perhaps
	}
	return w
}

// burst sends writes without waiting for one before the next.
func (m *model) burst() []*sent {
	var all []*sent
	for range rapid.IntRange(1, 8).Draw(m.T, "burst") {
		s := &sent{w: m.drawWrite(), end: make(answered, 1)}
		all = append(all, s)
		m.r.m.Write(s.w, s.end)
	}
	return all
}

func await(all []*sent) {
	for _, s := range all {
		s.answer = <-s.end
	}
}

// judge checks an answer against the model and applies the write.
func (m *model) judge(s *sent) {
	key := string(s.w.Key)
	h, now := m.keys[key], m.now()
	holds := map[conditionKind]bool{
		always: true, absent: !h.live(now), atVersion: h.live(now) && h.version == s.w.Condition.version,
	}[s.w.Condition.kind]
	applied := holds && (s.w.Op == Put || h.live(now))
	if s.err != nil || s.result.Applied != applied {
		m.Fatalf("%+v on %+v: %+v, %v", s.w, h, s.result, s.err)
	}
	switch {
	case !applied:
		if s.result.HasVersion != h.live(now) || (s.result.HasVersion && s.result.Version != h.version) {
			m.Fatalf("%+v on %+v refused with %+v", s.w, h, s.result)
		}
		if s.w.Op == Delete && holds {
			m.keys[key] = held{}
		}
	case s.w.Op == Put:
		if s.result.Version != s.result.Offset {
			m.Fatalf("put answered %+v", s.result)
		}
		m.keys[key] = held{true, string(s.w.Value), s.result.Version, s.w.ExpiresAtMillis}
	default:
		if r := s.result.Removed; !s.result.HasRemoved || string(r.Value) != h.value || r.Version != h.version {
			m.Fatalf("%+v on %+v removed %+v", s.w, h, r)
		}
		m.keys[key] = held{}
	}
}

// read is what the map says a key holds.
func (m *model) read(key string) held {
	item, found, err := m.r.m.Get([]byte(key))
	if err != nil {
		m.Fatalf("get %q: %v", key, err)
	}
	if !found {
		return held{}
	}
	return held{true, string(item.Value), item.Version, item.ExpiresAtMillis}
}

func (m *model) check() {
	m.r.m.core.compactor.passes.Wait() // so that the log stands still
	live := 0
	for _, key := range modelKeys {
		want := m.keys[key]
		if !want.live(m.now()) {
			want = held{}
		} else {
			live++
		}
		if got := m.read(key); got != want {
			m.Fatalf("%q holds %+v, want %+v", key, got, want)
		}
	}
	s, err := m.r.m.Range(nil)
	if err != nil || s.Len() != live || s.At != m.r.m.Tail() {
		m.Fatalf("snapshot of %d at %d: %v; want %d at %d", s.Len(), s.At, err, live, m.r.m.Tail())
	}
	entries, err := s.Next(1 << 20)
	if err != nil {
		m.Fatalf("snapshot: %v", err)
	}
	for _, c := range entries {
		if h := m.keys[string(c.Key)]; h.value != string(c.Value) || h.version != c.Version {
			m.Fatalf("snapshot has %+v, want %+v", c, h)
		}
	}
	m.checkChanges()
}

// checkChanges compares what the observer heard with what the log replays.
func (m *model) checkChanges() {
	base := m.r.m.Base()
	heard := slices.DeleteFunc(m.r.seen.all(), func(c Change) bool { return c.Offset < base })
	from := m.r.m.Tail()
	if len(heard) > 0 {
		from = heard[0].Offset // the log may hold more, from before it was opened
	}
	logged := allChanges(m.T, m.r.m, from)
	if !slices.EqualFunc(heard, logged, sameChange) {
		m.Fatalf("observed\n%+v\nlogged\n%+v", heard, logged)
	}
}

func sameChange(a, b Change) bool {
	return a.Op == b.Op && a.Offset == b.Offset && a.Version == b.Version && a.ExpiresAtMillis == b.ExpiresAtMillis &&
		bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
}

// adopt reads what a crash left: for every key its last acknowledged state, or
// that of a write sent later.
func (m *model) adopt(burst []*sent) {
	may := map[string][]held{}
	for _, key := range modelKeys {
		may[key] = []held{m.keys[key]}
	}
	for _, s := range burst {
		key := string(s.w.Key)
		after := held{}
		if s.w.Op == Put {
			// The version of a lost answer is not known.
			after = held{true, string(s.w.Value), s.result.Version, s.w.ExpiresAtMillis}
		}
		switch {
		case s.err != nil:
			may[key] = append(may[key], after)
		case s.result.Applied:
			may[key] = []held{after}
		}
	}
	for _, key := range modelKeys {
		got := m.read(key)
		ok := slices.ContainsFunc(may[key], func(h held) bool {
			if !h.live(m.now()) {
				return !got.present
			}
			return got.present && got.value == h.value && got.expires == h.expires
		})
		if !ok {
			m.Fatalf("%q holds %+v after the crash, want one of %+v", key, got, may[key])
		}
		m.keys[key] = got
	}
}

func modelRig(t *rapid.T) *rig {
	return newRig(t, func(r *rig) {
		r.logs.Fsync = rapid.SampledFrom([]shardlog.FsyncMode{shardlog.OnCommit, shardlog.OnCommit, shardlog.None}).Draw(t, "fsync")
		r.logs.SegmentBytes = rapid.SampledFrom([]int64{512, 4 << 10, 64 << 10}).Draw(t, "segment bytes")
		r.opts.CompactFloor = rapid.SampledFrom([]int64{-1, 1 << 10, 8 << 10}).Draw(t, "floor")
		r.opts.CompactFactor = 2
	})
}

func TestModel(t *testing.T) {
	for range soak.Times() {
		rapid.Check(t, func(t *rapid.T) {
			m := &model{T: t, r: modelRig(t), keys: map[string]held{}}
			defer func() { m.r.die(false, 0) }()
			for range rapid.IntRange(1, 25).Draw(t, "steps") {
				m.step()
			}
		})
	}
}

func (m *model) step() {
	switch rapid.SampledFrom([]string{
		"burst", "burst", "burst", "burst", "time", "expire", "compact", "reopen", "reload", "crash", "crash", "write fails", "sync fails",
	}).Draw(m.T, "step") {
	case "burst":
		all := m.burst()
		await(all)
		for _, s := range all {
			m.judge(s)
		}
	case "time":
		m.r.clock.advance(time.Duration(rapid.IntRange(1, 100).Draw(m.T, "ms")) * time.Millisecond)
	case "expire":
		m.expire()
	case "compact":
		m.r.compact(m.T)
	case "reopen":
		m.r.reopen(m.T)
	case "reload":
		if err := m.r.m.Reload(); err != nil {
			m.Fatalf("reload: %v", err)
		}
	case "crash":
		m.crash()
	case "write fails":
		m.writeFails()
	case "sync fails":
		m.syncFails()
	}
	m.check()
}

func (m *model) expire() {
	// What a crash left lapsed, the model does not count.
	if _, err := m.r.m.Expire(m.now(), 0); err != nil {
		m.Fatalf("expire: %v", err)
	}
	settle(m.T, m.r)
	if n := m.r.m.Len(); n != len(slices.Collect(maps.Keys(m.alive()))) {
		m.Fatalf("%d keys after the pass", n)
	}
}

func (m *model) alive() map[string]held {
	alive := maps.Clone(m.keys)
	maps.DeleteFunc(alive, func(_ string, h held) bool { return !h.live(m.now()) })
	return alive
}

// settle waits for what is staged.
func settle(t fataler, r *rig) {
	t.Helper()
	if err := r.m.core.barrier(context.Background()); err != nil {
		t.Fatalf("barrier: %v", err)
	}
}

// crash ends the process, or the power where that may lose nothing acked, while
// writes and perhaps a compaction are on their way.
func (m *model) crash() {
	power := m.r.logs.Fsync == shardlog.OnCommit && rapid.Bool().Draw(m.T, "power")
	passed := make(chan struct{})
	if rapid.Bool().Draw(m.T, "while compacting") {
		go func() {
			defer close(passed)
			_ = m.r.m.Compact(context.Background()) // may meet the crash
		}()
	} else {
		close(passed)
	}
	all := m.burst()
	m.r.die(power, rapid.Uint64().Draw(m.T, "seed"))
	await(all)
	<-passed
	m.r.open(m.T)
	m.adopt(all)
}

// writeFails: nothing of what failed is there, and everything before is.
func (m *model) writeFails() {
	m.r.faults.FailWrite(".log", 1, nil)
	defer m.r.faults.Clear()
	all := m.burst()
	await(all)
	for _, s := range all {
		if s.err == nil {
			m.judge(s)
		}
	}
}

// syncFails: the outcome is unknown until the log is opened again.
func (m *model) syncFails() {
	if m.r.logs.Fsync != shardlog.OnCommit {
		return
	}
	m.r.faults.FailSync(".log", 1)
	all := m.burst()
	await(all)
	for _, s := range all {
		var failed *shardlog.SyncFailedError
		if s.err != nil && !errors.As(s.err, &failed) {
			m.Fatalf("%+v: %v", s.w, s.err)
		}
	}
	m.r.die(rapid.Bool().Draw(m.T, "power"), rapid.Uint64().Draw(m.T, "seed"))
	m.r.open(m.T)
	m.adopt(all)
}
