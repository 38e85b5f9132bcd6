package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

func (a *App) shardCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "shard",
		GroupID: groupControl,
		Short:   "Show which broker serves which shard, and move shards",
		Long: `Show which broker serves which shard, and move shards. Where a shard is placed
is decided by the control plane; a move by hand is for when you know better.`,
		Example: `  felix shard ls
  felix shard move orders 2 --to broker-3
  felix shard moves`,
	}, a.shardListCommand(), a.shardMovesCommand(), a.shardMoveCommand())
}

func (a *App) shardListCommand() *cobra.Command {
	var leader, name string
	cmd := a.controlVerb(&cobra.Command{
		Use:     "ls",
		Short:   "List the shards with their brokers",
		Long:    "List the shards of the cluster with the broker that leads each and those that\nfollow. With --json each is an object on a line.",
		Example: "  felix shard ls --leader broker-1\n  felix shard ls --name orders",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		all, err := c.Assignments(ctx, leader)
		if err != nil {
			return err
		}
		all = keep(all, func(s model.Assignment) bool { return name == "" || s.Stream == name })
		return tell(a, []string{"TENANT", "NAMESPACE", "SHARD", "LEADER", "FOLLOWERS", "GENERATION", "STATE"}, all, func(s model.Assignment) []string {
			state := string(s.State)
			if s.Successor != "" {
				state += ", moving to " + s.Successor
			}
			return []string{s.TenantID, s.Namespace, shardText(s.ShardKey), s.Leader, orDefault(strings.Join(s.Replicas, ", "), "-"),
				strconv.FormatUint(s.Generation, 10), state}
		})
	})
	cmd.Flags().StringVar(&leader, "leader", "", "only those that `NODE` leads")
	cmd.Flags().StringVar(&name, "name", "", "only those of the streams and caches of `NAME`")
	return cmd
}

func (a *App) shardMovesCommand() *cobra.Command {
	return a.controlVerb(&cobra.Command{
		Use:     "moves",
		Short:   "List the moves under way",
		Long:    "List the shards that are moving, how far they are, and whether moves are paused.\nWith --json it is one object.",
		Example: "  felix shard moves",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		moves, err := c.Moves(ctx)
		if err != nil {
			return err
		}
		if a.flags.json {
			return printJSON(a.Stdout, moves)
		}
		if moves.Paused {
			a.remark("moves are paused: those under way finish, no other begins")
		}
		return tell(a, []string{"SHARD", "FROM", "TO", "STEP", "REASON", "LAG"}, moves.Items, func(m apiclient.ShardMove) []string {
			lag := "unknown"
			if m.LagRecords != nil {
				lag = count(*m.LagRecords)
			}
			return []string{shardText(m.ShardKey), orDefault(m.Replacing, m.Leader), orDefault(m.Destination, "-"), m.Step, orDefault(string(m.Reason), "-"), lag}
		})
	})
}

func (a *App) shardMoveCommand() *cobra.Command {
	var to string
	var ofCache, dryRun bool
	cmd := a.tenantVerb(&cobra.Command{
		Use:   "move NAME SHARD",
		Short: "Move a shard to another broker",
		Long: `Begin to move a shard of a stream, or with --cache of a cache, to a broker. The
shard serves on while it is copied. "felix shard moves" shows how far it is,
"felix shard move cancel" takes it back.`,
		Example: `  felix shard move orders 2 --to broker-3
  felix shard move orders 2 --to broker-3 --dry-run`,
	}, 2, 2, func(ctx context.Context, c *control, args []string) error {
		key, err := c.shardOf(args, ofCache)
		if err != nil {
			return err
		}
		if to == "" {
			return usageError("no destination").hinting("give --to NODE")
		}
		r, err := c.StartMove(ctx, key, to, dryRun)
		if err != nil {
			return err
		}
		if dryRun {
			return a.done(r, "would begin with: %s", r.Step)
		}
		return a.done(r, "%s of %s to %s has begun", r.Step, shardText(key), to)
	})
	cmd.Flags().StringVar(&to, "to", "", "the `NODE` to move it to")
	cmd.Flags().BoolVar(&ofCache, "cache", false, "NAME is a cache")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be done, and do nothing")
	cmd.AddCommand(a.shardMoveCancelCommand())
	return cmd
}

func (a *App) shardMoveCancelCommand() *cobra.Command {
	var ofCache bool
	cmd := a.tenantVerb(&cobra.Command{
		Use:     "cancel NAME SHARD",
		Short:   "Take a move back",
		Long:    "Take back the move of a shard: the broker that led it goes on.",
		Example: "  felix shard move cancel orders 2",
	}, 2, 2, func(ctx context.Context, c *control, args []string) error {
		key, err := c.shardOf(args, ofCache)
		if err != nil {
			return err
		}
		r, err := c.CancelMove(ctx, key)
		if err != nil {
			return err
		}
		return a.done(r, "%s of %s: %s leads it", r.Step, shardText(key), r.Assignment.Leader)
	})
	cmd.Flags().BoolVar(&ofCache, "cache", false, "NAME is a cache")
	return cmd
}

// shardOf is the shard that NAME and SHARD mean.
func (c *control) shardOf(args []string, ofCache bool) (model.ShardKey, error) {
	n, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil {
		return model.ShardKey{}, usageError("shard %q: want a whole number from 0 on", args[1])
	}
	return c.shard(args[0], uint32(n), ofCache), nil
}
