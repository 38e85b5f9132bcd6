package apiclient

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// MaxWait is the longest a change feed waits for changes (control plane 5.4).
const MaxWait = 25 * time.Second

// TenantsSnapshot is all tenants and where their feed goes on (control plane
// 5). So are the others of their kinds.
func (c *Client) TenantsSnapshot(ctx context.Context) (model.Snapshot[model.Tenant], error) {
	return snapshot[model.Tenant](ctx, c, "tenants")
}

// NamespacesSnapshot is all namespaces.
func (c *Client) NamespacesSnapshot(ctx context.Context) (model.Snapshot[model.Namespace], error) {
	return snapshot[model.Namespace](ctx, c, "namespaces")
}

// StreamsSnapshot is all streams, with the newest tombstones.
func (c *Client) StreamsSnapshot(ctx context.Context) (model.Snapshot[model.Stream], error) {
	return snapshot[model.Stream](ctx, c, "streams")
}

// CachesSnapshot is all caches, with the newest tombstones.
func (c *Client) CachesSnapshot(ctx context.Context) (model.Snapshot[model.Cache], error) {
	return snapshot[model.Cache](ctx, c, "caches")
}

// AssignmentsSnapshot is all shard assignments.
func (c *Client) AssignmentsSnapshot(ctx context.Context) (model.Snapshot[model.Assignment], error) {
	return snapshot[model.Assignment](ctx, c, "shard-assignments")
}

// TenantChanges are the changes from since on, in order: a page of them, which
// [model.Judge] reads. A wait above zero lets the control plane hold an answer
// with nothing new for so long, at most [MaxWait]; it may not. So do the others
// of their kinds.
func (c *Client) TenantChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.TenantChange], error) {
	return changes[model.TenantChange](ctx, c, "tenants", since, wait)
}

// NamespaceChanges are the changes of namespaces.
func (c *Client) NamespaceChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.NamespaceChange], error) {
	return changes[model.NamespaceChange](ctx, c, "namespaces", since, wait)
}

// StreamChanges are the changes of streams.
func (c *Client) StreamChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.StreamChange], error) {
	return changes[model.StreamChange](ctx, c, "streams", since, wait)
}

// CacheChanges are the changes of caches.
func (c *Client) CacheChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.CacheChange], error) {
	return changes[model.CacheChange](ctx, c, "caches", since, wait)
}

// AssignmentChanges are the changes of shard assignments.
func (c *Client) AssignmentChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.AssignmentChange], error) {
	return changes[model.AssignmentChange](ctx, c, "shard-assignments", since, wait)
}

// feedAnswer is a snapshot or a page. Both fields are always there: an answer
// without them is not an empty one.
type feedAnswer[T any] struct {
	Items      *[]T
	NextSeq    *uint64
	Tombstones []model.Tombstone
}

func (a *feedAnswer[T]) UnmarshalJSON(data []byte) error {
	var object struct {
		Items      *[]T              `json:"items"`
		NextSeq    *uint64           `json:"next_seq"`
		Tombstones []model.Tombstone `json:"tombstones"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	a.Items, a.NextSeq, a.Tombstones = object.Items, object.NextSeq, object.Tombstones
	return a.check()
}

func (a *feedAnswer[T]) check() error {
	switch {
	case a.Items == nil:
		return &missingError{"items"}
	case a.NextSeq == nil:
		return &missingError{"next_seq"}
	}
	return nil
}

func snapshot[T any](ctx context.Context, c *Client, kind string) (model.Snapshot[T], error) {
	var a feedAnswer[T]
	if err := c.get(ctx, path("v1", kind, "snapshot"), nil, &a); err != nil {
		return model.Snapshot[T]{}, err
	}
	if err := a.check(); err != nil { // the answer was null
		return model.Snapshot[T]{}, &AnswerError{Status: http.StatusOK, What: err.Error()}
	}
	return model.Snapshot[T]{Items: *a.Items, NextSeq: *a.NextSeq, Tombstones: a.Tombstones}, nil
}

func changes[T any](ctx context.Context, c *Client, kind string, since uint64, wait time.Duration) (model.Page[T], error) {
	query := url.Values{"since": {strconv.FormatUint(since, 10)}}
	wait = min(wait, MaxWait)
	if wait > 0 {
		query.Set("wait_ms", strconv.FormatInt(wait.Milliseconds(), 10))
	}
	var a feedAnswer[T]
	err := c.do(ctx, call{
		method: http.MethodGet, path: path("v1", kind, "changes"), query: query, into: &a, idempotent: true, extra: max(wait, 0),
	})
	if err != nil {
		return model.Page[T]{}, err
	}
	if err := a.check(); err != nil {
		return model.Page[T]{}, &AnswerError{Status: http.StatusOK, What: err.Error()}
	}
	return model.Page[T]{Items: *a.Items, NextSeq: *a.NextSeq}, nil
}
