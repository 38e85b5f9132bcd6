package client

import "maps"

// A WatchOption configures a [Cache.Watch].
type WatchOption interface {
	applyWatch(watchOptions) watchOptions
}

type watchOptions struct {
	key      string
	prefix   string
	byKey    bool
	retained bool

	offset    uint64
	offsetSet bool
	from      map[uint32]uint64
}

type watchOption func(watchOptions) watchOptions

func (f watchOption) applyWatch(o watchOptions) watchOptions { return f(o) }

// WatchKey watches one key. The default is every key.
func WatchKey(key string) WatchOption {
	return watchOption(func(o watchOptions) watchOptions {
		o.key, o.byKey = key, true
		return o
	})
}

// WatchPrefix watches the keys that begin with prefix, in all shards of the
// cache. The empty prefix is every key.
func WatchPrefix(prefix string) WatchOption {
	return watchOption(func(o watchOptions) watchOptions {
		o.prefix, o.byKey = prefix, false
		return o
	})
}

// Retained delivers the values that the cache holds before the changes to
// them, and [Synced] when they are all delivered.
func Retained() WatchOption {
	return watchOption(func(o watchOptions) watchOptions { o.retained = true; return o })
}

// WatchFrom begins at an offset, that of the first change not yet seen, in a
// watch of one key or of a cache with one shard. Where changes from there on
// are no longer all held, [Reset] and the current values are delivered
// instead. An offset past the end is a [*CursorError].
func WatchFrom(offset uint64) WatchOption {
	return watchOption(func(o watchOptions) watchOptions { o.offset, o.offsetSet = offset, true; return o })
}

// WatchResumeAt is [WatchFrom] for each shard that is named, with the
// positions that [Watch.Positions] reports. Shards not named begin with the
// next change.
func WatchResumeAt(positions map[uint32]uint64) WatchOption {
	return watchOption(func(o watchOptions) watchOptions { o.from = maps.Clone(positions); return o })
}
