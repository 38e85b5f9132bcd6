package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

// CreateResources creates streams and caches of one namespace, all or none.
func (s *Store) CreateResources(ctx context.Context, k model.NamespaceKey, streams []model.Stream, caches []model.Cache) error {
	for _, t := range streams {
		if t.TenantID != k.TenantID || t.Namespace != k.Namespace {
			return fmt.Errorf("stream %q is of another namespace", t.Stream)
		}
	}
	for _, c := range caches {
		if c.TenantID != k.TenantID || c.Namespace != k.Namespace {
			return fmt.Errorf("cache %q is of another namespace", c.Cache)
		}
	}
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		if _, err := namespace(ctx, w, k, `FOR KEY SHARE`); err != nil {
			return err
		}
		if err := w.createStreams(ctx, streams); err != nil {
			return err
		}
		return w.createCaches(ctx, caches)
	})
}

func (w *writer) createStreams(ctx context.Context, streams []model.Stream) error {
	rows := make([][]any, 0, len(streams))
	for _, t := range streams {
		rows = append(rows, streamValues(t))
		w.change(streamFeed, model.Created, t, t.TenantID, t.Namespace, t.Stream)
	}
	err := w.insertAll(ctx, `INSERT INTO streams (`+streamColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`, rows)
	if _, ok := violates(err, codeUnique); ok {
		return exists("stream")
	}
	return err
}

func (w *writer) createCaches(ctx context.Context, caches []model.Cache) error {
	rows := make([][]any, 0, len(caches))
	for _, c := range caches {
		rows = append(rows, cacheValues(c))
		w.change(cacheFeed, model.Created, c, c.TenantID, c.Namespace, c.Cache)
	}
	err := w.insertAll(ctx, `INSERT INTO caches (`+cacheColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, rows)
	if _, ok := violates(err, codeUnique); ok {
		return exists("cache")
	}
	return err
}

// insertAll runs one statement for each row, in one round trip.
func (w *writer) insertAll(ctx context.Context, query string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, row := range rows {
		batch.Queue(query, row...)
	}
	return w.SendBatch(ctx, batch).Close()
}
