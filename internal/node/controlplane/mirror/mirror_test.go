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

	"github.com/felixlog/felix/controlplane/apiclient"
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
				if random.IntN(12) == 0 {
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

// TestMissingMetadataDeletesNothing is BR-45: (a) an empty control plane, (b)
// one set back to yesterday, (c) snapshots cut short, (d) nonsense for answers.
func TestMissingMetadataDeletesNothing(t *testing.T) {
	refusal := func(status int) error { return &apiclient.Error{Status: status} }
	nonsense := &apiclient.AnswerError{Status: 200, What: "not the JSON that was asked for"}
	for name, harm := range map[string]func(r *rig){
		"empty": func(r *rig) { r.source.store = openStore(t) },
		"set back": func(r *rig) {
			old := openStore(t)
			must(t, old.CreateTenant(t.Context(), model.Tenant{TenantID: "t1"}))
			must(t, old.CreateNamespace(t.Context(), model.Namespace{TenantID: "t1", Namespace: "n"}))
			r.source.store = old
		},
		"snapshots are cut short": func(r *rig) {
			r.mirror.Refresh()
			r.source.fail = func(call string) error {
				if strings.HasSuffix(call, "snapshot") {
					return nonsense
				}
				return nil
			}
		},
		"404":         func(r *rig) { r.mirror.Refresh(); r.source.fail = func(string) error { return refusal(404) } },
		"500":         func(r *rig) { r.source.fail = func(string) error { return refusal(500) } },
		"HTML":        func(r *rig) { r.source.fail = func(string) error { return nonsense } },
		"unreachable": func(r *rig) { r.source.fail = func(string) error { return &apiclient.UnreachableError{Err: errAway} } },
		"one feed alone": func(r *rig) {
			empty := openStore(t)
			r.source.fail = func(call string) error {
				r.source.store = r.store
				if strings.HasPrefix(call, "streams") {
					r.source.store = empty
				}
				return nil
			}
		},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %t", name, restarted), func(t *testing.T) {
				r := newRig(t, "b1")
				r.node("b1")
				r.tenant("t1")
				r.tenant("t2")
				s := r.stream("t1", "orders")
				r.stream("t2", "more")
				r.cache("t1", "settings")
				r.assign(shardOf(s, 0), "b1")
				r.pass()
				before := r.target.holds()
				state := r.mirror.State()
				r.target.steps()
				if restarted {
					r.target = newTarget(t)
					r.mirror = r.again("b1")
					r.mirror.Load(state)
				}
				r.source.set(func() { harm(r) })
				for range 2 * resetLooks {
					_ = r.mirror.Seed(t.Context()) // it may fail: what counts is what is left
				}
				if got := r.target.holds(); !slices.Equal(got, before) {
					t.Errorf("target holds\n%s\nbefore it held\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
				}
				for _, step := range r.target.steps() {
					if !strings.HasPrefix(step, "add") && !strings.HasPrefix(step, "assign") {
						t.Errorf("step %q", step)
					}
				}
				if name == "empty" && !strings.Contains(r.log.String(), "stream t1/n/orders") {
					t.Errorf("the log does not name what is missing:\n%s", r.log.String())
				}
				// What was deleted meanwhile goes once the control plane is itself again.
				must(t, r.store.DeleteStream(t.Context(), s.Key()))
				r.source.set(func() { r.source.fail, r.source.store = nil, r.store })
				r.mirror.Refresh()
				r.pass()
				r.agrees("b1")
				if r.mirror.Stats().Missing != 0 {
					t.Error("something counts as missing still")
				}
			})
		}
	}
}

func TestAnotherUIDWithoutATombstone(t *testing.T) {
	r := newRig(t, "")
	r.tenant("t1")
	old := r.stream("t1", "orders")
	r.pass()
	// The control plane lost everything, and somebody made the stream again.
	fresh := openStore(t)
	r.store, r.source.store = fresh, fresh
	r.tenant("t1")
	renewed := r.stream("t1", "orders")
	r.mirror.Refresh()
	r.pass()
	r.agrees("")
	if !r.target.data["stream t1/n/orders "+old.UID] {
		t.Error("the data of the lost stream is gone")
	}
	if old.UID == renewed.UID {
		t.Fatal("one uid")
	}
}

