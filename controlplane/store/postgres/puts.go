package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// PutAssignmentIf writes an assignment if its generation and the placement token
// are as expected (control plane 7.7).
func (s *Store) PutAssignmentIf(ctx context.Context, a model.Assignment, expected *uint64, token uint64) (store.PutResult, error) {
	results, err := s.PutAssignmentsIf(ctx, []store.Put{{Assignment: a, Expected: expected}}, token)
	if err != nil {
		return store.PutResult{}, err
	}
	return results[0], nil
}

// PutAssignmentsIf is PutAssignmentIf for many, in one transaction. The lock on
// the token is taken first and held to the end: planners write one after the
// other.
func (s *Store) PutAssignmentsIf(ctx context.Context, puts []store.Put, token uint64) (results []store.PutResult, err error) {
	if len(puts) > store.MaxPuts {
		return nil, fmt.Errorf("%d assignments in one write, the most is %d", len(puts), store.MaxPuts)
	}
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		results = make([]store.PutResult, len(puts))
		current, err := lockToken(ctx, w)
		if err != nil {
			return err
		}
		if token != current {
			for i := range results {
				results[i] = store.PutResult{Outcome: store.Fenced, Token: current}
			}
			return nil
		}
		found, err := w.surroundings(ctx, puts)
		if err != nil {
			return err
		}
		var written []model.Assignment
		for i, p := range puts {
			if results[i], err = found.judge(p); err != nil {
				return err
			}
			if results[i].Outcome == store.Written {
				found.assignments[p.Assignment.ShardKey] = results[i].Written
				written = append(written, results[i].Written)
			}
		}
		for i := range results {
			results[i].Token = current + uint64(len(written))
		}
		return w.putAll(ctx, written)
	})
	return results, err
}

// surroundings are what assignments are judged by, all of it locked.
type surroundings struct {
	streams     map[model.StreamKey]uint32 // their shards
	caches      map[model.CacheKey]uint32
	nodes       map[string]bool
	assignments map[model.ShardKey]model.Assignment
}

// surroundings reads and locks what the puts name, each table in the order of
// its keys, in one round trip.
func (w *writer) surroundings(ctx context.Context, puts []store.Put) (*surroundings, error) {
	var keys, streams, caches keyLists
	var nodes []string
	for _, p := range puts {
		a := p.Assignment
		keys.add(a.ShardKey)
		if a.Kind == model.CacheShard {
			caches.add(a.ShardKey)
		} else {
			streams.add(a.ShardKey)
		}
		nodes = append(append(nodes, a.Leader), a.Replicas...)
	}
	batch := &pgx.Batch{}
	batch.Queue(`
		SELECT tenant_id, namespace, stream, shards FROM streams
		WHERE (tenant_id, namespace, stream) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))
		ORDER BY tenant_id, namespace, stream FOR KEY SHARE`, streams.tenants, streams.namespaces, streams.names)
	batch.Queue(`
		SELECT tenant_id, namespace, cache, shards FROM caches
		WHERE (tenant_id, namespace, cache) IN (SELECT * FROM unnest($1::text[], $2::text[], $3::text[]))
		ORDER BY tenant_id, namespace, cache FOR KEY SHARE`, caches.tenants, caches.namespaces, caches.names)
	batch.Queue(`SELECT node_id FROM nodes WHERE node_id = ANY ($1) ORDER BY node_id FOR KEY SHARE`, nodes)
	batch.Queue(`SELECT `+assignmentColumns+` FROM shard_assignments WHERE `+inKeys+` ORDER BY `+keyColumns+` FOR UPDATE`, keys.values()...)
	answers := w.SendBatch(ctx, batch)
	defer answers.Close()

	found := &surroundings{
		streams: map[model.StreamKey]uint32{}, caches: map[model.CacheKey]uint32{},
		nodes: map[string]bool{}, assignments: map[model.ShardKey]model.Assignment{},
	}
	var name [3]string
	var shards uint32
	if err := each(answers, []any{&name[0], &name[1], &name[2], &shards}, func() {
		found.streams[model.StreamKey{TenantID: name[0], Namespace: name[1], Stream: name[2]}] = shards
	}); err != nil {
		return nil, err
	}
	if err := each(answers, []any{&name[0], &name[1], &name[2], &shards}, func() {
		found.caches[model.CacheKey{TenantID: name[0], Namespace: name[1], Cache: name[2]}] = shards
	}); err != nil {
		return nil, err
	}
	if err := each(answers, []any{&name[0]}, func() { found.nodes[name[0]] = true }); err != nil {
		return nil, err
	}
	rows, err := answers.Query()
	if err != nil {
		return nil, err
	}
	assignments, err := pgx.CollectRows(rows, scanAssignment)
	for _, a := range assignments {
		found.assignments[a.ShardKey] = a
	}
	return found, err
}

// each calls fn for every row of the next answer, scanned into what into points
// to.
func each(answers pgx.BatchResults, into []any, fn func()) error {
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, func() error { fn(); return nil })
	return err
}

// judge says what becomes of a put.
func (f *surroundings) judge(p store.Put) (store.PutResult, error) {
	k := p.Assignment.ShardKey
	shards, err := f.shards(k)
	if err != nil {
		return store.PutResult{}, err
	}
	var old *model.Assignment
	if a, there := f.assignments[k]; there {
		old = &a
	}
	return store.JudgePut(p, shards, func(id string) bool { return f.nodes[id] }, old)
}

// shards is how many the owner of a shard has.
func (f *surroundings) shards(k model.ShardKey) (uint32, error) {
	switch k.Kind {
	case model.StreamShard:
		if n, ok := f.streams[model.StreamKey{TenantID: k.TenantID, Namespace: k.Namespace, Stream: k.Stream}]; ok {
			return n, nil
		}
	case model.CacheShard:
		if n, ok := f.caches[model.CacheKey{TenantID: k.TenantID, Namespace: k.Namespace, Cache: k.Stream}]; ok {
			return n, nil
		}
	}
	return 0, store.NoOwner(k.Kind)
}

// putAll writes assignments in order, and advances the token by their number.
func (w *writer) putAll(ctx context.Context, written []model.Assignment) error {
	if len(written) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, a := range written {
		op := model.Updated
		if a.Generation == 0 {
			op = model.Assigned
		}
		w.change(assignmentFeed, op, a, keyParts(a.ShardKey)...)
		batch.Queue(upsertAssignment, assignmentValues(a)...)
	}
	if err := w.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	return w.advanceToken(ctx, len(written))
}

const upsertAssignment = `
	INSERT INTO shard_assignments (` + assignmentColumns + `)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
	ON CONFLICT (` + keyColumns + `) DO UPDATE SET
		leader = excluded.leader, replicas = excluded.replicas, generation = excluded.generation, state = excluded.state,
		successor = excluded.successor, joining = excluded.joining, move_started_at_millis = excluded.move_started_at_millis,
		move_reason = excluded.move_reason, routing = excluded.routing, updated_at = now()`
