package memory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// writers are the methods of a store that go through its log; notReads are those
// that do not look at the state for their caller.
var (
	writers = []string{
		"AcquireLease", "ActivateSigningKey", "AddGrouping", "AddPolicy", "BootstrapTenant", "CreateCache", "CreateNamespace",
		"CreateResources", "CreateStream", "CreateTenant", "CreateTenantWithKey", "DeleteAssignment", "DeleteBridge", "DeleteCache", "DeleteIssuer",
		"DeleteNamespace", "DeleteNode", "DeleteStream", "DeleteTenant", "EnableFeature", "EnsureSigningKey", "ExpireStale",
		"Heartbeat", "Import", "InsertRefreshToken", "PatchCache", "PatchNode", "PatchStream", "PurgeRefreshTokens",
		"PutAssignmentIf", "PutAssignmentsIf", "PutBridge", "PutIssuer", "RecordReports", "RegisterNode", "ReleaseLease",
		"RemoveGrouping", "RemovePolicy", "RetireSigningKey", "RevokeFamily", "RevokePrincipal", "SetLifecycle",
		"SetMovesPaused", "StageSigningKey", "TakeRefreshToken",
	}
	notReads = []string{"AssignmentsChanged", "Close", "Durable", "Health", "MayPlan", "Name", "NowMillis"}
)

