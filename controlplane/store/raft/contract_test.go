package raft

import (
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/storetest"
)

func TestContractAlone(t *testing.T) {
	storetest.Run(t, func(t *testing.T, o storetest.Options) store.Store {
		return openAlone(t, Options{DataDir: t.TempDir(), Limits: o.Limits, Clock: o.Clock, noSync: true})
	})
}

func TestContractGroup(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, o storetest.Options) store.Store {
		// The lease is the leader's, so the suite talks to it; the long timeout keeps
		// it in office on a slow machine.
		g := newGroup(t, 3, Options{
			Limits: o.Limits, Clock: o.Clock, ElectionTimeout: 700 * time.Millisecond, commitTimeout: 50 * time.Millisecond, noSync: true,
		})
		return g.members[g.leader()]
	})
}

func TestFeedsAlone(t *testing.T) {
	s := openAlone(t, Options{DataDir: t.TempDir()})
	storetest.Feeds(t, []store.Store{s}, storetest.FeedsOptions{Changes: 500})
}

// Writers and watchers through all three members at once.
func TestFeedsGroup(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{ElectionTimeout: time.Second, noSync: true})
	storetest.Feeds(t, []store.Store{g.members[1], g.members[2], g.members[3]}, storetest.FeedsOptions{Changes: 500})
	g.level()
}
