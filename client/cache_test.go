package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// store is a peer script that serves a cache, in request order.
type store struct {
	mu     sync.Mutex
	values map[string][]byte
	ttl    map[string]uint64
}

func newStore() *store { return &store{values: map[string][]byte{}, ttl: map[string]uint64{}} }

func (st *store) serve(s *peerStream) {
	for {
		m := s.message()
		if m == nil {
			s.CloseWrite()
			return
		}
		s.send(st.answer(m))
	}
}

func (st *store) answer(m wire.Message) wire.Message {
	st.mu.Lock()
	defer st.mu.Unlock()
	value := func(tenant, namespace, cache string, key []byte, id wire.Optional[uint64]) *wire.CacheValue {
		v, ok := st.values[string(key)]
		out := &wire.CacheValue{Tenant: tenant, Namespace: namespace, Cache: cache, Key: key, RequestID: id}
		if ok {
			out.Value = wire.Some(v)
		}
		return out
	}
	switch m := m.(type) {
	case *wire.CacheGet:
		v := value(m.Tenant, m.Namespace, m.Cache, m.Key, m.RequestID)
		if v.Value.Set {
			v.Version = wire.Some(uint64(len(v.Value.Value)))
		}
		return v
	case *wire.CachePut:
		st.values[string(m.Key)] = m.Value
		st.ttl[string(m.Key)] = m.TTLMS.Or(0)
		return &wire.CacheOK{RequestID: m.RequestID.Value}
	case *wire.CacheDelete:
		v := value(m.Tenant, m.Namespace, m.Cache, m.Key, m.RequestID)
		delete(st.values, string(m.Key))
		return v
	case *wire.CachePutIf:
		v, ok := st.values[string(m.Key)]
		applied := m.Condition.Absent && !ok || !m.Condition.Absent && ok && m.Condition.Version == uint64(len(v))
		if applied {
			v, ok = m.Value, true
			st.values[string(m.Key)] = v
		}
		return &wire.CacheConditionResult{Applied: applied, Version: wire.Optional[uint64]{Value: uint64(len(v)), Set: ok}, RequestID: m.RequestID}
	case *wire.CacheDeleteIf:
		v, ok := st.values[string(m.Key)]
		applied := ok && m.Version == uint64(len(v))
		if applied {
			delete(st.values, string(m.Key))
		}
		return &wire.CacheConditionResult{Applied: applied, Version: wire.Optional[uint64]{Value: uint64(len(v)), Set: ok && !applied}, RequestID: m.RequestID}
	default:
		return &wire.Error{Message: "unexpected " + m.MessageType()}
	}
}

func TestCacheOperations(t *testing.T) {
	st := newStore()
	p := newPeer(t, st.serve)
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	k := c.Cache("k")
	if _, ok, err := k.Get(ctx, "a"); ok || err != nil {
		t.Errorf("miss: %v %v", ok, err)
	}
	if err := k.Put(ctx, "a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := k.Get(ctx, "a"); !ok || err != nil || string(v) != "one" {
		t.Errorf("hit: %q %v %v", v, ok, err)
	}
	// An empty value is a value.
	if err := k.Put(ctx, "empty", nil); err != nil {
		t.Fatal(err)
	}
	if v, ok, err := k.Get(ctx, "empty"); !ok || err != nil || v == nil || len(v) != 0 {
		t.Errorf("empty value: %q %v %v", v, ok, err)
	}
	if v, ok, err := k.AppendGet(ctx, []byte("<"), "a"); !ok || err != nil || string(v) != "<one" {
		t.Errorf("append: %q %v %v", v, ok, err)
	}
	if v, ok, err := k.AppendGet(ctx, []byte("<"), "none"); ok || err != nil || string(v) != "<" {
		t.Errorf("append of a miss: %q %v %v", v, ok, err)
	}
	if e, ok, err := k.GetVersioned(ctx, "a"); !ok || err != nil || !e.HasVersion || e.Version != 3 || string(e.Value) != "one" {
		t.Errorf("versioned: %+v %v %v", e, ok, err)
	}
	if r, err := k.PutIf(ctx, "a", []byte("x"), IfAbsent()); err != nil || r.Applied || r.Version != 3 || !r.HasVersion {
		t.Errorf("put if absent: %+v %v", r, err)
	}
	if r, err := k.PutIf(ctx, "a", []byte("four"), IfVersion(3)); err != nil || !r.Applied || r.Version != 4 {
		t.Errorf("put if version: %+v %v", r, err)
	}
	if r, err := k.DeleteIf(ctx, "a", 3); err != nil || r.Applied || r.Version != 4 {
		t.Errorf("delete if, stale: %+v %v", r, err)
	}
	if r, err := k.DeleteIf(ctx, "a", 4); err != nil || !r.Applied || r.HasVersion {
		t.Errorf("delete if: %+v %v", r, err)
	}
	if v, ok, err := k.Delete(ctx, "empty"); !ok || err != nil || len(v) != 0 {
		t.Errorf("delete: %q %v %v", v, ok, err)
	}
	if _, ok, err := k.Delete(ctx, "empty"); ok || err != nil {
		t.Errorf("second delete: %v %v", ok, err)
	}
	if n := p.authCount(); n != 1 {
		t.Errorf("%d streams, want 1", n)
	}
}

