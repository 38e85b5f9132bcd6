package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/cli"
)

// asFelix as first argument makes this test binary be the felix command.
const asFelix = "as-felix"

// runFelix is the felix command, if this process is to be one.
func runFelix() {
	if len(os.Args) > 1 && os.Args[1] == asFelix {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		os.Exit(cli.Main())
	}
}

// A process is felix dev in a process of its own, on a directory that outlives
// it: a node that can be killed.
type process struct {
	data string
	port string // "0" until the first start has chosen one
	cmd  *exec.Cmd
	said strings.Builder

	addr, ca, token string
}

// startProcess starts a node that ends with the test at the latest.
func startProcess(t *testing.T) *process {
	t.Helper()
	p := &process{data: t.TempDir(), port: "0"}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		for _, alarm := range []string{"DATA RACE", "panic"} {
			if strings.Contains(p.said.String(), alarm) {
				t.Errorf("the node said:\n%s", p.said.String())
			}
		}
	})
	return p
}

// start waits until the node accepts clients.
func (p *process) start() error {
	p.cmd = exec.Command(os.Args[0], asFelix, "dev", "--json", "--no-context", "--data", p.data, "--port", p.port, "--http", "0", "--api", "0")
	p.cmd.Stderr = &p.said
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	hung := time.AfterFunc(callLimit, func() { p.cmd.Process.Kill() })
	defer hung.Stop()
	var ready struct {
		Addr      string `json:"addr"`
		CAFile    string `json:"ca_file"`
		TokenFile string `json:"token_file"`
	}
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		p.kill()
		return fmt.Errorf("the node did not start: %w\n%s", err, p.said.String())
	}
	token, err := os.ReadFile(ready.TokenFile)
	if err != nil {
		return err
	}
	p.addr, p.ca, p.token = ready.Addr, ready.CAFile, strings.TrimSpace(string(token))
	p.port = p.addr[strings.LastIndexByte(p.addr, ':')+1:]
	return nil
}

// kill ends the node as kill -9 does: without a word to anybody.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait() // it ends by the signal, unless it was gone already
}

func (p *process) description() map[string]any {
	return map[string]any{
		"addr": p.addr, "ca": p.ca, "tenant": "dev", "namespace": "default", "token": p.token, "durable": true, "ring": replayRing,
	}
}

// serve has nothing to create: streams and caches appear on first use.
func (p *process) serve(l line) error {
	switch {
	case (l.Ask == "create_stream" || l.Ask == "create_cache") && l.Shards <= 1:
		return nil
	case l.Ask == "restart":
		p.kill()
		return p.start()
	default:
		return fmt.Errorf("script asks for %q", l.Ask)
	}
}
