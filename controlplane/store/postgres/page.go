package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/felixlog/felix/controlplane/model"
)

// An entry is one row of a feed.
type entry struct {
	seq       uint64
	op        model.Op
	payload   []byte
	tombstone []byte
	key       []string
}

// page reads the entries since a sequence, and the head of the feed, in one
// statement: one instant and one round trip. Entries that retention will remove
// are not there, whether it has run or not.
func (s *Store) page(ctx context.Context, f *feed, since uint64) (entries []entry, head uint64, err error) {
	tombstone := "NULL::jsonb"
	if f.graves != "" {
		tombstone = "e.tombstone"
	}
	keys := make([]string, len(f.columns))
	for i, column := range f.columns {
		keys[i] = "e." + column + "::text"
	}
	query := fmt.Sprintf(`
		SELECT head.next_seq, e.seq, e.op, e.payload, %s, ARRAY[%s]
		FROM %s head LEFT JOIN LATERAL (
			SELECT * FROM %s WHERE seq >= greatest($1, head.next_seq - $2) ORDER BY seq LIMIT $3
		) e ON true
		WHERE head.only_row -- a key, from which the planner sees that it is one row
		ORDER BY e.seq`, tombstone, strings.Join(keys, ", "), f.counter(), f.table())
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		entries = nil
		rows, err := q.Query(ctx, query, clamp(since), s.limits.ChangesKept, s.limits.ChangesPage)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e entry
			var seq *uint64
			var op *string
			var key []*string
			if err := rows.Scan(&head, &seq, &op, &e.payload, &e.tombstone, &key); err != nil {
				return err
			}
			if seq == nil {
				continue // nothing since
			}
			e.seq, e.op = *seq, model.Op(*op)
			for _, part := range key {
				e.key = append(e.key, *part)
			}
			entries = append(entries, e)
		}
		return rows.Err()
	})
	return entries, head, err
}

// changes turns a page of entries into one of changes.
func changes[T any](ctx context.Context, s *Store, f *feed, since uint64, one func(entry) (T, error)) (model.Page[T], error) {
	entries, head, err := s.page(ctx, f, since)
	if err != nil {
		return model.Page[T]{}, err
	}
	page := model.Page[T]{Items: make([]T, 0, len(entries)), NextSeq: head}
	for _, e := range entries {
		item, err := one(e)
		if err != nil {
			return model.Page[T]{}, fmt.Errorf("change %d of %s: %w", e.seq, f.table(), err)
		}
		page.Items = append(page.Items, item)
	}
	return page, nil
}

// record decodes what an entry carries; nil is nothing.
func record[T any](payload []byte) (*T, error) {
	if payload == nil {
		return nil, nil
	}
	v := new(T)
	if err := json.Unmarshal(payload, v); err != nil {
		return nil, err
	}
	return v, nil
}

// TenantChanges are those since a sequence, which is included.
func (s *Store) TenantChanges(ctx context.Context, since uint64) (model.Page[model.TenantChange], error) {
	return changes(ctx, s, tenantFeed, since, func(e entry) (model.TenantChange, error) {
		r, err := record[model.Tenant](e.payload)
		return model.TenantChange{Seq: e.seq, Op: e.op, TenantID: e.key[0], Tenant: r}, err
	})
}

// NamespaceChanges are those since a sequence, which is included.
func (s *Store) NamespaceChanges(ctx context.Context, since uint64) (model.Page[model.NamespaceChange], error) {
	return changes(ctx, s, namespaceFeed, since, func(e entry) (model.NamespaceChange, error) {
		r, err := record[model.Namespace](e.payload)
		key := model.NamespaceKey{TenantID: e.key[0], Namespace: e.key[1]}
		return model.NamespaceChange{Seq: e.seq, Op: e.op, Key: key, Namespace: r}, err
	})
}

// StreamChanges are those since a sequence, which is included.
func (s *Store) StreamChanges(ctx context.Context, since uint64) (model.Page[model.StreamChange], error) {
	return changes(ctx, s, streamFeed, since, func(e entry) (c model.StreamChange, err error) {
		c.Seq, c.Op = e.seq, e.op
		c.Key = model.StreamKey{TenantID: e.key[0], Namespace: e.key[1], Stream: e.key[2]}
		if c.Stream, err = record[model.Stream](e.payload); err == nil {
			c.Tombstone, err = record[model.Tombstone](e.tombstone)
		}
		return c, err
	})
}

// CacheChanges are those since a sequence, which is included.
func (s *Store) CacheChanges(ctx context.Context, since uint64) (model.Page[model.CacheChange], error) {
	return changes(ctx, s, cacheFeed, since, func(e entry) (c model.CacheChange, err error) {
		c.Seq, c.Op = e.seq, e.op
		c.Key = model.CacheKey{TenantID: e.key[0], Namespace: e.key[1], Cache: e.key[2]}
		if c.Cache, err = record[model.Cache](e.payload); err == nil {
			c.Tombstone, err = record[model.Tombstone](e.tombstone)
		}
		return c, err
	})
}

// NodeChanges are those since a sequence, which is included.
func (s *Store) NodeChanges(ctx context.Context, since uint64) (model.Page[model.NodeChange], error) {
	return changes(ctx, s, nodeFeed, since, func(e entry) (model.NodeChange, error) {
		r, err := record[model.Node](e.payload)
		return model.NodeChange{Seq: e.seq, Op: e.op, NodeID: e.key[0], Node: r}, err
	})
}

// AssignmentChanges are those since a sequence, which is included.
func (s *Store) AssignmentChanges(ctx context.Context, since uint64) (model.Page[model.AssignmentChange], error) {
	return changes(ctx, s, assignmentFeed, since, func(e entry) (c model.AssignmentChange, err error) {
		c.Seq, c.Op = e.seq, e.op
		if c.Key, err = shardKey(e.key); err == nil {
			c.Assignment, err = record[model.Assignment](e.payload)
		}
		return c, err
	})
}