func TestCacheTTL(t *testing.T) {
	st := newStore()
	p := newPeer(t, st.serve)
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	k := c.Cache("k")
	for ttl, want := range map[time.Duration]uint64{
		time.Nanosecond: 1, time.Millisecond: 1, 1500 * time.Microsecond: 2, time.Hour: 3_600_000,
		math.MaxInt64: 9_223_372_036_855,
	} {
		if err := k.Put(ctx, "t", nil, WithTTL(ttl)); err != nil {
			t.Errorf("%v: %v", ttl, err)
		}
		st.mu.Lock()
		if got := st.ttl["t"]; got != want {
			t.Errorf("a ttl of %v is sent as %d ms, want %d", ttl, got, want)
		}
		st.mu.Unlock()
	}
	for _, ttl := range []time.Duration{0, -1, -time.Hour, math.MinInt64} {
		if err := k.Put(ctx, "refused", nil, WithTTL(ttl)); !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("put with a ttl of %v: %v", ttl, err)
		}
		if _, err := k.PutIf(ctx, "refused", nil, IfAbsent(), WithTTL(ttl)); !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("put if with a ttl of %v: %v", ttl, err)
		}
	}
	if _, ok, _ := k.Get(ctx, "refused"); ok {
		t.Error("a refused put was sent")
	}
}

