package model

import "cmp"

// A Tenant owns namespaces, keys and grants (control plane 3.1).
type Tenant struct {
	TenantID    string `json:"tenant_id"`
	DisplayName string `json:"display_name"`
}

// A Namespace groups the streams and caches of a tenant.
type Namespace struct {
	TenantID    string `json:"tenant_id"`
	Namespace   string `json:"namespace"`
	DisplayName string `json:"display_name"`
}

// NamespaceKey names a namespace.
type NamespaceKey struct {
	TenantID  string `json:"tenant_id"`
	Namespace string `json:"namespace"`
}

// Key is the name of the namespace.
func (n Namespace) Key() NamespaceKey { return NamespaceKey{n.TenantID, n.Namespace} }

// StreamKind is what a stream is meant for; all kinds are one log.
type StreamKind string

// The kinds of streams.
const (
	KindStream StreamKind = "Stream"
	KindQueue  StreamKind = "Queue"
	KindCache  StreamKind = "Cache"
)

// Consistency says how many copies a write is on before it is acknowledged.
type Consistency string

// The consistencies.
const (
	Leader Consistency = "Leader"
	Quorum Consistency = "Quorum"
)

// Delivery is what a stream promises its readers.
type Delivery string

// The deliveries.
const (
	AtMostOnce  Delivery = "AtMostOnce"
	AtLeastOnce Delivery = "AtLeastOnce"
)

// Routing is how a key finds its shard (wire 14).
type Routing string

// The routings. Modulo is written as "" in a record, so that it is left out.
const (
	Modulo   Routing = ""
	JumpHash Routing = "jump_hash"
)

// Retention bounds what each shard of a durable stream keeps. A bound that is
// nil is the broker's; zero is refused.
type Retention struct {
	MaxAgeSeconds *uint64 `json:"max_age_seconds"`
	MaxSizeBytes  *uint64 `json:"max_size_bytes"`
}

// A Stream is one stream and its settings. Kind, shards, copies, region and
// routing are fixed at creation.
type Stream struct {
	TenantID          string      `json:"tenant_id"`
	Namespace         string      `json:"namespace"`
	Stream            string      `json:"stream"`
	Kind              StreamKind  `json:"kind"`
	Shards            uint32      `json:"shards"`
	ReplicationFactor uint32      `json:"replication_factor"` // copies of a shard, the leader's included
	Retention         Retention   `json:"retention"`
	Consistency       Consistency `json:"consistency"`
	Delivery          Delivery    `json:"delivery"`
	Durable           bool        `json:"durable"`
	Region            string      `json:"region,omitempty"`
	Routing           Routing     `json:"routing,omitempty"`
	// UID tells this stream from an earlier or later one of the same name.
	// Brokers mark its data with it.
	UID string `json:"uid,omitempty"`
}

// StreamKey names a stream.
type StreamKey struct {
	TenantID  string `json:"tenant_id"`
	Namespace string `json:"namespace"`
	Stream    string `json:"stream"`
}

// Compare orders keys by tenant, namespace and name.
func (k StreamKey) Compare(o StreamKey) int {
	return cmp.Or(cmp.Compare(k.TenantID, o.TenantID), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Stream, o.Stream))
}

// Key is the name of the stream.
func (s Stream) Key() StreamKey { return StreamKey{s.TenantID, s.Namespace, s.Stream} }

// A StreamPatch changes what may change of a stream; nil leaves a field as it
// is. A retention replaces both bounds (control plane 4.4).
type StreamPatch struct {
	Retention   *Retention   `json:"retention,omitempty"`
	Consistency *Consistency `json:"consistency,omitempty"`
	Delivery    *Delivery    `json:"delivery,omitempty"`
	Durable     *bool        `json:"durable,omitempty"`
}

// A Cache is one cache and its settings.
type Cache struct {
	TenantID          string      `json:"tenant_id"`
	Namespace         string      `json:"namespace"`
	Cache             string      `json:"cache"`
	DisplayName       string      `json:"display_name"`
	Shards            uint32      `json:"shards"`
	ReplicationFactor uint32      `json:"replication_factor"`
	Consistency       Consistency `json:"consistency"`
	UID               string      `json:"uid,omitempty"` // as of a stream
}

// CacheKey names a cache.
type CacheKey struct {
	TenantID  string `json:"tenant_id"`
	Namespace string `json:"namespace"`
	Cache     string `json:"cache"`
}

// Compare orders keys by tenant, namespace and name.
func (k CacheKey) Compare(o CacheKey) int {
	return cmp.Or(cmp.Compare(k.TenantID, o.TenantID), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Cache, o.Cache))
}

// Key is the name of the cache.
func (c Cache) Key() CacheKey { return CacheKey{c.TenantID, c.Namespace, c.Cache} }

// A CachePatch changes what may change of a cache.
type CachePatch struct {
	DisplayName *string `json:"display_name,omitempty"`
}

// A Tombstone says that a stream or cache was deleted by somebody's order: the
// one and only reason for which a broker removes data.
type Tombstone struct {
	Kind            ShardKind `json:"kind"`
	TenantID        string    `json:"tenant_id"`
	Namespace       string    `json:"namespace"`
	Name            string    `json:"name"`
	UID             string    `json:"uid"`
	DeletedAtMillis uint64    `json:"deleted_at_millis"`
}

// A Bridge lets streams of one region have copies in another, in one direction
// (control plane 3.2).
type Bridge struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}
