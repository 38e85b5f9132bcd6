// Package catalog is the list of what a node serves, read from a file.
package catalog

// Stream is one stream of the catalog.
type Stream struct {
	Name        string
	Shards      uint32
	Routing     string // "modulo" or "jump_hash"
	Durable     bool
	QueuePolicy string // empty for the broker's
}

// Cache is one cache of the catalog.
type Cache struct {
	Name   string
	Shards uint32
}
