package auth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A keyServer publishes key sets, and counts how often it is asked.
type keyServer struct {
	mu    sync.Mutex
	sets  map[string][]Key
	err   error
	slow  time.Duration
	raw   string // answered instead, if set
	calls map[string]int
	now   atomic.Int64 // under way
	most  atomic.Int64 // under way at once
}

func newKeyServer() *keyServer {
	return &keyServer{sets: make(map[string][]Key), calls: make(map[string]int)}
}

func (k *keyServer) fetch(ctx context.Context, tenant string) ([]byte, error) {
	n := k.now.Add(1)
	defer k.now.Add(-1)
	for most := k.most.Load(); n > most && !k.most.CompareAndSwap(most, n); most = k.most.Load() {
	}
	k.mu.Lock()
	k.calls[tenant]++
	keys, err, slow, raw := k.sets[tenant], k.err, k.slow, k.raw
	k.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	switch {
	case err != nil:
		return nil, err
	case raw != "":
		return []byte(raw), nil
	case keys == nil:
		return nil, ErrUnknownTenant
	}
	return MarshalJWKS(keys)
}

func (k *keyServer) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

func (k *keyServer) called(tenant string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls[tenant]
}

func source(t *testing.T, k *keyServer, change ...func(*JWKSOptions)) *JWKSSource {
	t.Helper()
	o := JWKSOptions{Fetch: k.fetch}
	for _, f := range change {
		f(&o)
	}
	s := NewJWKSSource(o)
	t.Cleanup(s.Close)
	return s
}

func mint(t *testing.T, s *Signer, tenant string) string {
	t.Helper()
	token, err := s.Mint(Claims{Tenant: tenant, Subject: "x", IssuedAt: time.Now(), Expires: time.Now().Add(24 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// TestRotationWhileClientsConnect is BR-49: a hundred clients come with a new
// key, and then ten thousand with keys that nobody has.
func TestRotationWhileClientsConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyServer()
		old, renewed := NewSigner("", newKey(t)), NewSigner("", newKey(t))
		k.sets["acme"], k.sets["other"] = []Key{old.Key()}, []Key{old.Key()}
		s := source(t, k)
		v := NewVerifier(s, time.Now)
		if _, err := v.Verify(t.Context(), "acme", mint(t, old, "acme")); err != nil {
			t.Fatal(err)
		}
		k.set(func() { k.sets["acme"] = []Key{renewed.Key(), old.Key()}; k.slow = time.Second })
		verify := func(token string) error {
			_, err := v.Verify(t.Context(), "acme", token)
			return err
		}
		// The first load starts no cool-down, and all that come at once share one
		// fetch.
		var clients sync.WaitGroup
		for i := range 100 {
			clients.Go(func() {
				signer := renewed
				if i%2 == 0 {
					signer = old
				}
				if err := verify(mint(t, signer, "acme")); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			})
		}
		clients.Wait()
		if got := k.called("acme"); got != 2 {
			t.Errorf("%d fetches, want 2", got)
		}
		// That one does: a key that comes right after it is not known yet.
		late := NewSigner("", newKey(t))
		k.set(func() { k.sets["acme"] = []Key{late.Key(), renewed.Key(), old.Key()} })
		if err := verify(mint(t, late, "acme")); reason(err) != ReasonSignature || k.called("acme") != 2 {
			t.Errorf("within the cool-down: %v, %d fetches", err, k.called("acme"))
		}
		time.Sleep(DefaultKeysCooldown)
		if err := verify(mint(t, late, "acme")); err != nil || k.called("acme") != 3 {
			t.Errorf("after the cool-down: %v, %d fetches", err, k.called("acme"))
		}
		// A flood of key ids that nobody has: ten minutes of it.
		forged := NewSigner("", newKey(t))
		began := time.Now()
		for i := range 10_000 {
			forged.kid = fmt.Sprintf("kid-%d", i)
			if keys, err := s.KeysFor(t.Context(), "acme", forged.kid); err != nil || len(keys) != 3 {
				t.Fatalf("%v, %v", keys, err)
			}
			if i%500 == 0 { // a signature costs the test more than all else
				if err := verify(mint(t, forged, "acme")); reason(err) != ReasonSignature {
					t.Fatalf("forged: %v", err)
				}
			}
			time.Sleep(60 * time.Millisecond)
		}
		windows := int(time.Since(began)/DefaultKeysCooldown) + 1
		if got := k.called("acme") - 3; got > windows || got < 1 {
			t.Errorf("%d fetches in %d cool-downs", got, windows)
		}
		if err := verify(mint(t, old, "acme")); err != nil {
			t.Errorf("the old key meanwhile: %v", err)
		}
		if _, err := v.Verify(t.Context(), "other", mint(t, old, "other")); err != nil || k.called("other") != 1 {
			t.Errorf("another tenant: %v, %d fetches", err, k.called("other"))
		}
	})
}

func TestKeysOutliveTheirServer(t *testing.T) {
	for name, fail := range map[string]func(*keyServer){
		"down":         func(k *keyServer) { k.err = errors.New("connection refused") },
		"unknown":      func(k *keyServer) { k.err = ErrUnknownTenant },
		"hangs":        func(k *keyServer) { k.slow = time.Minute },
		"HTML":         func(k *keyServer) { k.raw = "<html></html>" },
		"empty set":    func(k *keyServer) { k.raw = `{"keys":[]}` },
		"other object": func(k *keyServer) { k.raw = `{}` },
		"foreign keys": func(k *keyServer) { k.raw = `{"keys":[{"kty":"RSA","n":"x","e":"AQAB","kid":"r"}]}` },
		"private key":  func(k *keyServer) { k.raw = `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"x","d":"y"}]}` },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKeyServer()
				signer := NewSigner("", newKey(t))
				k.sets["acme"] = []Key{signer.Key()}
				s := source(t, k)
				if _, err := s.Keys(t.Context(), "acme"); err != nil {
					t.Fatal(err)
				}
				k.set(func() { fail(k) })
				time.Sleep(3 * DefaultKeysAge)
				for range 20 {
					if keys, err := s.Keys(t.Context(), "acme"); err != nil || len(keys) != 1 {
						t.Fatalf("%v, %v", keys, err)
					}
					time.Sleep(time.Second)
				}
				// Twenty seconds and more: one attempt in five.
				if got := k.called("acme"); got < 3 || got > 7 {
					t.Errorf("%d fetches", got)
				}
				// A tenant without keys is told, and its failure remembered.
				for range 100 {
					if _, err := s.Keys(t.Context(), "new"); err == nil {
						t.Fatal("keys of a tenant that could not be fetched")
					}
				}
				if got := k.called("new"); got != 1 {
					t.Errorf("%d fetches for a tenant that failed a moment ago", got)
				}
			})
		})
	}
}

