package apiclient

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
)

// Tenants are all tenants (control plane 4.2). It needs tenant.manage on the
// cluster, as do creating and deleting.
func (c *Client) Tenants(ctx context.Context) ([]model.Tenant, error) {
	return list[model.Tenant](ctx, c, path("v1", "tenants"), nil)
}

// CreateTenant makes a tenant and its first signing key.
func (c *Client) CreateTenant(ctx context.Context, t model.Tenant) (model.Tenant, error) {
	var made model.Tenant
	err := c.create(ctx, path("v1", "tenants"), t, &made)
	return made, err
}

// DeleteTenant deletes a tenant, its keys and all that is in it.
func (c *Client) DeleteTenant(ctx context.Context, tenant string) error {
	return c.remove(ctx, path("v1", "tenants", tenant), nil, nil, nil)
}

// Namespaces of a tenant, as far as the caller may manage them (control plane
// 4.3).
func (c *Client) Namespaces(ctx context.Context, tenant string) ([]model.Namespace, error) {
	return list[model.Namespace](ctx, c, path("v1", "tenants", tenant, "namespaces"), nil)
}

// CreateNamespace makes a namespace.
func (c *Client) CreateNamespace(ctx context.Context, n model.Namespace) (model.Namespace, error) {
	var made model.Namespace
	body := struct {
		Namespace   string `json:"namespace"`
		DisplayName string `json:"display_name"`
	}{n.Namespace, n.DisplayName}
	err := c.create(ctx, path("v1", "tenants", n.TenantID, "namespaces"), body, &made)
	return made, err
}

// DeleteNamespace deletes a namespace and all that is in it.
func (c *Client) DeleteNamespace(ctx context.Context, k model.NamespaceKey) error {
	return c.remove(ctx, inNamespace(k), nil, nil, nil)
}

func inNamespace(k model.NamespaceKey, more ...string) string {
	return path(append([]string{"v1", "tenants", k.TenantID, "namespaces", k.Namespace}, more...)...)
}

// A StreamSpec is what a stream is created with (control plane 4.4). What is
// left zero is left to the control plane.
type StreamSpec struct {
	Stream            string            `json:"stream"`
	Kind              model.StreamKind  `json:"kind"`
	Shards            uint32            `json:"shards"`
	ReplicationFactor uint32            `json:"replication_factor,omitempty"`
	Retention         model.Retention   `json:"retention"`
	Consistency       model.Consistency `json:"consistency"`
	Delivery          model.Delivery    `json:"delivery"`
	Durable           bool              `json:"durable"`
	Region            string            `json:"region,omitempty"`
	Routing           model.Routing     `json:"routing,omitempty"`
}

// Streams of a namespace, as far as the caller may manage them.
func (c *Client) Streams(ctx context.Context, k model.NamespaceKey) ([]model.Stream, error) {
	return list[model.Stream](ctx, c, inNamespace(k, "streams"), nil)
}

// Stream is one stream.
func (c *Client) Stream(ctx context.Context, k model.StreamKey) (model.Stream, error) {
	var s model.Stream
	err := c.get(ctx, streamPath(k), nil, &s)
	return s, err
}

// CreateStream makes a stream.
func (c *Client) CreateStream(ctx context.Context, k model.NamespaceKey, s StreamSpec) (model.Stream, error) {
	var made model.Stream
	err := c.create(ctx, inNamespace(k, "streams"), s, &made)
	return made, err
}

// PatchStream changes what may change of a stream.
func (c *Client) PatchStream(ctx context.Context, k model.StreamKey, p model.StreamPatch) (model.Stream, error) {
	var s model.Stream
	err := c.patch(ctx, streamPath(k), p, &s)
	return s, err
}

// DeleteStream deletes a stream; brokers then remove its data.
func (c *Client) DeleteStream(ctx context.Context, k model.StreamKey) error {
	return c.remove(ctx, streamPath(k), nil, nil, nil)
}

func streamPath(k model.StreamKey) string {
	return inNamespace(model.NamespaceKey{TenantID: k.TenantID, Namespace: k.Namespace}, "streams", k.Stream)
}

// A CacheSpec is what a cache is created with (control plane 4.5). What is left
// zero is left to the control plane.
type CacheSpec struct {
	Cache             string            `json:"cache"`
	DisplayName       string            `json:"display_name"`
	Shards            uint32            `json:"shards,omitempty"`
	ReplicationFactor uint32            `json:"replication_factor,omitempty"`
	Consistency       model.Consistency `json:"consistency,omitempty"`
}

// Caches of a namespace, as far as the caller may manage them.
func (c *Client) Caches(ctx context.Context, k model.NamespaceKey) ([]model.Cache, error) {
	return list[model.Cache](ctx, c, inNamespace(k, "caches"), nil)
}

// Cache is one cache.
func (c *Client) Cache(ctx context.Context, k model.CacheKey) (model.Cache, error) {
	var got model.Cache
	err := c.get(ctx, cachePath(k), nil, &got)
	return got, err
}

// CreateCache makes a cache.
func (c *Client) CreateCache(ctx context.Context, k model.NamespaceKey, s CacheSpec) (model.Cache, error) {
	var made model.Cache
	err := c.create(ctx, inNamespace(k, "caches"), s, &made)
	return made, err
}

// PatchCache changes what may change of a cache.
func (c *Client) PatchCache(ctx context.Context, k model.CacheKey, p model.CachePatch) (model.Cache, error) {
	var got model.Cache
	err := c.patch(ctx, cachePath(k), p, &got)
	return got, err
}

// DeleteCache deletes a cache; brokers then remove its data.
func (c *Client) DeleteCache(ctx context.Context, k model.CacheKey) error {
	return c.remove(ctx, cachePath(k), nil, nil, nil)
}

func cachePath(k model.CacheKey) string {
	return inNamespace(model.NamespaceKey{TenantID: k.TenantID, Namespace: k.Namespace}, "caches", k.Cache)
}

// Resources are streams and caches of one namespace.
type Resources struct {
	Streams []model.Stream `json:"streams"`
	Caches  []model.Cache  `json:"caches"`
}

// CreateResources makes streams and caches of a namespace, all or none (control
// plane 4.11).
func (c *Client) CreateResources(ctx context.Context, k model.NamespaceKey, streams []StreamSpec, caches []CacheSpec) (Resources, error) {
	body := struct {
		Streams []StreamSpec `json:"streams"`
		Caches  []CacheSpec  `json:"caches"`
	}{streams, caches}
	if body.Streams == nil {
		body.Streams = []StreamSpec{}
	}
	if body.Caches == nil {
		body.Caches = []CacheSpec{}
	}
	var made Resources
	err := c.create(ctx, inNamespace(k, "resources"), body, &made)
	return made, err
}