func TestDataStaysWhileItsRemovalFails(t *testing.T) {
	r := newRig(t, "")
	r.tenant("t1")
	s := r.stream("t1", "orders")
	r.stream("t1", "other")
	r.pass()
	r.target.fail = func(step string) error {
		if strings.HasPrefix(step, "purge") {
			return errors.New("disk says no")
		}
		return nil
	}
	must(t, r.store.DeleteStream(t.Context(), s.Key()))
	r.pass()
	r.agrees("")
	if st := r.mirror.Stats(); st.Failed != 1 {
		t.Errorf("%+v", st)
	}
	r.target.fail = nil
	r.pass()
	if r.target.data["stream t1/n/orders "+s.UID] || r.mirror.Stats().Failed != 0 {
		t.Error("it is not tried again")
	}
}

func TestShardsFollowTheirGenerations(t *testing.T) {
	r := newRig(t, "b1")
	r.node("b1")
	r.node("b2")
	r.tenant("t1")
	s := r.stream("t1", "orders")
	k := shardOf(s, 1)
	r.assign(k, "b1")
	r.pass()
	r.assign(k, "b2")
	r.assign(k, "b1")
	r.assign(k, "b2")
	r.pass()
	r.assign(k, "b1")
	r.pass()
	must(t, r.store.DeleteAssignment(t.Context(), k))
	r.pass()
	var got []string
	for _, step := range r.target.steps() {
		if strings.Contains(step, "shard") {
			got = append(got, step)
		}
	}
	want := []string{"assign shard t1/n/orders/1 at 0", "unassign shard t1/n/orders/1 at 3", "assign shard t1/n/orders/1 at 4", "release shard t1/n/orders/1"}
	if !slices.Equal(got, want) {
		t.Errorf("steps are %q, want %q", got, want)
	}
}

// TestGenerationsThatBeginAnew: after a reset a lower generation counts, and a
// shard that stays is not interrupted.
func TestGenerationsThatBeginAnew(t *testing.T) {
	r := newRig(t, "b1")
	setup := func() (stays, goes model.ShardKey) {
		r.node("b1")
		r.node("b2")
		r.tenant("t1")
		s := model.Stream{TenantID: "t1", Namespace: "n", Stream: "orders", Kind: model.KindStream, Shards: 2, ReplicationFactor: 1, Consistency: model.Leader, Delivery: model.AtLeastOnce, UID: "same"}
		must(t, r.store.CreateStream(t.Context(), s))
		return shardOf(s, 0), shardOf(s, 1)
	}
	stays, goes := setup()
	for range 6 {
		r.assign(stays, "b1")
		r.assign(goes, "b1")
	}
	r.pass()
	r.target.steps()
	fresh := openStore(t)
	r.store, r.source.store = fresh, fresh
	setup()
	r.assign(stays, "b1")
	r.assign(goes, "b2")
	for range 2 * resetLooks {
		r.pass()
	}
	got := r.target.steps()
	want := []string{"release shard t1/n/orders/1", "assign shard t1/n/orders/0 at 6"}
	if !slices.Equal(got, want) {
		t.Errorf("steps are %q, want %q", got, want)
	}
}

// TestAnInstanceThatLags: an instance that is behind the others for a moment is
// no reset, and takes nothing back.
func TestAnInstanceThatLags(t *testing.T) {
	r := newRig(t, "b1")
	r.node("b1")
	r.node("b2")
	r.tenant("t1")
	s := r.stream("t1", "orders")
	r.assign(shardOf(s, 0), "b1")
	lagging := openStore(t)
	dump, err := r.store.Export(t.Context())
	must(t, err)
	must(t, lagging.Import(t.Context(), dump, true))
	r.assign(shardOf(s, 0), "b2")
	r.assign(shardOf(s, 0), "b1")
	r.pass()
	r.target.steps()
	snapshots := r.source.count("assignments snapshot")
	r.source.set(func() { r.source.store = lagging })
	for range resetLooks - 1 {
		r.pass()
	}
	r.source.set(func() { r.source.store = r.store })
	r.pass()
	if got := r.source.count("assignments snapshot"); got != snapshots {
		t.Errorf("%d snapshots of assignments were taken", got-snapshots)
	}
	if steps := r.target.steps(); len(steps) > 0 {
		t.Errorf("steps are %q", steps)
	}
	r.agrees("b1")
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
