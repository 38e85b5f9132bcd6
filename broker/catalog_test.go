package broker

import (
	"errors"
	"testing"

	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/stream"
)

func TestUnknownNames(t *testing.T) {
	f := newFixture(t, Config{})
	_, errStream := f.Stream(testTenant, testNamespace, "none")
	_, errCache := f.Cache(testTenant, testNamespace, "none")
	for _, c := range []struct {
		err  error
		kind Kind
		name string
	}{
		{errStream, KindStream, "acme/default/none"},
		{errCache, KindCache, "acme/default/none"},
		{f.AddNamespace("none", "default"), KindTenant, "none"},
		{f.AddStream(StreamName{Tenant: "none", Namespace: "default", Name: "s"}, StreamOptions{}), KindTenant, "none"},
		{f.AddStream(StreamName{Tenant: testTenant, Namespace: "none", Name: "s"}, StreamOptions{}), KindNamespace, "acme/none"},
		{f.AddCache(CacheName{Tenant: testTenant, Namespace: "none", Name: "c"}, CacheOptions{}), KindNamespace, "acme/none"},
		{f.RemoveTenant("none"), KindTenant, "none"},
		{f.RemoveNamespace(testTenant, "none"), KindNamespace, "acme/none"},
		{f.RemoveStream(fullName("none")), KindStream, "acme/default/none"},
		{f.RemoveCache(CacheName{Tenant: testTenant, Namespace: testNamespace, Name: "none"}), KindCache, "acme/default/none"},
	} {
		var missing *NotFoundError
		if !errors.As(c.err, &missing) || missing.Kind != c.kind || missing.Name != c.name {
			t.Errorf("%v, want %s %s", c.err, c.kind, c.name)
		}
	}
}

func TestRegisteringAgain(t *testing.T) {
	f := newFixture(t, Config{})
	sh := f.shard("s")
	f.must(f.AddTenant(testTenant))
	f.must(f.AddNamespace(testTenant, testNamespace))
	f.must(f.AddStream(fullName("s"), StreamOptions{Shards: 1})) // 0 means 1
	if again := f.shard("s"); again != sh {
		t.Fatal("registering again made a new handle")
	}
	for _, opts := range []StreamOptions{{Shards: 2}, {Routing: 1}, {Durable: true}} {
		var conflict *ConflictError
		if err := f.AddStream(fullName("s"), opts); !errors.As(err, &conflict) || conflict.Kind != KindStream {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	name := CacheName{Tenant: testTenant, Namespace: testNamespace, Name: "c"}
	f.must(f.AddCache(name, CacheOptions{Shards: 4}))
	f.must(f.AddCache(name, CacheOptions{Shards: 4}))
	var conflict *ConflictError
	if err := f.AddCache(name, CacheOptions{}); !errors.As(err, &conflict) || conflict.Kind != KindCache {
		t.Error(err)
	}
}

func TestDurableStreamNeedsStorage(t *testing.T) {
	f := newFixture(t, Config{})
	var storage *StorageRequiredError
	if err := f.AddStream(fullName("s"), StreamOptions{Durable: true}); !errors.As(err, &storage) || storage.Name != "acme/default/s" {
		t.Fatal(err)
	}
	if _, err := f.Stream(testTenant, testNamespace, "s"); err == nil {
		t.Fatal("it was registered all the same")
	}
	if err := f.AddStream(fullName("s"), StreamOptions{Shards: stream.MaxShards + 1}); err == nil {
		t.Fatal("a stream of too many shards was registered")
	}
}

func TestRemovalDeactivatesHandles(t *testing.T) {
	cacheName := CacheName{Tenant: testTenant, Namespace: testNamespace, Name: "c"}
	for name, remove := range map[string]func(f *fixture) error{
		"stream and cache": func(f *fixture) error { return errors.Join(f.RemoveStream(fullName("s")), f.RemoveCache(cacheName)) },
		"namespace":        func(f *fixture) error { return f.RemoveNamespace(testTenant, testNamespace) },
		"tenant":           func(f *fixture) error { return f.RemoveTenant(testTenant) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Config{})
			f.must(f.AddTenant("other"))
			f.must(f.AddNamespace("other", testNamespace))
			f.must(f.AddStream(StreamName{Tenant: "other", Namespace: testNamespace, Name: "s"}, StreamOptions{}))
			f.must(f.AddCache(cacheName, CacheOptions{}))
			sh := f.shard("s")
			c, err := f.Cache(testTenant, testNamespace, "c")
			f.must(err)
			f.must(f.Publish(t.Context(), sh, f.id, batchOf("x"), Fail, nil))
			if !sh.Active() || !c.Active() {
				t.Fatal("not active")
			}

			f.must(remove(f))
			if sh.Active() || c.Active() {
				t.Fatal("still active")
			}
			if err := f.Publish(t.Context(), sh, f.id, batchOf("x"), Fail, nil); err != stream.ErrRemoved {
				t.Fatal(err)
			}
			if _, _, err := c.Get(0, []byte("k")); err != cache.ErrRemoved {
				t.Fatal(err)
			}
			if st := f.Stats(); st.Streams != 1 || st.Shards != 1 || st.Caches != 0 || st.InflightBytes != 0 {
				t.Fatalf("%+v", st)
			}

			f.must(f.AddTenant(testTenant))
			f.must(f.AddNamespace(testTenant, testNamespace))
			again := f.shard("s")
			if again == sh || again.ID() == sh.ID() || sh.Active() || !again.Active() {
				t.Fatal("the old handle came back to life")
			}
			f.must(f.Publish(t.Context(), again, f.id, batchOf("x"), Fail, nil))
		})
	}
}

func TestShardsOfAStream(t *testing.T) {
	f := newFixture(t, Config{})
	f.must(f.AddStream(fullName("s"), StreamOptions{Shards: 3, Routing: 1}))
	s, err := f.Stream(testTenant, testNamespace, "s")
	f.must(err)
	ids := map[uint64]bool{}
	for i := range uint32(3) {
		sh := s.Shard(i)
		ids[sh.ID()] = true
		if sh.Index() != i || sh.Stream() != s || sh.Name() != fullName("s") || sh.Durable() {
			t.Fatalf("shard %d: %+v", i, sh)
		}
	}
	if len(ids) != 3 || s.Shards() != 3 || s.Shard(3) != nil || s.Shard(1<<32-1) != nil || s.Options().Routing != 1 {
		t.Fatalf("%v %+v", ids, s.Options())
	}
	if f.Stats().Shards != 3 || len(f.Streams()) != 1 {
		t.Fatalf("%+v", f.Stats())
	}
}

func TestLookupsAllocateNothing(t *testing.T) {
	f := newFixture(t, Config{})
	f.shard("s")
	f.must(f.AddCache(CacheName{Tenant: testTenant, Namespace: testNamespace, Name: "c"}, CacheOptions{}))
	if n := testing.AllocsPerRun(100, func() {
		_, _ = f.Stream(testTenant, testNamespace, "s")
		_, _ = f.Cache(testTenant, testNamespace, "c")
	}); n != 0 {
		t.Fatalf("%v allocations", n)
	}
}
