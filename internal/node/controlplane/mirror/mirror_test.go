package mirror

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

func TestWhatIsCreatedChangedAndDeleted(t *testing.T) {
	r := newRig(t, "")
	r.tenant("t1")
	s, c := r.stream("t1", "orders"), r.cache("t1", "settings")
	r.pass()
	r.agrees("")
	r.target.steps()
	size := uint64(7)
	_, err := r.store.PatchStream(t.Context(), s.Key(), model.StreamPatch{Retention: &model.Retention{MaxSizeBytes: &size}})
	must(t, err)
	r.pass()
	r.agrees("")
	if got, want := r.target.steps(), []string{"add stream t1/n/orders"}; !slices.Equal(got, want) {
		t.Errorf("steps are %q, want %q", got, want)
	}
	must(t, r.store.DeleteStream(t.Context(), s.Key()))
	must(t, r.store.DeleteCache(t.Context(), c.Key()))
	again := r.stream("t1", "orders")
	r.pass()
	r.agrees("")
	want := []string{"remove stream t1/n/orders", "remove cache t1/n/settings", "purge cache t1/n/settings " + c.UID, "purge stream t1/n/orders " + s.UID, "add stream t1/n/orders"}
	got := r.target.steps()
	slices.Sort(want[2:4])
	slices.Sort(got[2:4])
	if !slices.Equal(got, want) {
		t.Errorf("steps are %q, want %q", got, want)
	}
	must(t, r.store.DeleteTenant(t.Context(), "t1"))
	r.pass()
	r.agrees("")
	if r.target.data["stream t1/n/orders "+again.UID] {
		t.Error("data of a deleted tenant's stream is left")
	}
	r.target.steps()
	if r.pass(); len(r.target.steps()) != 0 {
		t.Error("a pass with nothing new does something")
	}
}

// TestFollowsWritersThatNeverRest is BR-44 on the reader's side: feeds that
// keep little, pages that are short, passes and new mirrors at random moments.
func TestFollowsWritersThatNeverRest(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			kept := 20
			if seed%2 == 1 {
				kept = 1000
			}
			r := newRigOn(t, openStoreOf(t, kept), "b1")
			r.node("b1")
			r.node("b2")
			for i := range 3 {
				r.tenant(fmt.Sprintf("t%d", i))
			}
			for range 400 {
				r.write(random)
				switch random.IntN(24) {
				case 0:
					// Now and then some steps fail: they are taken again.
					r.target.fail = func(string) error {
						if random.IntN(3) == 0 {
							return errAway
						}
						return nil
					}
					r.pass()
					r.target.fail = nil
				case 1, 2:
					r.pass()
					r.agrees("b1")
				}
			}
			r.pass()
			r.agrees("b1")
			if kept < 1000 {
				return // tombstones that were forgotten before they were seen remove nothing
			}
			for data := range r.target.data {
				if uid := data[strings.LastIndex(data, " ")+1:]; !slices.ContainsFunc(r.target.holds(), func(h string) bool { return strings.Contains(h, uid+",") || strings.HasSuffix(h, uid) }) {
					t.Errorf("%s is left of something that was deleted", data)
				}
			}
		})
	}
}

// TestChangeIsNotLeftForTheTimer: whatever passes and looks are under way when
// something changes, it is there after two trips over the network or three.
func TestChangeIsNotLeftForTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const far = 2 * time.Millisecond
		random := rand.New(rand.NewPCG(5, 8))
		r := newRig(t, "b1", func(o *Options) { o.Interval = time.Hour })
		r.node("b1")
		r.tenant("t1")
		r.source.far = far
		r.pass()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.mirror.Run(ctx); close(done) }()
		for n := range 200 {
			s := r.stream("t1", fmt.Sprint("s", n))
			time.Sleep(time.Duration(random.Int64N(int64(12 * far))))
			r.assign(shardOf(s, 0), "b1")
			time.Sleep(time.Duration(random.Int64N(int64(12 * far))))
			r.assign(shardOf(s, 1), "b1")
			time.Sleep(25 * far) // two passes over five feeds, and the looks
			r.agrees("b1")
		}
		cancel()
		<-done
	})
}

