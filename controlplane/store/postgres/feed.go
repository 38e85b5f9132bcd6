package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

// A feed is one of the six logs of changes: its table of entries, and the row
// that counts them.
type feed struct {
	name    string
	columns []string // of the key
	graves  model.ShardKind
}

// The feeds, in the order in which a transaction takes their counters (control
// plane 11.2).
var (
	tenantFeed     = &feed{name: "tenant", columns: []string{"tenant_id"}}
	namespaceFeed  = &feed{name: "namespace", columns: []string{"tenant_id", "namespace"}}
	streamFeed     = &feed{name: "stream", columns: []string{"tenant_id", "namespace", "stream"}, graves: model.StreamShard}
	cacheFeed      = &feed{name: "cache", columns: []string{"tenant_id", "namespace", "cache"}, graves: model.CacheShard}
	nodeFeed       = &feed{name: "node", columns: []string{"node_id"}}
	assignmentFeed = &feed{name: "shard_assignment", columns: []string{"tenant_id", "namespace", "stream", "shard", "kind"}}

	feeds = [...]*feed{tenantFeed, namespaceFeed, streamFeed, cacheFeed, nodeFeed, assignmentFeed}
)

func (f *feed) table() string   { return f.name + "_changes" }
func (f *feed) counter() string { return f.name + "_change_seq" }

// A change waits for its sequence.
type change struct {
	op        model.Op
	key       []string
	record    any // nil on deletion
	tombstone *model.Tombstone
}

// A writer is a transaction that gathers the changes it makes.
type writer struct {
	pgx.Tx
	changes map[*feed][]change
	// reassigned says that assignments changed without an entry of their own.
	reassigned bool
}

// change says that a record changed. record is nil where it is gone.
func (w *writer) change(f *feed, op model.Op, record any, key ...string) {
	w.add(f, change{op: op, key: key, record: record})
}

func (w *writer) add(f *feed, c change) {
	if w.changes == nil {
		w.changes = map[*feed][]change{}
	}
	w.changes[f] = append(w.changes[f], c)
}

// publish gives the gathered changes their sequences and writes them, all feeds
// in one round trip. It is the last thing before the commit, so that the
// counters are locked for as short as can be.
func (w *writer) publish(ctx context.Context) error {
	batch := &pgx.Batch{}
	for _, f := range feeds {
		if changes := w.changes[f]; len(changes) > 0 {
			args, err := f.arguments(changes)
			if err != nil {
				return err
			}
			batch.Queue(f.insert(), args...)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	if err := w.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("publish changes: %w", err)
	}
	return nil
}

// insert takes a run of sequences and writes as many entries, and their
// tombstones. Its arguments are the number of entries, then a list for each
// column.
func (f *feed) insert() string {
	var lists, keys, chosen strings.Builder
	for i, column := range f.columns {
		fmt.Fprintf(&lists, ", $%d::text[]", i+5)
		fmt.Fprintf(&keys, ", %s", column)
		if column == "shard" {
			chosen.WriteString(", c.shard::bigint")
		} else {
			fmt.Fprintf(&chosen, ", c.%s", column)
		}
	}
	head := fmt.Sprintf(`head AS (UPDATE %s SET next_seq = next_seq + $1 RETURNING next_seq - $1 AS first)`, f.counter())
	source := fmt.Sprintf(`FROM head, unnest($2::text[], $3::text[], $4::text[]%s) WITH ORDINALITY AS c (op, payload, tombstone%s, ord)`,
		lists.String(), keys.String())
	entries := fmt.Sprintf(`INSERT INTO %s (seq, op, payload%s) SELECT head.first + c.ord - 1, c.op, c.payload::jsonb%s %s`,
		f.table(), keys.String(), chosen.String(), source)
	if f.graves == "" {
		return "WITH " + head + " " + entries
	}
	entries = fmt.Sprintf(`INSERT INTO %s (seq, op, payload, tombstone%s) SELECT head.first + c.ord - 1, c.op, c.payload::jsonb, c.tombstone::jsonb%s %s`,
		f.table(), keys.String(), chosen.String(), source)
	graves := fmt.Sprintf(`graves AS (INSERT INTO tombstones (kind, seq, tenant_id, namespace, name, uid, deleted_at_millis)
		SELECT '%s', head.first + c.ord - 1, c.tenant_id, c.namespace, c.%s, c.tombstone::jsonb->>'uid', (c.tombstone::jsonb->>'deleted_at_millis')::bigint
		%s WHERE c.tombstone IS NOT NULL)`, f.graves, f.columns[2], source)
	return "WITH " + head + ", " + graves + " " + entries
}

// arguments are those of insert.
func (f *feed) arguments(changes []change) ([]any, error) {
	ops := make([]string, len(changes))
	payloads := make([]*string, len(changes))
	tombstones := make([]*string, len(changes))
	keys := make([][]string, len(f.columns))
	for i, c := range changes {
		ops[i] = string(c.op)
		var err error
		if c.record != nil {
			if payloads[i], err = encode(c.record); err != nil {
				return nil, err
			}
		}
		if c.tombstone != nil {
			if tombstones[i], err = encode(c.tombstone); err != nil {
				return nil, err
			}
		}
		for k := range f.columns {
			keys[k] = append(keys[k], c.key[k])
		}
	}
	args := []any{len(changes), ops, payloads, tombstones}
	for _, list := range keys {
		args = append(args, list)
	}
	return args, nil
}

func encode(v any) (*string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode a change: %w", err)
	}
	s := string(b)
	return &s, nil
}

// clamp is n as a BIGINT, where what is larger means the same as the largest.
func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
