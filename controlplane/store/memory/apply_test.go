package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func TestResultsAreRemembered(t *testing.T) {
	s := NewState(store.Limits{})
	// The first and the last cannot be done twice; those between are cheap.
	create := func(i int) Command {
		return command("create_tenant", fmt.Sprint("r", i), uint64(i), model.Tenant{TenantID: fmt.Sprint("t", i)})
	}
	for i := range ResultsKept {
		c := create(i)
		if i > 1 && i < ResultsKept-1 {
			c.Op, c.Body = "set_moves_paused", json.RawMessage("{}")
		}
		if r := s.Apply(c); r.Kind != KindDone {
			t.Fatalf("command %d: %s", i, asJSON(r))
		}
	}
	// All are remembered, with refusals, and over a restart; the clock does not
	// move for a repeat.
	refusal := command("create_tenant", "r0", 0, model.Tenant{TenantID: "t1"})
	if r := s.Apply(refusal); r.Kind != KindDone {
		t.Fatalf("the oldest command, repeated: %s", asJSON(r))
	}
	restored := NewState(store.Limits{})
	if err := restored.Restore(snapshotOf(t, s)); err != nil {
		t.Fatal(err)
	}
	late := create(ResultsKept - 1)
	late.At += 1000
	for _, s := range []*State{s, restored} {
		if r := s.Apply(late); r.Kind != KindDone || s.Clock() != ResultsKept-1 {
			t.Fatalf("the newest command, repeated: %s at %d", asJSON(r), s.Clock())
		}
	}
	if s.Repeats() != 2 || restored.Repeats() != 1 {
		t.Errorf("%d and %d repeats, want 2 and 1", s.Repeats(), restored.Repeats())
	}
	// One more, a refusal, and the oldest is forgotten.
	conflict := command("create_tenant", "more", 0, model.Tenant{TenantID: "t1"})
	for range 2 {
		if r := s.Apply(conflict); outcome(r) != string(store.Exists) {
			t.Fatalf("existing tenant: %s", asJSON(r))
		}
	}
	if r := s.Apply(create(0)); outcome(r) != string(store.Exists) {
		t.Fatalf("the oldest command, forgotten and repeated: %s", asJSON(r))
	}
	if len(s.answered) != ResultsKept || s.results.len() != ResultsKept {
		t.Errorf("%d results are kept, want %d", len(s.answered), ResultsKept)
	}
	// A command without a name is never a repeat.
	nameless := create(ResultsKept + 1)
	nameless.RID = ""
	if first, second := s.Apply(nameless), s.Apply(nameless); first.Kind != KindDone || outcome(second) != string(store.Exists) {
		t.Errorf("a nameless command twice: %s, %s", asJSON(first), asJSON(second))
	}
}

