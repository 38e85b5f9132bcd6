package client_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
)

// exampleTB lets an example have a node of its own.
type exampleTB struct{ cleanups []func() }

func (*exampleTB) Helper()                   {}
func (t *exampleTB) Cleanup(f func())        { t.cleanups = append(t.cleanups, f) }
func (*exampleTB) Fatalf(f string, a ...any) { log.Fatalf(f, a...) }
func (*exampleTB) Logf(string, ...any)       {}

func (t *exampleTB) TempDir() string {
	dir, err := os.MkdirTemp("", "felix-example-")
	if err != nil {
		log.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// exampleNode starts a node and a client of it; stop ends both.
func exampleNode(opts ...felixtest.Option) (c *client.Client, stop func()) {
	t := &exampleTB{}
	n := felixtest.Start(t, opts...)
	n.CreateStream("orders", 4)
	c, err := client.Dial(context.Background(), []string{n.Addr()},
		client.WithTenant(n.Tenant()), client.WithToken(n.Token()), client.WithCAPEM(n.CAPEM()))
	if err != nil {
		log.Fatal(err)
	}
	return c, func() {
		c.Close()
		for i := len(t.cleanups) - 1; i >= 0; i-- {
			t.cleanups[i]()
		}
	}
}

// check keeps the examples short.
func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}
