package raft

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/memory"
)

// A command that this program does not know is refused before it is in the log.
// One that got there, from a newer leader, stops the member for good.
func TestUnknownCommands(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{})
	createTenants(t, g.any(), 0, 3)
	leader, follower := g.leader(), g.follower()
	unknown := memory.Command{V: memory.CommandVersion, RID: "x", Op: "invented_later", Body: json.RawMessage("{}")}
	if _, err := g.members[follower].Propose(t.Context(), unknown); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("unknown command: %v", err)
	}
	// As a newer follower would send it.
	data, err := json.Marshal(unknown)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.members[follower].forward(t.Context(), leader, attempt{data: data})
	var refused *refusedError
	if !errors.As(err, &refused) {
		t.Errorf("unknown command from a follower: %v", err)
	}
	for id, s := range g.members {
		if err := s.Health(t.Context()); err != nil {
			t.Errorf("member %d: %v", id, err)
		}
	}
	// As a newer leader would do.
	if err := g.members[leader].raft.Load().Apply(data, patience).Error(); err != nil {
		t.Fatal(err)
	}
	for id, s := range g.members {
		eventually(t, "every member stops", func() bool { return s.Health(t.Context()) != nil })
		if _, err := s.Tenants(t.Context()); err == nil {
			t.Errorf("member %d answers", id)
		}
		if n := s.Stats().UnsupportedCommands; n != 1 {
			t.Errorf("member %d counts %d", id, n)
		}
	}
	g.stop(follower)
	if _, err := g.open(follower, g.options(follower)); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Errorf("restart: %v", err)
	}
}

// A repeat is answered with the first result while the state can remember it,
// and refused after.
func TestRepeats(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{})
	leader := g.members[g.leader()]
	body := json.RawMessage(`{"tenant_id":"t","display_name":"T"}`)
	data, err := json.Marshal(memory.Command{V: 1, RID: "once", Op: "create_tenant", Body: body})
	if err != nil {
		t.Fatal(err)
	}
	first, at, err := leader.accept(t.Context(), attempt{data: data})
	if err != nil || first.Err() != nil {
		t.Fatalf("%+v, %v", first, err)
	}
	second, _, err := leader.accept(t.Context(), attempt{data: data, repeat: true, since: at - 1})
	if err != nil || second.Err() != nil {
		t.Errorf("repeat: %+v, %v", second, err)
	}
	if n := leader.Stats().DeduplicatedProposals; n != 1 {
		t.Errorf("%d repeats counted", n)
	}
	leader.maxBetween = 20
	for range 30 {
		if err := leader.PutBridge(t.Context(), model.Bridge{Source: "a", Destination: "b"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := leader.accept(t.Context(), attempt{data: data, repeat: true, since: at - 1}); !errors.Is(err, errForgotten) {
		t.Errorf("late repeat: %v", err)
	}
}