// TestUnknownCommand: a state that cannot follow its peers stops, and goes on
// from its last snapshot when the program knows more.
func TestUnknownCommand(t *testing.T) {
	for name, c := range map[string]Command{
		"op":         {V: CommandVersion, Op: "abolish_tenant", Body: json.RawMessage("{}")},
		"version":    {V: CommandVersion + 1, Op: "create_tenant", Body: json.RawMessage(`{"tenant_id":"x"}`)},
		"no version": {Op: "create_tenant", Body: json.RawMessage(`{"tenant_id":"x"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := furnish(t)
			before := snapshotOf(t, s)
			m := NewMachine(s, nil, Hooks{})
			if err := m.Health(t.Context()); err != nil {
				t.Fatal(err)
			}
			if c.Check() == nil {
				t.Error("the command passes the check")
			}
			r := m.Apply(c)
			if r.Error == nil || r.Error.Kind != ErrorUnsupported {
				t.Fatalf("result %s", asJSON(r))
			}
			known := command("create_tenant", "later", 0, model.Tenant{TenantID: "later"})
			if err := known.Check(); err != nil {
				t.Fatal(err)
			}
			if r := m.Apply(known); r.Error == nil || r.Error.Kind != ErrorUnsupported {
				t.Errorf("a later command was applied: %s", asJSON(r))
			}
			if m.Stuck() == nil || m.Health(t.Context()) == nil {
				t.Error("the state says that all is well")
			}
			if _, err := m.Snapshot(); err == nil {
				t.Error("the state made a snapshot")
			}
			if _, err := m.Tenant(t.Context(), "later"); err == nil {
				t.Error("a later command was applied")
			}
			if err := m.Restore(before); err != nil {
				t.Fatal(err)
			}
			if r := m.Apply(known); r.Kind != KindDone || m.Stuck() != nil {
				t.Errorf("after a restart: %s, %v", asJSON(r), m.Stuck())
			}
		})
	}
}

// TestMalformedBodies: a command that is known and cannot be read is refused by
// every member alike.
func TestMalformedBodies(t *testing.T) {
	s := NewState(store.Limits{})
	empty := snapshotOf(t, s)
	for op := range operations {
		for _, body := range []string{"", "[]", `"x"`, "{", `{"tenant_id":7,"key":7,"node_id":7,"dump":7,"source":7,"sender":7,"puts":7,"token":"x","before_millis":"x","before_secs":"x","holder":7,"paused":7,"feature":7,"stream":7}`} {
			r := s.Apply(Command{V: CommandVersion, Op: op, Body: json.RawMessage(body)})
			if r.Error == nil || r.Error.Kind != ErrorInternal || r.Value != nil {
				t.Errorf("%s of %q: %s", op, body, asJSON(r))
			}
		}
	}
	if now := snapshotOf(t, s); !bytes.Equal(now, empty) {
		t.Errorf("malformed commands changed the state to %s", now)
	}
}

// TestErrorsTravel: what callers decide on survives a result in JSON.
func TestErrorsTravel(t *testing.T) {
	for _, err := range []error{
		&store.NotFoundError{What: "stream"},
		&store.ConflictError{Reason: store.AddressTaken, What: "address is taken"},
		fmt.Errorf("wrapped: %w", &store.ConflictError{Reason: store.InUse, What: "in use"}),
	} {
		b, jsonErr := json.Marshal(refused(err))
		if jsonErr != nil {
			t.Fatal(jsonErr)
		}
		var r Result
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		var missing, wantMissing *store.NotFoundError
		var conflict, wantConflict *store.ConflictError
		got := r.Err()
		if errors.As(err, &wantMissing) && (!errors.As(got, &missing) || *missing != *wantMissing) {
			t.Errorf("%v became %v", err, got)
		}
		if errors.As(err, &wantConflict) && (!errors.As(got, &conflict) || *conflict != *wantConflict) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if err := (Result{Kind: KindDone}).Err(); err != nil {
		t.Errorf("a result without error has %v", err)
	}
}

// TestBootstrapOfOlderLogs: what an earlier program wrote means the same.
func TestBootstrapOfOlderLogs(t *testing.T) {
	s := NewState(store.Limits{})
	seed := model.AuthSeed{Key: model.SigningKey{KID: "k"}, Groupings: []model.Grouping{{User: "u", Role: "r"}}}
	body := bootstrapBody{"t", seed}
	if r := s.Apply(command("bootstrap_tenant", "early", 0, body)); r.Error == nil || r.Error.Kind != ErrorNotFound {
		t.Fatalf("before the tenant: %s", asJSON(r))
	}
	s.Apply(command("create_tenant", "tenant", 0, model.Tenant{TenantID: "t"}))
	if r := s.Apply(command("bootstrap_tenant", "first", 0, body)); r.Kind != KindDone {
		t.Fatalf("the first: %s", asJSON(r))
	}
	if r := s.Apply(command("bootstrap_tenant", "second", 0, body)); r.Error == nil || r.Error.Reason != store.Bootstrapped {
		t.Fatalf("the second: %s", asJSON(r))
	}
	if i := s.auth["t"]; !i.bootstrapped || len(i.keys) != 1 || len(i.groupings) != 1 {
		t.Fatalf("%+v", i)
	}
}