// TestNamespaceMadeAnewDuringAPass: what is deleted and made anew between the
// reading of two feeds is the new one.
func TestNamespaceMadeAnewDuringAPass(t *testing.T) {
	for _, tenant := range []bool{false, true} {
		r := newRig(t, "b1")
		r.node("b1")
		r.tenant("t1")
		r.stream("t1", "orders")
		r.cache("t1", "settings")
		r.pass()
		r.source.set(func() {
			r.source.fail = func(call string) error {
				if call != "caches changes" {
					return nil
				}
				r.source.fail = nil
				if tenant {
					must(t, r.store.DeleteTenant(t.Context(), "t1"))
					r.tenant("t1")
				} else {
					k := model.NamespaceKey{TenantID: "t1", Namespace: "n"}
					must(t, r.store.DeleteNamespace(t.Context(), k))
					must(t, r.store.CreateNamespace(t.Context(), model.Namespace{TenantID: "t1", Namespace: "n"}))
				}
				r.cache("t1", "settings")
				r.assign(shardOf(r.stream("t1", "orders"), 0), "b1")
				return nil
			}
		})
		r.pass()
		r.pass()
		r.agrees("b1")
	}
}

// write does one thing to the store that may be done.
func (r *rig) write(random *rand.Rand) {
	r.t.Helper()
	ctx := r.t.Context()
	tenant := fmt.Sprintf("t%d", random.IntN(3))
	name := fmt.Sprintf("s%d", random.IntN(8))
	key := model.StreamKey{TenantID: tenant, Namespace: "n", Stream: name}
	s, err := r.store.Stream(ctx, key)
	exists := err == nil
	switch op := random.IntN(20); {
	case op == 0:
		must(r.t, r.store.DeleteTenant(ctx, tenant))
		r.tenant(tenant)
	case op < 4 && exists:
		must(r.t, r.store.DeleteStream(ctx, key))
	case op < 8 && exists:
		size := random.Uint64N(1000) + 1
		_, err := r.store.PatchStream(ctx, key, model.StreamPatch{Retention: &model.Retention{MaxSizeBytes: &size}})
		must(r.t, err)
	case op < 14 && exists:
		r.assign(shardOf(s, random.Uint32N(2)), fmt.Sprintf("b%d", 1+random.IntN(2)))
	case op < 16:
		ck := model.CacheKey{TenantID: tenant, Namespace: "n", Cache: name}
		if _, err := r.store.Cache(ctx, ck); err == nil {
			must(r.t, r.store.DeleteCache(ctx, ck))
		} else {
			r.cache(tenant, name)
		}
	case !exists:
		r.stream(tenant, name)
	}
}

func TestWhatCannotBeServedIsLeftOut(t *testing.T) {
	r := newRig(t, "")
	r.tenant("t1")
	bad := r.newStream("t1", "bad name")
	must(t, r.store.CreateStream(t.Context(), bad))
	wide := r.newStream("t1", "wide")
	wide.Shards = 5000
	must(t, r.store.CreateStream(t.Context(), wide))
	r.stream("t1", "good")
	r.target.fail = func(step string) error {
		if step == "add stream t1/n/refused" {
			return errors.New("durable stream needs storage")
		}
		return nil
	}
	r.stream("t1", "refused")
	for range 3 {
		r.pass()
	}
	if got, want := r.target.holds(), []string{"namespace t1/n", "stream t1/n/good: uid-3, 2 shards, 0 bytes", "tenant t1"}; !slices.Equal(got, want) {
		t.Errorf("target holds %q", got)
	}
	if n := strings.Count(r.log.String(), "durable stream needs storage"); n != 1 {
		t.Errorf("the refusal is logged %d times", n)
	}
	if st := r.mirror.Stats(); st.Failed != 3 {
		t.Errorf("%+v", st)
	}
}

// TestRunWakesAndRests counts calls: changes arrive by long-poll, and a side
// that does not wait, or cannot be read, is not asked in a loop.
func TestRunWakesAndRests(t *testing.T) {
	for name, tt := range map[string]struct {
		waits bool
		fail  func(call string) error
		most  int // calls of one feed in a minute
	}{
		"waits":         {waits: true, most: 60/2 + 10},
		"does not wait": {most: 2*60/2 + 10},
		"away":          {fail: func(string) error { return errAway }, most: 2*60/2 + 10},
		"no snapshots": {fail: func(call string) error {
			if strings.HasSuffix(call, "snapshot") {
				return errAway
			}
			return nil
		}, most: 3*60/2 + 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "b1")
				r.node("b1")
				r.tenant("t1")
				r.source.waits = tt.waits
				r.pass()
				if tt.fail != nil {
					r.source.fail = tt.fail
					r.mirror.Refresh()
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { r.mirror.Run(ctx); close(done) }()
				time.Sleep(time.Minute)
				cancel()
				<-done
				calls := r.source.count("streams changes") + r.source.count("streams long-poll") + r.source.count("streams snapshot")
				if calls > tt.most || calls < 10 {
					t.Errorf("%d calls in a minute, want at most %d", calls, tt.most)
				}
			})
		})
	}
}