func TestCacheManyAtOnce(t *testing.T) {
	st := newStore()
	p := newPeer(t, st.serve)
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	k := c.Cache("k")
	var wg sync.WaitGroup
	for w := range 24 {
		wg.Go(func() {
			for i := range 30 {
				key := fmt.Sprintf("%d/%d", w, i%7)
				value := bytes.Repeat([]byte{byte(w), byte(i)}, i*40)
				if err := k.Put(ctx, key, value); err != nil {
					t.Error(err)
					return
				}
				got, ok, err := k.Get(ctx, key)
				if err != nil || !ok || !bytes.Equal(got, value) {
					t.Errorf("%s: %d bytes, %v %v", key, len(got), ok, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := p.authCount(); n > 4 {
		t.Errorf("%d streams, want 4 at most", n)
	}
}

func TestCacheRefusals(t *testing.T) {
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.message().(*wire.CachePut)
			if !ok {
				s.CloseWrite()
				return
			}
			f := wire.Failure{Message: "no"}
			switch string(m.Key) {
			case "fine":
				s.send(&wire.CacheOK{RequestID: m.RequestID.Value})
				continue
			case "storage":
				f.Code = wire.CodeStorage
			case "limit":
				f.Code = wire.CodeLimitExceeded
			case "forbidden":
				f.Code = wire.CodeForbidden
				s.send(s.auth.Offer().Error(f))
				s.CloseWrite()
				s.CancelRead(0)
				return
			}
			s.send(s.auth.Offer().Error(f))
		}
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	k := c.Cache("k")
	if err := k.Put(ctx, "storage", nil); !IsOutcomeUnknown(err) || IsRetryable(err) {
		t.Errorf("storage: %v", err)
	}
	if err := k.Put(ctx, "limit", nil); !errors.Is(err, ErrLimitExceeded) {
		t.Errorf("limit: %v", err)
	}
	if n := p.authCount(); n != 1 {
		t.Errorf("%d streams, want 1: a coded refusal leaves the stream usable", n)
	}
	// A refusal that ends the stream takes nobody along.
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			key, want := "fine", error(nil)
			if i%16 == 7 {
				key, want = "forbidden", ErrForbidden
			}
			if err := k.Put(ctx, key, nil); !errors.Is(err, want) {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	wg.Wait()
}

func TestCacheLostStream(t *testing.T) {
	var gets, puts atomic.Int64
	p := newPeer(t, func(s *peerStream) {
		for {
			switch m := s.message().(type) {
			case *wire.CacheGet:
				if gets.Add(1) == 1 {
					s.conn.Close(7, "cut")
					return
				}
				s.send(&wire.CacheValue{Tenant: m.Tenant, Namespace: m.Namespace, Cache: m.Cache, Key: m.Key, Value: wire.Some([]byte("v")), RequestID: m.RequestID})
			case *wire.CachePut, *wire.CachePutIf, *wire.CacheDelete, *wire.CacheDeleteIf:
				puts.Add(1)
				s.CancelWrite(2)
				s.CancelRead(2)
				return
			default:
				return
			}
		}
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	k := c.Cache("k")
	if v, ok, err := k.Get(ctx, "x"); err != nil || !ok || string(v) != "v" || gets.Load() != 2 {
		t.Errorf("a read is sent again: %q %v %v after %d", v, ok, err, gets.Load())
	}
	writes := []func() error{
		func() error { return k.Put(ctx, "x", nil) },
		func() error { _, _, err := k.Delete(ctx, "x"); return err },
		func() error { _, err := k.PutIf(ctx, "x", nil, IfAbsent()); return err },
		func() error { _, err := k.DeleteIf(ctx, "x", 1); return err },
	}
	for i, write := range writes {
		if err := write(); !IsOutcomeUnknown(err) {
			t.Errorf("write %d: %v, want an unknown outcome", i, err)
		}
		if puts.Load() != int64(i+1) {
			t.Errorf("write %d was sent %d times", i, puts.Load()-int64(i))
		}
	}
}

func TestCacheStreamIsGivenUp(t *testing.T) {
	cases := []struct {
		name string
		do   func(s *peerStream, m *wire.CachePut)
		want string
		opts []Option
	}{
		{"another id", func(s *peerStream, m *wire.CachePut) { s.send(&wire.CacheOK{RequestID: m.RequestID.Value + 1}) }, "expected", nil},
		{"another kind of answer", func(s *peerStream, m *wire.CachePut) {
			s.send(&wire.CacheValue{Cache: "k", Key: m.Key, RequestID: m.RequestID})
		}, "cache_value in answer to a cache put", nil},
		{"binary frame", func(s *peerStream, m *wire.CachePut) { s.Write((&wire.Ack{}).Append(nil)) }, "flags", nil},
		{"clean end", func(s *peerStream, m *wire.CachePut) { s.CloseWrite() }, "ended the stream", nil},
		{"silence", func(s *peerStream, m *wire.CachePut) {}, "no answer within", []Option{WithAckTimeout(100 * time.Millisecond)}},
	}
	for _, tc := range cases {
		p := newPeer(t, func(s *peerStream) {
			for {
				m, ok := s.message().(*wire.CachePut)
				if !ok {
					return
				}
				if string(m.Key) == "fine" {
					s.send(&wire.CacheOK{RequestID: m.RequestID.Value})
					continue
				}
				tc.do(s, m)
			}
		})
		c := dial(t, []string{p.addr()}, tc.opts...)
		k := c.Cache("k")
		err := k.Put(testContext(t), "bad", nil)
		if !IsOutcomeUnknown(err) || !strings.Contains(fmt.Sprint(err), tc.want) {
			t.Errorf("%s: %v, want an unknown outcome and %q", tc.name, err, tc.want)
		}
		if err := k.Put(testContext(t), "fine", nil); err != nil {
			t.Errorf("%s: afterwards: %v", tc.name, err)
		}
	}
}

// TestCacheOfALegacyBroker: no ids in the answers, and each answer ends its
// stream.
func TestCacheOfALegacyBroker(t *testing.T) {
	st := newStore()
	p := newPeer(t, func(s *peerStream) {
		m := s.message()
		switch m := m.(type) {
		case *wire.CacheGet:
			m.RequestID = wire.Optional[uint64]{}
			v := st.answer(m).(*wire.CacheValue)
			v.Version = wire.Optional[uint64]{}
			s.send(v)
		case *wire.CachePut:
			st.answer(m)
			s.send(&wire.OK{})
		}
		s.CloseWrite()
		s.CancelRead(0)
	})
	p.setAnswer(legacy)
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	k := c.Cache("k")
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			key := fmt.Sprint(i)
			if err := k.Put(ctx, key, []byte(key)); err != nil {
				t.Error(err)
			}
			if v, ok, err := k.Get(ctx, key); err != nil || !ok || string(v) != key {
				t.Errorf("%s: %q %v %v", key, v, ok, err)
			}
		})
	}
	wg.Wait()
	for _, err := range []error{
		func() error { _, _, err := k.Delete(ctx, "x"); return err }(),
		func() error { _, err := k.PutIf(ctx, "x", nil, IfAbsent()); return err }(),
		func() error { _, _, err := k.GetVersioned(ctx, "x"); return err }(),
	} {
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("error %v, want unsupported", err)
		}
	}
}

func TestAbandonedGetLeavesTheBufferAlone(t *testing.T) {
	hold := make(chan struct{})
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.message().(*wire.CacheGet)
			if !ok {
				return
			}
			if string(m.Key) == "slow" {
				<-hold
			}
			s.send(&wire.CacheValue{Tenant: m.Tenant, Namespace: m.Namespace, Cache: m.Cache, Key: m.Key, Value: wire.Some([]byte("late")), RequestID: m.RequestID})
		}
	})
	c := dial(t, []string{p.addr()})
	k := c.Cache("k")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	buf := make([]byte, 0, 64)
	if _, _, err := k.AppendGet(ctx, buf, "slow"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v", err)
	}
	copy(buf[:4:4], "mine")
	close(hold)
	if v, ok, err := k.Get(testContext(t), "x"); err != nil || !ok || string(v) != "late" {
		t.Fatalf("%q %v %v", v, ok, err)
	}
	if !slices.Equal(buf[:4], []byte("mine")) {
		t.Errorf("the buffer became %q", buf[:4])
	}
}

func TestCacheNamesAndKeys(t *testing.T) {
	p := newPeer(t, newStore().serve)
	c := dial(t, []string{p.addr()}, WithMaxFrame(1<<12))
	ctx := testContext(t)
	var name *NameError
	if _, _, err := c.Cache("a b").Get(ctx, "x"); !errors.As(err, &name) || name.Kind != "cache" {
		t.Errorf("cache name: %v", err)
	}
	for _, key := range []string{"", "\xff", strings.Repeat("x", 1<<16)} {
		if err := c.Cache("k").Put(ctx, key, nil); !errors.As(err, &name) || name.Kind != "cache key" {
			t.Errorf("key of %d bytes: %v", len(key), err)
		}
	}
	if err := c.Cache("k").Put(ctx, "x", make([]byte, 1<<13)); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("oversize: %v", err)
	}
	if err := c.Cache("k", InNamespace("n")).Put(ctx, "/*#: \u00e9", nil); err != nil {
		t.Errorf("any text is a key: %v", err)
	}
}
