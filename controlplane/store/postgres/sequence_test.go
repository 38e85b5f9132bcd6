package postgres_test

import (
	"context"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// TestNoCommitOvertakesASequence attacks every feed (BR-44): a transaction has
// taken a sequence and does not commit, while the store writes to the same feed.
// A reader sees nothing until the first commits, and then both in order.
func TestNoCommitOvertakesASequence(t *testing.T) {
	t.Parallel()
	for _, feed := range []struct {
		name    string
		entry   string // made by the slow transaction at its sequence
		write   func(ctx context.Context, s *postgres.Store) error
		changes func(ctx context.Context, s *postgres.Store, since uint64) (seqs []uint64, next uint64, err error)
	}{
		{"tenant", `(seq, op, tenant_id) SELECT $1, 'deleted', 'slow'`,
			func(ctx context.Context, s *postgres.Store) error {
				return s.CreateTenant(ctx, model.Tenant{TenantID: "fast"})
			},
			func(ctx context.Context, s *postgres.Store, since uint64) ([]uint64, uint64, error) {
				return sequences(s.TenantChanges(ctx, since))
			}},
		{"namespace", `(seq, op, tenant_id, namespace) SELECT $1, 'deleted', 't1', 'slow'`,
			func(ctx context.Context, s *postgres.Store) error {
				return s.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: "fast"})
			},
			func(ctx context.Context, s *postgres.Store, since uint64) ([]uint64, uint64, error) {
				return sequences(s.NamespaceChanges(ctx, since))
			}},
		{"stream", `(seq, op, tenant_id, namespace, stream) SELECT $1, 'deleted', 't1', 'ns', 'slow'`,
			func(ctx context.Context, s *postgres.Store) error {
				return s.CreateStream(ctx, streamOf(model.NamespaceKey{TenantID: "t1", Namespace: "ns"}, "fast", 1))
			},
			func(ctx context.Context, s *postgres.Store, since uint64) ([]uint64, uint64, error) {
				return sequences(s.StreamChanges(ctx, since))
			}},
		{"cache", `(seq, op, tenant_id, namespace, cache) SELECT $1, 'deleted', 't1', 'ns', 'slow'`,
			func(ctx context.Context, s *postgres.Store) error {
				return s.CreateCache(ctx, model.Cache{TenantID: "t1", Namespace: "ns", Cache: "fast", Shards: 1})
			},
			func(ctx context.Context, s *postgres.Store, since uint64) ([]uint64, uint64, error) {
				return sequences(s.CacheChanges(ctx, since))
			}},
		{"node", `(seq, op, node_id) SELECT $1, 'deregistered', 'slow'`,
			func(ctx context.Context, s *postgres.Store) error {
				_, err := s.RegisterNode(ctx, "fast", specOf("10.0.0.2:1"))
				return err
			},
			func(ctx context.Context, s *postgres.Store, since uint64) ([]uint64, uint64, error) {
				return sequences(s.NodeChanges(ctx, since))
			}},
		{"shard_assignment", `(seq, op, tenant_id, namespace, stream, shard, kind) SELECT $1, 'unassigned', 't1', 'ns', 'slow', 0, 'stream'`,
			func(ctx context.Context, s *postgres.Store) error {
				token, err := s.PlacementToken(ctx)
				if err != nil {
					return err
				}
				a := model.Assignment{ShardKey: shardOf("orders", 0), Leader: "n1", State: model.Assigning}
				_, err = s.PutAssignmentIf(ctx, a, nil, token)
				return err
			},
			func(ctx context.Context, s *postgres.Store, since uint64) ([]uint64, uint64, error) {
				return sequences(s.AssignmentChanges(ctx, since))
			}},
	} {
		t.Run(feed.name, func(t *testing.T) {
			url := pgtest.Start(t)
			s := open(t, postgres.Options{URL: url})
			ctx := within(t)
			k := namespaceOf(t, s)
			must(t, s.CreateStream(ctx, streamOf(k, "orders", 1)))
			_, err := s.RegisterNode(ctx, "n1", specOf("10.0.0.1:1"))
			must(t, err)

			slow := connect(t, url)
			exec(t, slow, `BEGIN`)
			var seq uint64
			must(t, slow.QueryRow(ctx, `UPDATE `+feed.name+`_change_seq SET next_seq = next_seq + 1 RETURNING next_seq - 1`).Scan(&seq))
			exec(t, slow, `INSERT INTO `+feed.name+`_changes `+feed.entry, int64(seq))

			written := make(chan error, 1)
			go func() { written <- feed.write(ctx, s) }()
			waiting(t, url, 1)
			seqs, next, err := feed.changes(ctx, s, seq)
			must(t, err)
			if len(seqs) != 0 || next != seq {
				t.Fatalf("before the first commit a reader sees %v and the head %d", seqs, next)
			}
			select {
			case err := <-written:
				t.Fatalf("the second write overtook the first: %v", err)
			default:
			}
			exec(t, slow, `COMMIT`)
			must(t, <-written)
			seqs, next, err = feed.changes(ctx, s, seq)
			must(t, err)
			if len(seqs) != 2 || seqs[0] != seq || seqs[1] != seq+1 || next != seq+2 {
				t.Fatalf("after both commits a reader sees %v and the head %d", seqs, next)
			}
		})
	}
}

func sequences[T model.Sequenced](p model.Page[T], err error) ([]uint64, uint64, error) {
	var seqs []uint64
	for _, c := range p.Items {
		seqs = append(seqs, c.Sequence())
	}
	return seqs, p.NextSeq, err
}

func shardOf(stream string, shard uint32) model.ShardKey {
	return model.ShardKey{TenantID: "t1", Namespace: "ns", Stream: stream, Shard: shard, Kind: model.StreamShard}
}
