package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// listCaches is "felix cache ls" without a cache: the caches there are.
func (a *App) listCaches(ctx context.Context, c *control) error {
	if c.tenant == "" {
		return noTenant()
	}
	all, err := c.Caches(ctx, c.namespaceKey())
	if err != nil {
		return err
	}
	return tell(a, []string{"CACHE", "SHARDS", "COPIES", "CONSISTENCY", "DISPLAY NAME"}, all, func(c model.Cache) []string {
		return []string{c.Cache, strconv.FormatUint(uint64(c.Shards), 10), strconv.FormatUint(uint64(c.ReplicationFactor), 10), lowered(c.Consistency), c.DisplayName}
	})
}

func (a *App) cacheCreateCommand() *cobra.Command {
	var display, consistent string
	var shards, copies uint32
	cmd := a.tenantVerb(&cobra.Command{
		Use:   "create CACHE",
		Short: "Make a cache",
		Long: `Make a cache in the namespace. Made again with the same settings it is left as
it is; with other settings that is an error, exit code 4. Shards and copies are
fixed from then on.`,
		Example: "  felix cache create users --shards 4",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		level, err := consistency(consistent)
		if err != nil {
			return err
		}
		spec := apiclient.CacheSpec{Cache: args[0], DisplayName: orDefault(display, args[0]), Shards: shards, ReplicationFactor: copies, Consistency: level}
		made, err := c.CreateCache(ctx, c.namespaceKey(), spec)
		if apiclient.StatusOf(err) == http.StatusConflict {
			there, getErr := c.Cache(ctx, c.cache(args[0]))
			if getErr != nil {
				return errors.Join(err, getErr)
			}
			asked := there
			asked.Shards, asked.ReplicationFactor, asked.Consistency = max(shards, 1), max(copies, 1), level
			if differ := differences(cacheSettings(&there), cacheSettings(&asked), "%s is %s, not %s"); len(differ) > 0 {
				return &Error{Exit: ExitRefused, Err: fmt.Errorf("cache %s is there with other settings: %s", there.Cache, strings.Join(differ, "; "))}
			}
			return a.done(there, "cache %s is there already, with these settings", there.Cache)
		}
		if err != nil {
			return err
		}
		return a.done(made, "made cache %s with %s", made.Cache, plural(uint64(made.Shards), "shard"))
	})
	flags := cmd.Flags()
	flags.StringVar(&display, "display-name", "", "`NAME` for people (default the cache's own)")
	flags.Uint32Var(&shards, "shards", 1, "`N` shards, fixed from now on")
	flags.Uint32Var(&copies, "replication", 1, "`N` copies of each shard, fixed from now on")
	flags.StringVar(&consistent, "consistency", "leader", "acknowledged by the leader or a quorum")
	return cmd
}

// cacheSettings are those that are fixed once a cache is made. Its display name
// is not one of them.
func cacheSettings(c *model.Cache) [][2]string {
	return [][2]string{
		{"shards", strconv.FormatUint(uint64(c.Shards), 10)},
		{"copies", strconv.FormatUint(uint64(c.ReplicationFactor), 10)},
		{"consistency", lowered(c.Consistency)},
	}
}

func (a *App) cacheSetCommand() *cobra.Command {
	var display string
	var cmd *cobra.Command
	cmd = a.tenantVerb(&cobra.Command{
		Use:     "set CACHE",
		Short:   "Change settings of a cache",
		Long:    "Change the display name of a cache, which is all that can be changed of one.",
		Example: `  felix cache set users --display-name "User profiles"`,
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if !cmd.Flags().Changed("display-name") {
			return usageError("nothing to change").hinting("give --display-name")
		}
		after, err := c.PatchCache(ctx, c.cache(args[0]), model.CachePatch{DisplayName: &display})
		if err != nil {
			return err
		}
		return a.done(after, "display name: %s", after.DisplayName)
	})
	cmd.Flags().StringVar(&display, "display-name", "", "`NAME` for people")
	return cmd
}

func (a *App) cacheRemoveCommand() *cobra.Command {
	var yes bool
	cmd := a.tenantVerb(&cobra.Command{
		Use:     "rm CACHE",
		Short:   "Remove a cache and its entries",
		Long:    "Remove a cache with its entries and counters, on all brokers. Watches on it\nend. It asks first, or takes --yes. \"felix cache del\" removes one key.",
		Example: "  felix cache rm users --yes",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := a.confirm(ctx, yes, "remove cache "+args[0]+" and its entries"); err != nil {
			return err
		}
		if err := c.DeleteCache(ctx, c.cache(args[0])); err != nil {
			return err
		}
		return a.done(removed{args[0]}, "removed cache %s", args[0])
	})
	addYes(cmd, &yes)
	return cmd
}
