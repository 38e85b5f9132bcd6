package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

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

// TestDeletionWhoseTombstonesAreForgotten: a tenant that is deleted, and made
// anew, takes with it what was in it, though no feed goes back so far. What was
// made since is no part of that: it does not go because it is lost later.
func TestDeletionWhoseTombstonesAreForgotten(t *testing.T) {
	r := newRig(t, "")
	r.tenant("t1")
	r.stream("t1", "orders")
	r.cache("t1", "settings")
	r.pass()
	must(t, r.store.DeleteTenant(t.Context(), "t1"))
	r.tenant("t1")
	r.stream("t1", "since")
	// More changes, and tombstones, than there is room for, but not of tenants.
	for n := range 30 {
		s, c := r.stream("t1", fmt.Sprint("s", n)), r.cache("t1", fmt.Sprint("c", n))
		must(t, r.store.DeleteStream(t.Context(), s.Key()))
		must(t, r.store.DeleteCache(t.Context(), c.Key()))
	}
	r.pass()
	r.agrees("")
	if r.mirror.Stats().Missing != 0 {
		t.Error("what was deleted with its tenant counts as missing")
	}

	// Deleted and made anew between two feeds, so that the new ones are known first.
	r.source.set(func() {
		r.source.fail = func(call string) error {
			if call == "caches changes" {
				r.source.fail = nil
				must(t, r.store.DeleteTenant(t.Context(), "t1"))
				r.tenant("t1")
				r.stream("t1", "orders")
				r.cache("t1", "settings")
			}
			return nil
		}
	})
	r.pass()
	r.pass()
	before := r.target.holds()
	r.source.set(func() { r.source.store = openStore(t) })
	for range resetLooks {
		r.pass()
	}
	if got := r.target.holds(); !slices.Equal(got, before) {
		t.Errorf("target holds\n%s\nbefore it held\n%s", strings.Join(got, "\n"), strings.Join(before, "\n"))
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
