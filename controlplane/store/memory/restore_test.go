package memory

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/store"
)

func TestRestore(t *testing.T) {
	s, commands := furnish(t)
	want := snapshotOf(t, s)
	fresh := NewState(store.Limits{})
	for _, c := range commands {
		fresh.Apply(c)
	}
	if got := snapshotOf(t, fresh); !bytes.Equal(got, want) {
		t.Fatalf("replayed:\n got %s\nwant %s", got, want)
	}
	other := NewState(store.Limits{})
	other.Apply(command("create_tenant", "x", 9, map[string]string{"tenant_id": "other"}))
	if err := other.Restore(want); err != nil {
		t.Fatal(err)
	}
	if got := snapshotOf(t, other); !bytes.Equal(got, want) {
		t.Fatalf("restored:\n got %s\nwant %s", got, want)
	}
	if strings.Contains(string(want), "reported_at_millis") {
		t.Error("the snapshot holds reports")
	}
	if len(s.reports) != 0 || len(other.reports) != 0 {
		t.Error("reports survived an import or a restart")
	}
}

// TestRestoreGoesOn: what a restored state answers next shows that nothing was
// left out of the snapshot.
func TestRestoreGoesOn(t *testing.T) {
	s, commands := furnish(t)
	s.Apply(command("take_lease", "lease", 0, holderBody{"me"}))
	restored := NewState(store.Limits{})
	if err := restored.Restore(snapshotOf(t, s)); err != nil {
		t.Fatal(err)
	}
	// All that was done once, as repeats, then as new commands.
	for _, again := range []string{"", "again-"} {
		for _, c := range commands {
			c.RID = again + c.RID
			equal(t, c.Op, restored.Apply(c), s.Apply(c))
		}
	}
	for _, c := range []Command{
		command("take_lease", "", 0, holderBody{"me"}),
		command("release_lease", "", 0, holderBody{"me"}),
		command("take_lease", "", 0, holderBody{"me"}),
		command("set_moves_paused", "", 0, pauseBody{false}),
		command("revoke_refresh_family", "", 0, familyBody{"t", "f"}),
		command("expire_stale_nodes", "", 0, expiry{1 << 60}),
		command("delete_tenant", "", 0, tenantID{"t"}),
	} {
		equal(t, c.Op, restored.Apply(c), s.Apply(c))
		checkInvariants(t, s)
		checkInvariants(t, restored)
	}
	if a, b := snapshotOf(t, s), snapshotOf(t, restored); !bytes.Equal(a, b) {
		t.Fatalf("restored:\n got %s\nwant %s", b, a)
	}
}

// TestRestoreRefuses cuts a snapshot short, and spoils it in every way that can
// be seen: the state stays as it was, and never becomes an empty one.
func TestRestoreRefuses(t *testing.T) {
	full, _ := furnish(t)
	good := snapshotOf(t, full)
	s := NewState(store.Limits{})
	s.Apply(command("create_tenant", "x", 9, map[string]string{"tenant_id": "kept"}))
	before := snapshotOf(t, s)
	refuse := func(name string, b []byte) {
		t.Helper()
		if err := s.Restore(b); err == nil {
			t.Fatalf("%s: was restored", name)
		}
		if now := snapshotOf(t, s); !bytes.Equal(now, before) {
			t.Fatalf("%s: the state is now %s", name, now)
		}
	}
	for n := 0; n < len(good); n += 31 {
		refuse("truncated", good[:n])
	}
	refuse("null", []byte("null"))
	refuse("empty object", []byte("{}"))
	refuse("goes on", append(bytes.Clone(good), '1'))

	spoil := func(name string, change func(d map[string]any)) {
		t.Helper()
		d := map[string]any{}
		r := json.NewDecoder(bytes.NewReader(good))
		r.UseNumber()
		if err := r.Decode(&d); err != nil {
			t.Fatal(err)
		}
		change(d)
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		refuse(name, b)
	}
	list := func(d map[string]any, k string) []any { return d[k].([]any) }
	first := func(d map[string]any, k string) map[string]any { return list(d, k)[0].(map[string]any) }
	spoil("newer version", func(d map[string]any) { d["version"] = ImageVersion + 1 })
	spoil("unknown field", func(d map[string]any) { d["quotas"] = []any{} })
	spoil("unknown field within", func(d map[string]any) { first(d, "streams")["quota"] = 1 })
	for _, k := range []string{"tenants", "namespaces", "streams", "caches", "bridges", "nodes", "assignments", "refresh_tokens", "answered"} {
		spoil(k+" twice", func(d map[string]any) { d[k] = append(list(d, k), list(d, k)[0]) })
		spoil(k+" null", func(d map[string]any) { list(d, k)[0] = nil })
	}
	for _, k := range []string{"namespaces", "streams", "caches", "assignments", "refresh_tokens", "auth"} {
		spoil(k+" adrift", func(d map[string]any) { first(d, k)["tenant_id"] = "none" })
	}
	spoil("missing tenants", func(d map[string]any) { delete(d, "tenants") })
	spoil("missing nodes", func(d map[string]any) { delete(d, "nodes") })
	spoil("address twice", func(d map[string]any) {
		nodes := list(d, "nodes")
		nodes[0].(map[string]any)["spec"] = nodes[1].(map[string]any)["spec"]
	})
	spoil("two current keys", func(d map[string]any) {
		for _, k := range first(d, "auth")["keys"].([]any) {
			k.(map[string]any)["status"] = "current"
		}
	})
	spoil("odd key", func(d map[string]any) { first(d, "auth")["keys"].([]any)[0].(map[string]any)["status"] = "odd" })
	spoil("null key", func(d map[string]any) { first(d, "auth")["keys"].([]any)[0] = nil })
	spoil("odd tombstone", func(d map[string]any) { first(d, "tombstones")["kind"] = "odd" })
	spoil("sequence", func(d map[string]any) { d["namespace_feed"].(map[string]any)["next"] = 7 })
	spoil("head before its changes", func(d map[string]any) { d["namespace_feed"].(map[string]any)["next"] = 0 })
	spoil("nameless result", func(d map[string]any) { first(d, "answered")["rid"] = "" })

	if err := s.Restore(good); err != nil {
		t.Fatal(err)
	}
}
