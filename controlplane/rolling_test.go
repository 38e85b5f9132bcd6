package controlplane

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// Restarting each of two instances in turn fails no heartbeat, write or wait of
// a client that knows both.
func TestRollingRestart(t *testing.T) {
	url := pgtest.Start(t)
	first, second := openPostgres(t, url), openPostgres(t, url)
	token := operator(t, first)
	settings := func(st store.Store, addr string) Options {
		o := quick(st)
		o.BindAddr = addr
		return o
	}
	servers := []*Server{start(t, settings(first, fixedAddr(t))), start(t, settings(second, fixedAddr(t)))}
	addrs := []string{servers[0].Addr(), servers[1].Addr()}
	c, err := apiclient.New(apiclient.Options{
		URL: "http://" + addrs[0] + ",http://" + addrs[1], HTTP: client(t), Timeout: patience,
		Token: func(context.Context) (string, error) { return token, nil }, Retry: apiclient.Retry{Attempts: 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reg, err := c.RegisterNode(ctx, apiclient.Registration{NodeID: "n1", AdvertiseAddr: "10.0.0.1:7000", Region: "local"})
	if err != nil {
		t.Fatal(err)
	}
	var beats, waits atomic.Int64
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			if _, err := c.Heartbeat(ctx, "n1", reg.Node.Status.Incarnation); err != nil && ctx.Err() == nil {
				t.Errorf("heartbeat: %v", err)
				return
			}
			beats.Add(1)
		}
	})
	wait.Go(func() {
		for ctx.Err() == nil {
			if _, err := c.AssignmentChanges(ctx, 0, 50*time.Millisecond); err != nil && ctx.Err() == nil {
				t.Errorf("wait: %v", err)
				return
			}
			waits.Add(1)
		}
	})
	for i, st := range []store.Store{first, second} {
		b, w := beats.Load(), waits.Load()
		eventually(t, "calls before the restart", func() bool { return beats.Load() > b+5 && waits.Load() > w })
		if err := servers[i].Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		b, w = beats.Load(), waits.Load()
		eventually(t, "calls while it is away", func() bool { return beats.Load() > b+5 && waits.Load() > w })
		servers[i] = start(t, settings(st, addrs[i]))
	}
	stop()
	wait.Wait()
}

// fixedAddr is a free address that stays free while nobody listens there: its
// port is below those that the system gives to connections.
func fixedAddr(t *testing.T) string {
	t.Helper()
	for range 1000 {
		n, err := rand.Int(rand.Reader, big.NewInt(12_000))
		if err != nil {
			t.Fatal(err)
		}
		addr := fmt.Sprintf("127.0.0.1:%d", 20_000+n.Int64())
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no port is free")
	return ""
}
