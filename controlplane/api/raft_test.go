package api_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/raft"
	"github.com/felixlog/felix/internal/auth"
)

// A member is a rig over a member of a Raft group.
type member struct {
	*rig
	raft    *raft.Store
	catches atomic.Int64 // up
	once    sync.Once
}

// A countedStore counts how often the API has it catch up.
type countedStore struct {
	store.Store
	catches *atomic.Int64
}

func (s *countedStore) CatchUp(ctx context.Context) error {
	s.catches.Add(1)
	return s.Store.CatchUp(ctx)
}

// stop ends a member's store.
func (m *member) stop() { m.once.Do(func() { _ = m.raft.Close() }) }

// newGroup starts three instances over a Raft group. The leader comes first.
func newGroup(t *testing.T) (leader *member, followers [2]*member) {
	t.Helper()
	peers, listeners := map[uint64]string{}, map[uint64]net.Listener{}
	for id := uint64(1); id <= 3; id++ {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[id], peers[id] = ln, ln.Addr().String()
	}
	members := map[uint64]*member{}
	for id := range peers {
		st, err := raft.Open(t.Context(), raft.Options{
			NodeID: id, DataDir: t.TempDir(), Peers: maps.Clone(peers), Listener: listeners[id], ClusterID: "test",
			PeerToken: "a token of a group, long enough for it", InitialState: raft.New, ElectionTimeout: time.Second, WriteTimeout: 3 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		m := &member{raft: st}
		t.Cleanup(m.stop)
		members[id] = m
	}
	for _, m := range members {
		eventually(t, "the members are ready", func() bool { return m.raft.Health(t.Context()) == nil })
		// Placement has no part in this.
		m.rig = startRig(t, &countedStore{m.raft, &m.catches}, func(o *controlplane.Options) { o.ShardReconcileInterval = time.Hour })
	}
	eventually(t, "one of them leads", func() bool {
		for _, m := range members {
			if ok, err := m.raft.MayPlan(t.Context()); err == nil && ok {
				leader = m
			}
		}
		return leader != nil
	})
	n := 0
	for _, m := range members {
		if m != leader {
			followers[n] = m
			n++
		}
	}
	return leader, followers
}

// share lets a rig sign for the tenants of another.
func (r *rig) share(from *rig) {
	from.mu.Lock()
	defer from.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(r.signers, from.signers)
}

// TestMadeElsewhere: a member that has not heard yet of what was made at another
// one takes a new tenant's tokens all the same, and knows a new broker.
func TestMadeElsewhere(t *testing.T) {
	leader, followers := newGroup(t)
	leader.tenant("ops")
	op := leader.operator()
	// Followers hear of what was written some milliseconds later.
	whileBehind := func(what string, makeAndAsk func(i int, follower *member) (behind bool)) {
		t.Helper()
		behind := 0
		for i := 0; behind < 20; i++ {
			if i == 2000 {
				t.Fatalf("of %d %s the follower had heard of all but %d: the test shows nothing", i, what, behind)
			}
			if makeAndAsk(i, followers[i%2]) {
				behind++
			}
		}
	}
	whileBehind("tenants", func(i int, follower *member) bool {
		id := fmt.Sprintf("t%d", i)
		leader.tenant(id)
		follower.share(leader.rig)
		token := follower.token(id, "ns.manage:namespace:"+id+"/*")
		_, err := follower.raft.Tenant(t.Context(), id)
		follower.ok(200, "GET", "/v1/tenants/"+id+"/namespaces", token, nil)
		return err != nil
	})
	whileBehind("brokers", func(i int, follower *member) bool {
		id := fmt.Sprintf("n%d", i)
		node, body := "/v1/nodes/"+id, nodeBody(id, map[string]any{"advertise_addr": fmt.Sprintf("10.0.%d.%d:7000", i/250, i%250+1)})
		leader.ok(200, "POST", "/v1/nodes", op, body)
		_, err := follower.raft.Node(t.Context(), id)
		switch i / 2 % 4 {
		case 0:
			follower.ok(200, "POST", node+"/heartbeat", op, `{"incarnation":0}`)
		case 1:
			follower.ok(200, "POST", node+"/drain", op, nil)
		case 2:
			follower.ok(200, "PATCH", node, op, `{"region":"eu"}`)
		default:
			follower.ok(200, "POST", node+"/deregister", op, nil)
		}
		return err != nil
	})
}

// invent makes tokens of tenants that nobody made.
func invent(t *testing.T, n int) []string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]string, n)
	for i := range tokens {
		tokens[i], err = auth.NewSigner("invented", private).Mint(auth.Claims{
			Tenant: fmt.Sprintf("nowhere-%d", i), Subject: "x", Audience: auth.AudienceControlPlane,
			IssuedAt: time.Now(), Expires: time.Now().Add(time.Hour),
		})
		if err != nil {
			t.Fatal(err)
		}
		seen.secret(tokens[i])
	}
	return tokens
}

// TestTokensOfUnknownTenants: they are refused for good where it is certain that
// nobody made the tenant, which is found out for many at a time; where it is
// not, they are told to try again.
func TestTokensOfUnknownTenants(t *testing.T) {
	leader, followers := newGroup(t)
	leader.tenant("known")
	follower := followers[0]
	follower.share(leader.rig)
	follower.ok(200, "GET", "/v1/tenants/known/namespaces", follower.admin("known"), nil)
	const strangers = 200
	before := follower.catches.Load()
	var refused, others atomic.Int64
	var all sync.WaitGroup
	for _, token := range invent(t, strangers) {
		all.Go(func() {
			a, err := follower.try(t.Context(), "GET", "/v1/tenants", token, nil)
			switch {
			case err != nil:
				t.Error(err)
			case a.status == http.StatusUnauthorized:
				refused.Add(1)
			default:
				others.Add(1)
			}
		})
	}
	all.Wait()
	if refused.Load() != strangers || others.Load() != 0 {
		t.Errorf("%d were refused, %d not", refused.Load(), others.Load())
	}
	if n := follower.catches.Load() - before; n < 1 || n > strangers/2 {
		t.Errorf("the store caught up %d times for %d strangers", n, strangers)
	}

	// Without a majority nobody leads.
	leader.stop()
	followers[1].stop()
	eventually(t, "the member has no leader", func() bool { return follower.raft.Health(t.Context()) != nil })
	for _, ask := range []struct {
		status              int
		method, path, token string
	}{
		{503, "GET", "/v1/tenants", invent(t, 1)[0]},
		{503, "POST", "/v1/tenants/nowhere/token/exchange", "of a provider"},
		{503, "GET", "/v1/tenants/nowhere/.well-known/jwks.json", ""},
		{200, "GET", "/v1/tenants/known/namespaces", follower.admin("known")},
		{200, "GET", "/v1/tenants/known/.well-known/jwks.json", ""},
	} {
		all.Go(func() {
			a, err := follower.try(t.Context(), ask.method, ask.path, ask.token, nil)
			if err != nil || a.status != ask.status {
				t.Errorf("without a leader, %s: %d %s, %v", ask.path, a.status, a.body, err)
				return
			}
			if a.status == 503 && (!strings.Contains(string(a.body), `"code":"cannot_verify"`) || a.header.Get("Retry-After") == "") {
				t.Errorf("without a leader, %s: %s", ask.path, a.body)
			}
		})
	}
	all.Wait()
}
