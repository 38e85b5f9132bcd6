package durability

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/cli"
)

// asFelix makes this test binary be the felix command, so that what is killed
// is built as the tests are, with the race detector if they have it.
const asFelix = "as-felix"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asFelix {
		os.Args = append(os.Args[:1], os.Args[2:]...)
		os.Exit(cli.Main())
	}
	os.Exit(m.Run())
}

// patience bounds every single wait for a process or an answer.
const patience = 60 * time.Second

// A node is a process of felix dev on a data directory that outlives it.
type node struct {
	data     string
	port     string // "0" until the first start has chosen one
	settings []string

	cmd   *exec.Cmd
	said  *strings.Builder
	addr  string
	ca    string
	token string
}

func newNode(t *testing.T, settings ...string) *node {
	t.Helper()
	return &node{data: t.TempDir(), port: "0", settings: settings}
}

// start starts the node and waits until it accepts clients. It is killed at
// the end of the test at the latest.
func (n *node) start(t *testing.T) {
	t.Helper()
	n.said = &strings.Builder{}
	n.cmd = exec.Command(os.Args[0], asFelix, "dev", "--json", "--no-context", "--data", n.data, "--port", n.port, "--http", "0")
	n.cmd.Env = append(os.Environ(), n.settings...)
	n.cmd.Stderr = n.said
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := n.cmd
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone already
		_ = cmd.Wait()
	})
	stop := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	var ready struct {
		Addr      string `json:"addr"`
		CAFile    string `json:"ca_file"`
		TokenFile string `json:"token_file"`
	}
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		_ = cmd.Wait()
		t.Fatalf("the node did not start: %v\n%s", err, n.said)
	}
	token, err := os.ReadFile(ready.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	n.addr, n.ca, n.token = ready.Addr, ready.CAFile, strings.TrimSpace(string(token))
	n.port = n.addr[strings.LastIndexByte(n.addr, ':')+1:]
}

// kill ends the node as kill -9 does.
func (n *node) kill(t *testing.T) {
	t.Helper()
	if err := n.cmd.Process.Kill(); err != nil {
		t.Fatalf("the node was gone before it was killed: %v\n%s", err, n.said)
	}
	_ = n.cmd.Wait() // it ends by the signal
	if said := n.said.String(); strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic") {
		t.Fatalf("the node said:\n%s", said)
	}
}

func (n *node) dial(t *testing.T, ctx context.Context, opts ...client.Option) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	opts = append([]client.Option{
		client.WithTenant("dev"), client.WithNamespace("default"), client.WithToken(n.token), client.WithCAFile(n.ca),
	}, opts...)
	c, err := client.Dial(ctx, []string{n.addr}, opts...)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, n.said)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// kills is how often a node is killed: few in the tests of every day, KILLS of
// the environment in a campaign.
func kills(t *testing.T, everyday int) int {
	t.Helper()
	set := os.Getenv("KILLS")
	if set == "" {
		return everyday
	}
	n, err := strconv.Atoi(set)
	if err != nil || n < 1 {
		t.Fatalf("KILLS=%q: want a number of kills", set)
	}
	return n
}
