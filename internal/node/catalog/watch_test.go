package catalog

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// setup opens a watcher over a catalog that has long been there.
func setup(t *testing.T, content string) (*Watcher, *files, *model, *bytes.Buffer) {
	t.Helper()
	f, m, log := newFiles(), newModel(t), &bytes.Buffer{}
	f.write("dir/c.yml", content)
	f.now = f.now.Add(time.Hour)
	w, err := Open(options(f, m, log))
	if err != nil {
		t.Fatal(err)
	}
	m.steps = nil
	return w, f, m, log
}

func options(f *files, m *model, log *bytes.Buffer) Options {
	return Options{
		File: "dir/c.yml", Files: f, ValidateName: validName, Target: m,
		Logger: slog.New(slog.NewTextHandler(log, nil)), Now: func() time.Time { return f.now },
	}
}

// polls advances the clock by the interval and polls, n times.
func polls(w *Watcher, f *files, n int) {
	for range n {
		f.now = f.now.Add(PollInterval)
		w.Poll()
	}
}

const one = "tenants: {a: {namespaces: {n: {streams: {s: {shards: 2}}, caches: {c: }}}}}"

func TestChangesAreApplied(t *testing.T) {
	w, f, m, log := setup(t, one)
	f.write("dir/c.yml", "tenants: {a: {namespaces: {n: {streams: {s: {shards: 2}, s2: }}, n2: }}, b: {keys: [jwk: "+keyText+"]}}")
	polls(w, f, 1)
	m.expectSteps() // it may still be being written
	polls(w, f, 1)
	m.expectSteps("remove cache a/n/c", "add stream a/n/s2", "add namespace a/n2", "add tenant b", "set 1 keys of b")
	if !strings.Contains(log.String(), "catalog applied") || !strings.Contains(log.String(), "added=4 removed=1") {
		t.Errorf("log: %s", log)
	}
	f.write("dir/c.yml", "tenants: {a: {namespaces: {n2: }}}")
	polls(w, f, 2)
	m.expectSteps("remove namespace a/n", "set 0 keys of b", "remove tenant b")
	if got, want := m.list(), []string{"namespace a/n2", "tenant a"}; !slices.Equal(got, want) {
		t.Errorf("target holds %q, want %q", got, want)
	}
}

func TestFileBeingWrittenIsLeftAlone(t *testing.T) {
	w, f, m, log := setup(t, one)
	for _, part := range []string{"", "tenants: {}", "tenants: {a: }", "tenants: {a: {namespaces: }}"} {
		f.write("dir/c.yml", part)
		polls(w, f, 1)
	}
	f.write("dir/c.yml", one)
	polls(w, f, 3)
	m.expectSteps()
	if log.Len() > 0 {
		t.Errorf("log: %s", log)
	}
}

// TestFileWrittenBetweenLookAndReading changes the file at the very moment it
// is read for being applied.
func TestFileWrittenBetweenLookAndReading(t *testing.T) {
	w, f, m, _ := setup(t, one)
	f.write("dir/c.yml", "tenants: {a: }")
	polls(w, f, 1)
	reads := 0
	f.onRead = func(string) {
		if reads++; reads == 2 { // the first is the look's
			f.write("dir/c.yml", "tenants: {}")
		}
	}
	polls(w, f, 1)
	f.onRead = nil
	m.expectSteps()
	polls(w, f, 1)
	m.expectSteps("remove tenant a")
}

func TestBrokenFileKeepsWhatIsServed(t *testing.T) {
	w, f, m, log := setup(t, one)
	for _, broken := range []string{"tenants: {a: ", "tenants: {x y: }", ""} {
		log.Reset()
		f.write("dir/c.yml", broken)
		polls(w, f, 10)
		m.expectSteps()
		if n := strings.Count(log.String(), "catalog refused"); n != 1 || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%q is logged %d times:\n%s", broken, n, log)
		}
	}
	delete(f.content, "dir/c.yml")
	log.Reset()
	polls(w, f, 10)
	m.expectSteps()
	if n := strings.Count(log.String(), "catalog refused"); n != 1 {
		t.Errorf("a missing file is logged %d times", n)
	}
	log.Reset()
	f.write("dir/c.yml", one)
	polls(w, f, 10)
	m.expectSteps()
	if n := strings.Count(log.String(), "catalog applied"); n != 1 {
		t.Errorf("the file that is well again is told %d times:\n%s", n, log)
	}
}