// call calls a method of the store with arguments of no meaning, and answers
// with its error.
func call(m *Machine, ctx context.Context, method string) error {
	f := reflect.ValueOf(store.Store(m)).MethodByName(method)
	var args []reflect.Value
	for i := range f.Type().NumIn() {
		switch in := f.Type().In(i); {
		case in == reflect.TypeFor[context.Context]():
			args = append(args, reflect.ValueOf(ctx))
		case in == reflect.TypeFor[*model.Dump]():
			args = append(args, reflect.ValueOf(&model.Dump{Version: model.DumpVersion}))
		case in == reflect.TypeFor[[]model.ReplicaReport]():
			args = append(args, reflect.ValueOf([]model.ReplicaReport{{}}))
		case in == reflect.TypeFor[string]():
			args = append(args, reflect.ValueOf("x"))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	out := f.Call(args)
	err, _ := out[len(out)-1].Interface().(error)
	return err
}

func storeMethods() (all []string) {
	t := reflect.TypeFor[store.Store]()
	for i := range t.NumMethod() {
		all = append(all, t.Method(i).Name)
	}
	return all
}

// TestServe: a member that may not answer says so, whatever it is asked, and
// never answers from a state that may be behind or empty.
func TestServe(t *testing.T) {
	refusal := errors.New("catching up")
	r := newRecorder(store.Limits{}, nil)
	m := NewMachine(r.machine.state, r, Hooks{Serve: func() error { return refusal }})
	r.machine = m
	reads := 0
	for _, method := range storeMethods() {
		if slices.Contains(writers, method) || slices.Contains(notReads, method) {
			continue
		}
		reads++
		if err := call(m, t.Context(), method); !errors.Is(err, refusal) {
			t.Errorf("%s answered %v", method, err)
		}
	}
	if reads != len(storeMethods())-len(writers)-len(notReads) {
		t.Errorf("%d reads of %d methods: the lists of the test are old", reads, len(storeMethods()))
	}
	for _, method := range []string{"Health", "MayPlan", "NowMillis"} {
		if err := call(m, t.Context(), method); err != nil {
			t.Errorf("%s answered %v", method, err)
		}
	}
	if err := m.CreateTenant(t.Context(), model.Tenant{TenantID: "t"}); err != nil {
		t.Errorf("a write was refused: %v", err)
	}
}

// failing is a log that is out of reach.
type failing struct{ err error }

func (f failing) Propose(context.Context, Command) (Result, error) { return Result{}, f.err }

// TestProposalFails: every write hands on what its log says, typed.
func TestProposalFails(t *testing.T) {
	cause := errors.New("no leader")
	m := NewMachine(NewState(store.Limits{}), failing{&store.UnavailableError{Err: cause}}, Hooks{})
	m.Apply(command("register_node", "r", 0, registration{NodeID: "x"})) // so that a sweep has work
	for _, method := range writers {
		err := call(m, t.Context(), method)
		if method == "ExpireStale" {
			_, err = m.ExpireStale(t.Context(), 1)
		}
		var unavailable *store.UnavailableError
		if !errors.As(err, &unavailable) || !errors.Is(err, cause) {
			t.Errorf("%s answered %v", method, err)
		}
	}
	if m.Durable() || m.Name() != "" {
		t.Error("a machine without hooks has a name or is durable")
	}
}

// TestClosed: nothing answers after the end, and the log is closed once.
func TestClosed(t *testing.T) {
	closed := 0
	r := newRecorder(store.Limits{}, nil)
	m := NewMachine(r.machine.state, r, Hooks{Close: func() error { closed++; return nil }})
	for range 3 {
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if closed != 1 {
		t.Errorf("closed %d times", closed)
	}
	for _, method := range storeMethods() {
		if slices.Contains([]string{"AssignmentsChanged", "Close", "Durable", "Name"}, method) {
			continue
		}
		if err := call(m, t.Context(), method); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s answered %v", method, err)
		}
	}
	if len(r.commands) != 0 {
		t.Errorf("%d commands were proposed after the end", len(r.commands))
	}
}

func TestHooks(t *testing.T) {
	r := newRecorder(store.Limits{}, nil)
	var asked []string
	m := NewMachine(r.machine.state, r, Hooks{
		Name: "log", Durable: true,
		Now:     func(context.Context) (uint64, error) { return 42, nil },
		Health:  func(context.Context) error { return errors.New("ill") },
		MayPlan: func(context.Context) (bool, error) { return false, nil },
		AcquireLease: func(_ context.Context, holder string, _ time.Duration) (store.Lease, error) {
			asked = append(asked, "acquire "+holder)
			return store.Lease{}, nil
		},
		ReleaseLease: func(_ context.Context, holder string) error {
			asked = append(asked, "release "+holder)
			return nil
		},
	})
	r.machine = m
	ctx := t.Context()
	now, nowErr := m.NowMillis(ctx)
	may, mayErr := m.MayPlan(ctx)
	lease, leaseErr := m.AcquireLease(ctx, "a", time.Second)
	if err := errors.Join(nowErr, mayErr, leaseErr, m.ReleaseLease(ctx, "b")); err != nil {
		t.Fatal(err)
	}
	if now != 42 || may || lease.Held || m.Name() != "log" || !m.Durable() || m.Health(ctx) == nil {
		t.Errorf("hooks were not asked: %d %t %v", now, may, lease)
	}
	if got := strings.Join(asked, ", "); got != "acquire a, release b" {
		t.Errorf("asked: %s", got)
	}
	// The backend's own way to the lease.
	for i, want := range []store.Lease{{Held: true, TakenOver: true}, {Held: true}} {
		if got, err := m.TakeLease(ctx, "term 7"); err != nil || got != want {
			t.Errorf("lease %d is %v, %v", i, got, err)
		}
	}
	if len(r.commands) != 1 {
		t.Errorf("%d commands for a lease and its renewal, want 1", len(r.commands))
	}
}

// TestNames: writes are named by the randomness that was given, and none is made
// without.
func TestNames(t *testing.T) {
	r := newRecorder(store.Limits{}, nil)
	m := NewMachine(r.machine.state, r, Hooks{Random: bytes.NewReader(slices.Repeat([]byte{0xab}, 16))})
	r.machine = m
	if err := m.CreateTenant(t.Context(), model.Tenant{TenantID: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := m.CreateTenant(t.Context(), model.Tenant{TenantID: "u"}); err == nil {
		t.Error("a write without a name was proposed")
	}
	if len(r.commands) != 1 || r.commands[0].RID != strings.Repeat("ab", 16) || r.commands[0].V != CommandVersion {
		t.Errorf("commands: %s", asJSON(r.commands))
	}
	s := Open(Options{Random: iotest.ErrReader(errors.New("dry"))})
	if err := s.CreateTenant(t.Context(), model.Tenant{TenantID: "t"}); err == nil {
		t.Error("a write without a name was made")
	}
}

// TestImagesWhileWriting encodes, reads and restores while others write: an
// image is what the state was, whatever comes after.
func TestImagesWhileWriting(t *testing.T) {
	s, _ := furnish(t)
	r := &recorder{direct: direct{clock: NewClock(time.Now)}}
	r.machine = NewMachine(s, r, Hooks{})
	m, ctx := r.machine, t.Context()
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			k := model.StreamKey{TenantID: "t", Namespace: "ns", Stream: fmt.Sprint("w", w)}
			for i := range 30 {
				age := uint64(i + 1)
				err := errors.Join(
					m.CreateStream(ctx, model.Stream{TenantID: k.TenantID, Namespace: k.Namespace, Stream: k.Stream}),
					failed(m.PatchStream(ctx, k, model.StreamPatch{Retention: &model.Retention{MaxAgeSeconds: &age}})),
					failed(m.Heartbeat(ctx, "n1", 0)),
					m.AddPolicy(ctx, "t", model.Policy{Subject: fmt.Sprint(w, i)}),
					m.InsertRefreshToken(ctx, model.RefreshToken{TenantID: "t", TokenID: fmt.Sprint(w, "-", i), FamilyID: "f"}),
					failed(m.RevokeFamily(ctx, "t", "f")),
					m.DeleteStream(ctx, k),
				)
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 6 {
				i, err := m.Image()
				if err != nil {
					t.Error(err)
					return
				}
				first, err := i.Encode()
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := m.Export(ctx); err != nil {
					t.Error(err)
				}
				second, err := i.Encode()
				if err != nil || !bytes.Equal(first, second) {
					t.Errorf("an image changed (%v)", err)
				}
				if err := NewState(store.Limits{}).Restore(first); err != nil {
					t.Errorf("an image taken between writes: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func failed[V any](_ V, err error) error { return err }
