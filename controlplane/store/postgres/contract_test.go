package postgres_test

import (
	"testing"

	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
	"github.com/felixlog/felix/controlplane/store/storetest"
)

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, o storetest.Options) store.Store {
		return open(t, postgres.Options{URL: pgtest.Start(t), Limits: o.Limits})
	})
}

// TestFeeds has three instances over one database (BR-44).
func TestFeeds(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	stores := make([]store.Store, 3)
	for i := range stores {
		stores[i] = open(t, postgres.Options{URL: url})
	}
	storetest.Feeds(t, stores, storetest.FeedsOptions{Changes: 300, Seed: 44})
}