func TestSettingsOfWhatExistsAreFixed(t *testing.T) {
	w, f, m, log := setup(t, one)
	f.write("dir/c.yml", "tenants: {a: {namespaces: {n: {streams: {s: {shards: 3, routing: jump_hash, durable: true, queue_policy: block}}, caches: {c: {shards: 2}}}}}, b: }")
	polls(w, f, 4)
	m.expectSteps()
	for _, part := range []string{
		"stream a/n/s has 2 shards, routing modulo, which is fixed while it exists, and cannot get 3 shards, routing jump_hash, durable, queue policy block",
		"cache a/n/c has 1 shards", "cannot get 2 shards",
	} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("log does not say %q:\n%s", part, log)
		}
	}
	// Removed and added again in two steps, it gets them.
	f.write("dir/c.yml", "tenants: {a: {namespaces: {n: }}}")
	polls(w, f, 2)
	f.write("dir/c.yml", "tenants: {a: {namespaces: {n: {streams: {s: {shards: 3}}}}}}")
	polls(w, f, 2)
	m.expectSteps("remove stream a/n/s", "remove cache a/n/c", "add stream a/n/s")
}

// Retention is the one setting that a stream takes on while it exists.
func TestRetentionChangesInPlace(t *testing.T) {
	durable := func(retention string) string {
		return "tenants: {a: {namespaces: {n: {streams: {s: {durable: true" + retention + "}}}}}}"
	}
	w, f, m, _ := setup(t, durable(""))
	for _, step := range []struct{ text, want string }{
		{", retention: {max_size_bytes: 1000}", "keep 1000 bytes of stream a/n/s"},
		{", retention: {max_size_bytes: 2000, max_age_seconds: 60}", "keep 2000 bytes of stream a/n/s"},
		{"", "keep 0 bytes of stream a/n/s"},
	} {
		f.write("dir/c.yml", durable(step.text))
		polls(w, f, 4)
		m.expectSteps(step.want)
	}
}

func TestKeyFilesAreWatched(t *testing.T) {
	f, m, log := newFiles(), newModel(t), &bytes.Buffer{}
	f.write("dir/c.yml", "tenants: {a: {keys: [file: k.jwk]}}")
	f.write("dir/k.jwk", `{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`)
	w, err := Open(options(f, m, log))
	if err != nil {
		t.Fatal(err)
	}
	m.expectSteps("add tenant a", "set 1 keys of a")
	f.write("dir/k.jwk", strings.Replace(f.content["dir/k.jwk"], "k1", "k2", 1)) // same size, same instant
	polls(w, f, 2)
	m.expectSteps("set 1 keys of a")
	if !m.holds["key a k2"] {
		t.Errorf("target holds %q", m.list())
	}
	delete(f.content, "dir/k.jwk")
	polls(w, f, 4)
	m.expectSteps()
	if n := strings.Count(log.String(), "catalog refused"); n != 1 || !strings.Contains(log.String(), "dir/c.yml:1") {
		t.Errorf("a lost key file is logged %d times:\n%s", n, log)
	}
}

// TestQuietFileIsNotRead counts reads: polling costs a stat once the file is
// old enough to be trusted.
func TestQuietFileIsNotRead(t *testing.T) {
	w, f, _, _ := setup(t, one)
	f.reads = 0
	polls(w, f, 100)
	if f.reads != 0 {
		t.Errorf("a quiet file is read %d times", f.reads)
	}
	f.changed["dir/c.yml"] = f.now // touched
	polls(w, f, 100)
	if f.reads == 0 || f.reads > 6 {
		t.Errorf("a touched file is read %d times, want a few, until it is old enough", f.reads)
	}
}

