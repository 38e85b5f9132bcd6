package durability

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/cli"
	"github.com/felixlog/felix/internal/dev"
)

// asFelix makes this test binary be the felix command, so that what is killed
// is built as the tests are, with the race detector if they have it.
const asFelix = "as-felix"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case asFelix:
			os.Args = append(os.Args[:1], os.Args[2:]...)
			os.Exit(cli.Main())
		case asWorker:
			os.Exit(workerMain(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

// patience bounds every single wait for a process or an answer.
const patience = 60 * time.Second

// A node is a process of felix dev that can be killed.
type node struct {
	*dev.Process
}

// startNode starts a node on a directory of its own, with settings in its
// environment. It is gone at the end of the test at the latest.
func startNode(t *testing.T, settings ...string) *node {
	t.Helper()
	p, err := dev.Spawn(t.Context(), func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], append([]string{asFelix}, args...)...)
		cmd.Env = append(os.Environ(), settings...)
		return cmd
	}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() }) // it may be gone already
	return &node{p}
}

func (n *node) restart(t *testing.T) {
	t.Helper()
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// kill ends the node as kill -9 does.
func (n *node) kill(t *testing.T) {
	t.Helper()
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
	if said := n.Said(); strings.Contains(said, "DATA RACE") || strings.Contains(said, "panic") {
		t.Fatalf("the node said:\n%s", said)
	}
}

func (n *node) dial(t *testing.T, ctx context.Context, opts ...client.Option) *client.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := n.Dial(ctx, opts...)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, n.Said())
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// noticing lets a client notice soon that the node is gone.
var noticing = client.WithKeepAlive(250*time.Millisecond, 1500*time.Millisecond)

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