// TestStaleKeysNeverKeepAClientWaiting: once the server is known to be away,
// nobody waits for it who has keys.
func TestStaleKeysNeverKeepAClientWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyServer()
		k.slow = time.Hour
		s := source(t, k)
		s.Put("acme", []Key{NewSigner("", newKey(t)).Key()})
		began := time.Now()
		if _, err := s.Keys(t.Context(), "acme"); err != nil || time.Since(began) != DefaultKeysTimeout {
			t.Errorf("%v after %s: keys of an earlier run are asked for anew, once", err, time.Since(began))
		}
		for range 100 {
			time.Sleep(DefaultKeysRetry)
			waited := time.Now()
			if _, err := s.Keys(t.Context(), "acme"); err != nil || !time.Now().Equal(waited) {
				t.Fatalf("%v after %s", err, time.Since(waited))
			}
		}
	})
}

func TestStrangersCannotMakeItFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyServer()
		k.slow = time.Second
		s := source(t, k, func(o *JWKSOptions) {
			o.Known = func(tenant string) bool { return !strings.HasPrefix(tenant, "x") }
			o.Tenants = 100
		})
		if _, err := s.Keys(t.Context(), "xyz"); !errors.Is(err, ErrUnknownTenant) || k.called("xyz") != 0 {
			t.Errorf("%v after %d fetches", err, k.called("xyz"))
		}
		var strangers sync.WaitGroup
		for i := range 1000 {
			strangers.Go(func() { _, _ = s.Keys(t.Context(), fmt.Sprintf("t%d", i)) })
		}
		strangers.Wait()
		if most := k.most.Load(); most > DefaultKeysFetches {
			t.Errorf("%d fetches at once", most)
		}
		if st := s.Stats(); st.Tenants > 100 || st.Fetches > DefaultKeysFetches*(1+waitingFetches) {
			t.Errorf("%+v", st)
		}
	})
}

func TestACallerWhoGivesUpEndsNobodysFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeyServer()
		k.sets["acme"] = []Key{NewSigner("", newKey(t)).Key()}
		k.slow = time.Second
		s := source(t, k)
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := s.Keys(ctx, "acme"); !errors.Is(err, context.Canceled) {
				t.Errorf("the one that gave up: %v", err)
			}
		})
		callers.Go(func() {
			if _, err := s.Keys(t.Context(), "acme"); err != nil {
				t.Errorf("the one that waited: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		callers.Wait()
		if k.called("acme") != 1 {
			t.Errorf("%d fetches", k.called("acme"))
		}
	})
}
