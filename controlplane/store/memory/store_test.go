package memory

import (
	"testing"

	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/storetest"
)

func open(t *testing.T, o storetest.Options) store.Store {
	s := Open(Options{Limits: o.Limits, Clock: o.Clock})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestContract(t *testing.T) { storetest.Run(t, open) }

func TestFeeds(t *testing.T) {
	storetest.Feeds(t, []store.Store{open(t, storetest.Options{})}, storetest.FeedsOptions{Changes: 3000, Seed: 44})
}