func TestOpenIsAllOrNothing(t *testing.T) {
	f, m, log := newFiles(), newModel(t), &bytes.Buffer{}
	if _, err := Open(options(f, m, log)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	f.write("dir/c.yml", "tenants: {x y: }")
	if _, err := Open(options(f, m, log)); err == nil || !strings.Contains(err.Error(), "dir/c.yml:1") {
		t.Errorf("broken file: %v", err)
	}
	f.write("dir/c.yml", one)
	m.fail = func(step string) bool { return step == "add stream a/n/s" }
	if _, err := Open(options(f, m, log)); !errors.Is(err, errModel) || !strings.Contains(err.Error(), "add stream a/n/s: target refuses") {
		t.Errorf("refusing target: %v", err)
	}
}

func TestRefusedItemIsLeftOutAndTold(t *testing.T) {
	w, f, m, log := setup(t, one)
	m.fail = func(step string) bool { return step == "add stream a/n/d" || step == "add namespace a/m" }
	f.write("dir/c.yml", "tenants: {a: {namespaces: {n: {streams: {d: {durable: yes}, e: , s: {shards: 2}}, caches: {c: }}, m: {streams: {x: }}}}}")
	polls(w, f, 10)
	m.expectSteps("add stream a/n/e")
	if n := strings.Count(log.String(), "applied in part"); n != 2 {
		t.Errorf("%d refusals told, want 2:\n%s", n, log)
	}
	// The next version of the file tries again.
	m.fail = nil
	f.write("dir/c.yml", f.content["dir/c.yml"]+"\n# again")
	polls(w, f, 2)
	m.expectSteps("add namespace a/m", "add stream a/m/x", "add stream a/n/d")
}

func TestRunPollsAtTicksUntilTheEnd(t *testing.T) {
	w, f, m, _ := setup(t, one)
	f.write("dir/c.yml", "tenants: {}")
	ticks := make(chan time.Time)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { w.Run(ctx, ticks); close(ended) }()
	for range 2 {
		ticks <- time.Time{}
	}
	cancel()
	<-ended
	m.expectSteps("remove tenant a")
}

// TestTargetFollowsAnyHistory applies random catalogs to a target that refuses
// steps at random, then one without refusals: the target must hold exactly it.
func TestTargetFollowsAnyHistory(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	anyCatalog := rapid.Custom(func(t *rapid.T) *Catalog {
		var tenants []Tenant
		for _, tenant := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "tenants") {
			item := Tenant{Name: tenant}
			if rapid.Bool().Draw(t, "keys") {
				c, err := parseText("tenants: {a: {keys: [jwk: " + keyText + "]}}")
				if err != nil {
					t.Fatal(err)
				}
				item.Keys = c.Tenants[0].Keys
			}
			for _, ns := range rapid.SliceOfNDistinct(name, 0, 2, rapid.ID).Draw(t, "namespaces") {
				n := Namespace{Name: ns}
				for _, s := range rapid.SliceOfNDistinct(name, 0, 2, rapid.ID).Draw(t, "streams") {
					n.Streams = append(n.Streams, Stream{Name: s, Shards: 1})
				}
				for _, c := range rapid.SliceOfNDistinct(name, 0, 2, rapid.ID).Draw(t, "caches") {
					n.Caches = append(n.Caches, Cache{Name: c, Shards: 1})
				}
				item.Namespaces = append(item.Namespaces, n)
			}
			tenants = append(tenants, item)
		}
		return &Catalog{Tenants: tenants}
	})
	rapid.Check(t, func(rt *rapid.T) {
		m, state := newModel(t), make(applied)
		for range rapid.IntRange(1, 5).Draw(rt, "versions") {
			refused := rapid.IntRange(0, 10).Draw(rt, "refused")
			n := 0
			m.fail = func(string) bool { n++; return refused > 0 && n%refused == 0 }
			state.apply(anyCatalog.Draw(rt, "catalog"), m)
		}
		m.fail = nil
		last := anyCatalog.Draw(rt, "last")
		if c := state.apply(last, m); len(c.faults) > 0 {
			rt.Fatal(c.faults)
		}
		if got, want := m.list(), contents(last); !slices.Equal(got, want) {
			rt.Fatalf("target holds %q, want %q", got, want)
		}
		m.steps = nil
		if state.apply(last, m); len(m.steps) > 0 {
			rt.Fatalf("applying the same again takes steps %q", m.steps)
		}
	})
}
