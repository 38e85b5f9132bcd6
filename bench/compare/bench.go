package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/felixlog/felix/bench/internal/host"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/pki"
	"github.com/felixlog/felix/bench/internal/proc"
	"github.com/felixlog/felix/bench/internal/report"
	"github.com/felixlog/felix/bench/internal/schedule"
)

const (
	// startWithin bounds the start of a server.
	startWithin = 20 * time.Second
	// overtime is how much longer than its two phases a client may take, to
	// connect, fill and drain.
	overtime = 30 * time.Second
)

// A bench is what every run of one comparison shares.
type bench struct {
	dir     string // of this comparison alone; removed with it
	self    string // this program, for its children
	felix   string // the felix binary
	files   pki.Files
	phases  measure.Phases
	settle  time.Duration
	stored  stored
	spawner *proc.Spawner
	// cpus are those the client and the server have to themselves when
	// pinned.
	clientCPU, serverCPU int
}

// A stored is how many records wait on a server before a run reads them.
type stored struct {
	replay  int // of a stream that is read from its beginning
	backlog int // of a queue
	claims  int // of that backlog, claimed ahead where acks alone are timed
}

// A serving is a server that has started.
type serving struct {
	// process is nil where the client is its own server.
	process *proc.Process
	// close removes what the server leaves behind, after it has ended; it
	// may be nil.
	close func()
}

// A contender is one side of a comparison.
type contender struct {
	// start starts the server and says what client loads it: the name of a
	// part and its specification.
	start func(ctx context.Context, b *bench, cpu int) (s serving, part string, spec any, err error)
	// redis says that redis-server must be installed.
	redis bool
}

// run makes one run of c: a fresh server, a fresh client, and both gone
// before it returns.
func (b *bench) run(ctx context.Context, c contender, mode schedule.Mode) report.Sample {
	clientCPU, serverCPU := proc.AnyCPU, proc.AnyCPU
	if mode == schedule.Pinned {
		clientCPU, serverCPU = b.clientCPU, b.serverCPU
	}
	host.Settle(ctx, b.settle)
	watch := host.Begin()
	var sample report.Sample
	client, server, err := b.measure(ctx, c, clientCPU, serverCPU, &sample.Result)
	if err != nil {
		sample.Failed = err.Error()
	}
	sample.ClientCPU, sample.ServerCPU = client.CPU.Seconds(), server.CPU.Seconds()
	sample.Foreign = watch.Foreign(client.CPU + server.CPU)
	return sample
}

func (b *bench) measure(ctx context.Context, c contender, clientCPU, serverCPU int, out *measure.Result) (client, server proc.Usage, err error) {
	started, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	s, part, spec, err := c.start(started, b, serverCPU)
	if err != nil {
		return client, server, fmt.Errorf("server: %w", err)
	}
	defer func() {
		if s.process != nil {
			server = s.process.Stop()
		}
		if s.close != nil {
			s.close()
		}
	}()
	ctx, cancel = context.WithTimeout(ctx, b.phases.Warmup+b.phases.Measure+overtime)
	defer cancel()
	p, err := b.child(part, spec, clientCPU)
	if err != nil {
		return client, server, fmt.Errorf("client: %w", err)
	}
	defer func() { client = p.Stop() }()
	if err := p.Document(ctx, out); err != nil {
		if s.process != nil {
			if said := s.process.Gone(); said != "" {
				return client, server, fmt.Errorf("client: %w (its server is gone: %s)", err, said)
			}
		}
		return client, server, fmt.Errorf("client: %w", err)
	}
	return client, server, nil
}

// child starts this program as a child that plays part.
func (b *bench) child(part string, spec any, cpu int) (*proc.Process, error) {
	doc, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode specification of %s: %w", part, err)
	}
	return b.spawner.Start(proc.Spec{Path: b.self, Args: []string{childMarker, part}, Input: doc, CPU: cpu})
}

// serve starts a server part and decodes what it says into endpoint.
func (b *bench) serve(ctx context.Context, part string, spec any, cpu int, endpoint any) (serving, error) {
	p, err := b.child(part, spec, cpu)
	if err != nil {
		return serving{}, err
	}
	if err := p.Document(ctx, endpoint); err != nil {
		p.Stop()
		return serving{}, err
	}
	return serving{process: p}, nil
}

// scratch makes a directory for one server.
func (b *bench) scratch(name string) (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp(b.dir, name+"-*")
	if err != nil {
		return "", nil, fmt.Errorf("make directory for %s: %w", name, err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // the parent goes too
}

// newBench prepares a comparison. The caller must close it.
func newBench(s settings) (*bench, error) {
	self, err := proc.Self()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "felix-bench-*")
	if err != nil {
		return nil, fmt.Errorf("make scratch directory: %w", err)
	}
	b := &bench{
		dir: dir, self: self, felix: s.felix, phases: s.phases, settle: s.settle,
		stored: stored{replay: replayRecords, backlog: queueBacklog, claims: queueClaims},
	}
	b.files, err = pki.Create(filepath.Join(dir, "pki"))
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	b.spawner = proc.NewSpawner()
	return b, nil
}

func (b *bench) close() {
	b.spawner.Close()
	_ = os.RemoveAll(b.dir) // a leftover in the system's temporary directory
}
