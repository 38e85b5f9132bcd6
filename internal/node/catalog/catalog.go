// Package catalog reads what a node serves from a YAML file: tenants with
// their keys, namespaces, streams and caches. A [Watcher] applies the file to
// the node and, while the node runs, every later version of it.
//
// The file is strict: an unknown key, a name twice, a bad name or key is an
// error with file and line, and a file with an error changes nothing.
// testdata/example.yaml shows everything a catalog may hold.
package catalog

import (
	"time"

	"github.com/felixlog/felix/internal/auth"
)

// A Catalog is the content of a file; everything in it is sorted by name.
type Catalog struct {
	Tenants []Tenant
}

// A Tenant owns namespaces and signs the tokens of its clients.
type Tenant struct {
	Name       string
	Keys       []auth.Key // current first, as in the file
	Namespaces []Namespace
}

// A Namespace groups streams and caches.
type Namespace struct {
	Name    string
	Streams []Stream
	Caches  []Cache
}

// A Stream is one stream and its settings, all but the retention fixed once
// the stream exists.
type Stream struct {
	Name        string
	Shards      uint32      // 1 or more
	Routing     Routing     // how keys find their shard
	Durable     bool        // on disk
	Retention   Retention   // of a durable stream; the zero value is the broker's
	QueuePolicy QueuePolicy // of its subscribers' queues
}

// Retention bounds what each shard of a durable stream keeps. A bound of 0 is
// the broker's.
type Retention struct {
	MaxBytes int64
	MaxAge   time.Duration // whole seconds
}

// A Cache is one cache and its settings.
type Cache struct {
	Name    string
	Shards  uint32  // 1 or more
	Backing Backing // where its entries are
}

// Backing says where a cache has its entries; empty is the broker's own way: on
// the log if it has storage, else in memory.
type Backing string

// The backings: "durable: true" and "durable: false" in the file.
const (
	OnLog    Backing = "on the log"
	InMemory Backing = "in memory"
)

// Routing is how a key finds its shard (wire 14).
type Routing string

// The routings.
const (
	Modulo   Routing = "modulo"
	JumpHash Routing = "jump_hash"
)

// QueuePolicy is what a full subscriber queue does (broker 7.4); empty is the
// broker's own setting.
type QueuePolicy string

// The queue policies.
const (
	DropNew QueuePolicy = "drop_new"
	DropOld QueuePolicy = "drop_old"
	Block   QueuePolicy = "block"
)

// MaxShards bounds the shards of a stream or cache.
const MaxShards = 1024
