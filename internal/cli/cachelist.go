package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

// keyJSON is a key as "felix cache ls --json" prints it.
type keyJSON struct {
	Key         string `json:"key"`
	Shard       uint32 `json:"shard"`
	Bytes       int    `json:"bytes"` // of the value
	Offset      uint64 `json:"offset"`
	ExpiresAtMS int64  `json:"expires_at_ms,omitempty"`
}

func (a *App) cacheListCommand() *cobra.Command {
	var prefix string
	cmd := &cobra.Command{
		Use:   "ls [CACHE]",
		Short: "List the caches, or the keys of one",
		Long: `List the caches of the namespace, as the control plane knows them. With CACHE,
list the keys that it holds, one a line, in the order of their bytes. With
--json each is an object on a line, with the size of its value in bytes, the
offset of its last change, and when it expires.

Keys are listed as they were at one moment per shard. Every value is read on the
way, so a large cache takes its time, and it needs a broker with storage: keys
are listed from a log.`,
		Example: `  felix cache ls
  felix cache ls users
  felix cache ls sessions --prefix eu/
  felix cache ls users --json | jq 'select(.bytes > 1000).key'`,
		Args:              positional(0, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				c, err := a.controlPlane(cmd)
				if err != nil {
					return err
				}
				defer c.CloseIdle()
				return explainControl(cmd.Context(), a.listCaches(cmd.Context(), c))
			}
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			held, err := holdings(cmd.Context(), c.Cache(args[0]), prefix)
			if err != nil {
				return err
			}
			keys := held.keys()
			slices.SortFunc(keys, func(a, b keyJSON) int { return strings.Compare(a.Key, b.Key) })
			var out []byte
			for _, key := range keys {
				if a.flags.json {
					out = appendJSON(out, key)
				} else {
					out = appendRaw(out, []byte(key.Key), a.StdoutTTY)
				}
				out = append(out, '\n')
			}
			if _, err := a.Stdout.Write(out); err != nil {
				return err
			}
			a.remark("%s in %s", plural(uint64(len(keys)), "key"), args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "list the keys that begin with `PREFIX` (default all)")
	return cmd
}

// cacheHoldings are the keys of a cache, without their values, by shard.
type cacheHoldings struct {
	shards map[uint32][]keyJSON
	tails  map[uint32]uint64 // the offset behind each shard's last change
}

// holdings reads what a cache holds under a prefix. It is a watch that ends
// when it has come to the present.
func holdings(ctx context.Context, cache *client.Cache, prefix string) (*cacheHoldings, error) {
	w, err := cache.Watch(ctx, client.WatchPrefix(prefix), client.Retained())
	if err != nil {
		return nil, err
	}
	defer w.Close()
	held := &cacheHoldings{shards: make(map[uint32][]keyJSON)}
	for {
		change, err := w.Next(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case change.Kind == client.Synced:
			held.tails = w.Positions()
			return held, nil
		case change.Kind == client.Reset:
			held.shards[change.Shard] = nil // the connection was lost; it comes again
		case change.Retained:
			held.shards[change.Shard] = append(held.shards[change.Shard], keyJSON{
				Key: change.Key, Shard: change.Shard, Bytes: len(change.Value),
				Offset: change.Offset, ExpiresAtMS: unixMilli(change.ExpiresAt),
			})
		}
	}
}

// keys are those of all shards, in no order.
func (h *cacheHoldings) keys() []keyJSON {
	var all []keyJSON
	for _, keys := range h.shards {
		all = append(all, keys...)
	}
	return all
}

// cacheShardInfo is one shard of a cache as "felix cache info" shows it.
type cacheShardInfo struct {
	Shard      uint32 `json:"shard"`
	Owner      string `json:"owner,omitempty"`
	Addr       string `json:"addr,omitempty"`
	Keys       uint64 `json:"keys"`
	KeyBytes   uint64 `json:"key_bytes"`
	ValueBytes uint64 `json:"value_bytes"`
	// Expiring counts the keys with a time to live.
	Expiring uint64 `json:"expiring"`
	// Tail is the offset that the shard's next change gets.
	Tail uint64 `json:"tail"`
}

// cacheInfo is what "felix cache info --json" prints.
type cacheInfo struct {
	Cache  string `json:"cache"`
	Shards uint32 `json:"shards"`
	// Storage is "log" or "memory". Of a cache in memory nothing more can
	// be told.
	Storage    string           `json:"storage"`
	Keys       *uint64          `json:"keys,omitempty"`
	KeyBytes   *uint64          `json:"key_bytes,omitempty"`
	ValueBytes *uint64          `json:"value_bytes,omitempty"`
	Expiring   *uint64          `json:"expiring,omitempty"`
	PerShard   []cacheShardInfo `json:"per_shard,omitempty"`
}

func (a *App) cacheInfoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "info CACHE",
		Short: "Show the size of a cache",
		Long: `Show how many shards CACHE has, and for each shard how many keys it holds, how
many of them expire, and the bytes of keys and values. The numbers are counted
by reading the cache once, so a large one takes its time.

Of a cache in memory only the number of shards can be told. A cache that does
not exist is exit code 5.`,
		Example: `  felix cache info users
  felix cache info users --json | jq .keys`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			info, err := readCacheInfo(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			return a.tellCacheInfo(info)
		},
	}
}

