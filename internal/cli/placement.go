package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
)

func (a *App) placementCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "placement",
		GroupID: groupControl,
		Short:   "See what the control plane would place where, and pause moves",
		Long: `See what the next placement pass would do and why, which shards lack copies, and
pause the moving of shards.`,
		Example: `  felix placement plan
  felix placement pause
  felix placement resume`,
	}, a.placementPlanCommand(), a.placementReplicationCommand(), a.placementPauseCommand(true), a.placementPauseCommand(false), a.placementAbandonCommand())
}

func (a *App) placementPlanCommand() *cobra.Command {
	return a.controlVerb(&cobra.Command{
		Use:     "plan",
		Short:   "Show what the next pass would do",
		Long:    "Show the shards that the next placement pass would place, move, or cannot place,\nwith the reason. Shards that stay are left out. With --json it is one object.",
		Example: "  felix placement plan",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		plan, err := c.Plan(ctx)
		if err != nil {
			return err
		}
		if a.flags.json || len(plan.Items) == 0 {
			return a.done(plan, "nothing to do: every shard is where it should be")
		}
		return tell(a, []string{"TENANT", "NAMESPACE", "SHARD", "ACTION", "LEADER", "REASON"}, plan.Items, func(p apiclient.PlannedShard) []string {
			leader := "-"
			if p.Assignment != nil {
				leader = p.Assignment.Leader
			}
			return []string{p.TenantID, p.Namespace, shardText(p.ShardKey), p.Action, leader, orDefault(p.Reason, "-")}
		})
	})
}

func (a *App) placementReplicationCommand() *cobra.Command {
	return a.controlVerb(&cobra.Command{
		Use:     "replication",
		Short:   "Show the shards that lack copies",
		Long:    "Show the shards that have fewer copies than they should, or that nobody serves.\nWith --json it is one object.",
		Example: "  felix placement replication",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		r, err := c.Replication(ctx)
		if err != nil {
			return err
		}
		if a.flags.json || len(r.Items) == 0 {
			return a.done(r, "nothing lacks: every shard is served and has its copies")
		}
		return tell(a, []string{"TENANT", "NAMESPACE", "SHARD", "LEADER", "COPIES", "WANTED", "SERVED", "RESTORING"}, r.Items, func(s apiclient.ReplicatedShard) []string {
			return []string{s.TenantID, s.Namespace, shardText(s.ShardKey), orDefault(s.Leader, "-"),
				strconv.FormatUint(uint64(s.CurrentReplicas), 10), strconv.FormatUint(uint64(s.DesiredReplicas), 10),
				yesNo(!s.Unavailable), orDefault(s.Restoring, "-")}
		})
	})
}

func (a *App) placementPauseCommand(pause bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pause",
		Short:   "Let no move begin",
		Long:    "Let no move of a shard begin, draining included. New shards are still placed,\nfailed brokers still replaced, and moves under way finish.",
		Example: "  felix placement pause",
	}
	if !pause {
		cmd = &cobra.Command{
			Use:     "resume",
			Short:   "Let moves begin again",
			Long:    "Let moves of shards begin again after \"felix placement pause\".",
			Example: "  felix placement resume",
		}
	}
	return a.controlVerb(cmd, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		paused, err := c.PauseMoves(ctx, pause)
		if err != nil {
			return err
		}
		if paused {
			return a.done(map[string]bool{"paused": true}, "moves are paused")
		}
		return a.done(map[string]bool{"paused": false}, "moves may begin")
	})
}

func (a *App) placementAbandonCommand() *cobra.Command {
	var yes, ofCache bool
	cmd := a.tenantVerb(&cobra.Command{
		Use:   "abandon NAME SHARD",
		Short: "Give up a shard whose data is lost",
		Long: `Give up the data of a shard whose copies are all on brokers that will not come
back, and place it anew, empty. What was acknowledged and is only there is lost.
It always needs --yes.`,
		Example: "  felix placement abandon orders 2 --yes",
	}, 2, 2, func(ctx context.Context, c *control, args []string) error {
		key, err := c.shardOf(args, ofCache)
		if err != nil {
			return err
		}
		if !yes {
			return usageError("this would lose the data of %s: confirm with --yes", shardText(key))
		}
		r, err := c.Abandon(ctx, key)
		if err != nil {
			return err
		}
		return a.done(r, "gave up %s", shardText(key))
	})
	addYes(cmd, &yes)
	cmd.Flags().BoolVar(&ofCache, "cache", false, "NAME is a cache")
	return cmd
}
