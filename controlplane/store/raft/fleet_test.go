package raft

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

// A process is a member as a test sees it.
type process struct {
	id      uint64
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	control string
	stderr  bytes.Buffer
}

// A fleet is a group of processes.
type fleet struct {
	t     *testing.T
	dir   string
	addrs map[uint64]*slot
	links map[[2]uint64]*link

	mu    sync.Mutex // over procs, which writers look into
	procs map[uint64]*process
}

// member answers with a process, nil while there is none.
func (f *fleet) member(id uint64) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.procs[id]
}

func (f *fleet) enter(id uint64, p *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p == nil {
		delete(f.procs, id)
	} else {
		f.procs[id] = p
	}
}

func newFleet(t *testing.T, n uint64) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), procs: make(map[uint64]*process)}
	f.addrs, f.links = newLinks(t, n)
	t.Cleanup(func() {
		for _, p := range f.procs {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		http.DefaultClient.CloseIdleConnections()
	})
	for id := uint64(1); id <= n; id++ {
		f.start(id)
	}
	for _, p := range f.procs {
		eventually(t, "all members vote", func() bool {
			var votes bool
			return p.get("/health", nil) == nil && p.get("/votes", &votes) == nil && votes
		})
	}
	return f
}

func (f *fleet) start(id uint64) *process {
	f.t.Helper()
	spec := memberSpec{NodeID: id, DataDir: filepath.Join(f.dir, fmt.Sprint(id)), Peers: make(map[uint64]string)}
	for to := range f.addrs {
		spec.Peers[to] = f.links[[2]uint64{id, to}].addr()
	}
	b, err := json.Marshal(spec)
	if err != nil {
		f.t.Fatal(err)
	}
	p := &process{id: id, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(b))
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		p.stdin, err = p.cmd.StdinPipe()
	}
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		f.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = p.cmd.Wait()
		f.t.Fatalf("member %d: %v\n%s", id, err, p.stderr.String())
	}
	addrs := strings.Fields(line)
	f.addrs[id].set(addrs[0])
	p.control = "http://" + addrs[1]
	f.enter(id, p)
	return p
}

func (p *process) get(path string, answer any) error {
	resp, err := http.Get(p.control + path)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(string(b))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(b, answer)
}

// kill ends the process without a word.
func (f *fleet) kill(id uint64) {
	p := f.procs[id]
	f.enter(id, nil)
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// leader waits for a member other than not that leads.
func (f *fleet) leader(not uint64) uint64 {
	f.t.Helper()
	var leader uint64
	eventually(f.t, "a leader", func() bool {
		for id, p := range f.procs {
			var leads bool
			if id != not && p.get("/leads", &leads) == nil && leads {
				leader = id
				return true
			}
		}
		return false
	})
	return leader
}

// check waits until every member has exactly the tenants below n, in a feed
// without gaps.
func (f *fleet) check(n int) {
	f.t.Helper()
	for id, p := range f.procs {
		var got model.Snapshot[model.Tenant]
		eventually(f.t, fmt.Sprintf("member %d has all %d tenants", id, n), func() bool {
			return p.get("/tenants", &got) == nil && len(got.Items) >= n
		})
		if len(got.Items) != n || got.NextSeq != uint64(n) {
			f.t.Errorf("member %d: %d tenants, sequence %d; want %d", id, len(got.Items), got.NextSeq, n)
		}
		for i, tn := range got.Items {
			if tn != tenant(i) {
				f.t.Fatalf("member %d: tenant %d is %v", id, i, tn)
			}
		}
	}
}