// readCacheInfo gathers what can be told about a cache.
func readCacheInfo(ctx context.Context, c *client.Client, name string) (*cacheInfo, error) {
	shards, err := c.CacheShards(ctx, name)
	if err != nil {
		return nil, err
	}
	info := &cacheInfo{Cache: name, Shards: shards, Storage: "log"}
	held, err := holdings(ctx, c.Cache(name), "")
	if errors.Is(err, client.ErrUnsupported) || errors.Is(err, client.ErrInvalidRequest) {
		info.Storage = "memory"
		return info, nil
	}
	if err != nil {
		return nil, err
	}
	owners, err := c.ShardOwners(ctx, client.KindCache, name)
	if err != nil && !errors.Is(err, client.ErrUnsupported) {
		return nil, err
	}
	info.PerShard = make([]cacheShardInfo, shards)
	total := cacheShardInfo{}
	for shard := range info.PerShard {
		s := &info.PerShard[shard]
		s.Shard, s.Tail = uint32(shard), held.tails[uint32(shard)]
		if shard < len(owners) {
			s.Owner, s.Addr = owners[shard].NodeID, owners[shard].Addr
		}
		for _, key := range held.shards[s.Shard] {
			s.Keys++
			s.KeyBytes += uint64(len(key.Key))
			s.ValueBytes += uint64(key.Bytes)
			if key.ExpiresAtMS != 0 {
				s.Expiring++
			}
		}
		total.Keys += s.Keys
		total.KeyBytes += s.KeyBytes
		total.ValueBytes += s.ValueBytes
		total.Expiring += s.Expiring
	}
	info.Keys, info.KeyBytes, info.ValueBytes, info.Expiring = &total.Keys, &total.KeyBytes, &total.ValueBytes, &total.Expiring
	return info, nil
}

func (a *App) tellCacheInfo(info *cacheInfo) error {
	if a.flags.json {
		return printJSON(a.Stdout, info)
	}
	if info.Keys == nil {
		_, err := fmt.Fprintf(a.Stdout, "%s: %s, in memory; its keys cannot be counted\n", info.Cache, plural(uint64(info.Shards), "shard"))
		return err
	}
	fmt.Fprintf(a.Stdout, "%s: %s, %s (%d expiring), %s of keys, %s of values\n\n", info.Cache,
		plural(uint64(info.Shards), "shard"), plural(*info.Keys, "key"), *info.Expiring, size(*info.KeyBytes), size(*info.ValueBytes))
	var rows [][]string
	for _, s := range info.PerShard {
		rows = append(rows, []string{
			strconv.FormatUint(uint64(s.Shard), 10), orDefault(s.Owner, "-"), count(s.Keys), count(s.Expiring),
			size(s.KeyBytes), size(s.ValueBytes), strconv.FormatUint(s.Tail, 10),
		})
	}
	return printTable(a.Stdout, []string{"SHARD", "OWNER", "KEYS", "EXPIRING", "KEY BYTES", "VALUE BYTES", "TAIL"}, rows)
}
