package disk

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	hraft "github.com/hashicorp/raft"
)

// A voter is the real library over a store that crashes before a given durable
// write: the goroutine that writes ends there, with nothing said.
type voter struct {
	store *Store
	raft  *hraft.Raft
	left  atomic.Int64 // durable writes before the crash; negative never crashes
}

type quiet struct{ hraft.FSM }

func (quiet) Apply(*hraft.Log) any { return nil }

func openVoter(t *testing.T, path string) (*voter, *hraft.InmemTransport) {
	t.Helper()
	v := &voter{}
	v.left.Store(-1)
	var err error
	v.store, err = Open(path, Options{NoSync: true, BeforeCommit: func(string) {
		if v.left.Load() == 0 {
			runtime.Goexit()
		}
		v.left.Add(-1)
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, self := hraft.NewInmemTransport("self")
	_, candidate := hraft.NewInmemTransport("candidate")
	candidate.Connect("self", self)
	c := hraft.DefaultConfig()
	c.LocalID = "self"
	c.HeartbeatTimeout, c.ElectionTimeout = time.Hour, time.Hour // it stands for nothing itself
	c.Logger = hclog.New(&hclog.LoggerOptions{Output: io.Discard})
	v.raft, err = hraft.NewRaft(c, quiet{}, v.store, v.store, hraft.NewInmemSnapshotStore(), self)
	if err != nil {
		t.Fatal(err)
	}
	return v, candidate
}

// crash leaves the file as a machine that lost power would.
func (v *voter) crash() {
	v.left.Store(-1)
	_ = v.raft.Shutdown().Error()
	_ = v.store.db.Close()
}

// At most one vote per term, and none without comparing logs, wherever the
// member crashes (bug report BR-46).
func TestBallotSurvivesCrashes(t *testing.T) {
	for crashAt := int64(0); crashAt < 4; crashAt++ {
		for _, again := range []string{"a", "b"} {
			t.Run(fmt.Sprintf("crash before write %d, then %s asks", crashAt, again), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "raft.db")
				granted := make(map[uint64]map[string]bool) // by term
				ask := func(tr *hraft.InmemTransport, term uint64, who string, lastTerm uint64) bool {
					var resp hraft.RequestVoteResponse
					req := &hraft.RequestVoteRequest{
						RPCHeader: hraft.RPCHeader{ProtocolVersion: 3, ID: []byte(who), Addr: []byte(who)},
						Term:      term, LastLogIndex: 10 * lastTerm, LastLogTerm: lastTerm,
					}
					err := tr.RequestVote("self", "self", req, &resp)
					if err == nil && resp.Granted {
						if granted[term] == nil {
							granted[term] = make(map[string]bool)
						}
						granted[term][who] = true
					}
					return err == nil && resp.Granted
				}
				v, _ := openVoter(t, path)
				if err := v.store.StoreLogs([]*hraft.Log{{Index: 1, Term: 4}, {Index: 2, Term: 4}}); err != nil {
					t.Fatal(err)
				}
				v.crash()
				// It votes for a in term 5, which will be the older choice.
				v, tr := openVoter(t, path)
				if !ask(tr, 5, "a", 9) {
					t.Fatal("no vote in term 5")
				}
				// In term 6 b asks, and the member crashes before one of its writes.
				v.left.Store(crashAt)
				ask(tr, 6, "b", 9)
				v.crash()
				v, tr = openVoter(t, path)
				// a asks with a log that lacks what the member has: never a vote.
				if ask(tr, 6, "a", 0) {
					t.Error("a vote without comparing logs")
				}
				ask(tr, 6, again, 9)
				ask(tr, 6, "c", 9)
				v.crash()
				for term, who := range granted {
					if len(who) > 1 {
						t.Errorf("votes in term %d for %v", term, who)
					}
				}
			})
		}
	}
}
