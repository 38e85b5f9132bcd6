package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

// groupPosition is what "felix group create" and "felix group seek" did to one
// shard.
type groupPosition struct {
	Shard uint32 `json:"shard"`
	// Offset is where the group stands now.
	Offset uint64 `json:"offset"`
	// Moved says that it stands there because of this command.
	Moved bool `json:"moved"`
}

// groupPositions is what --json prints of them.
type groupPositions struct {
	Stream string          `json:"stream"`
	Group  string          `json:"group"`
	Shards []groupPosition `json:"shards"`
}

func (a *App) groupCreateCommand() *cobra.Command {
	var from string
	var shard uint32
	cmd := &cobra.Command{
		Use:   "create STREAM GROUP",
		Short: "Make a group that begins at a position",
		Long: `Make GROUP with its cursor at --from, on every shard of STREAM or on that of
--shard. A group that is there already is left as it is, which is no error; the
answer says where it stands.

A group need not be made: polled unmade, it begins with the oldest record.`,
		Example: `  # what is published from now on
  felix group create orders billing

  # everything the stream still holds
  felix group create orders audit --from earliest`,
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			start, err := parsePosition("--from", from)
			if err != nil {
				return err
			}
			return a.withGroup(cmd, args, shard, func(ctx context.Context, g *groupAt) error {
				if err := g.oneShardFor("--from", from); err != nil {
					return err
				}
				at, err := g.place(ctx, start, g.Create)
				if err != nil {
					return err
				}
				return a.tellPositions(at, "made at", "was there already, at")
			})
		},
	}
	addShard(cmd, &shard)
	cmd.Flags().StringVar(&from, "from", "latest", "where the cursor begins: latest, earliest or an `OFFSET`")
	mustComplete(cmd, "from", "latest", "earliest")
	return cmd
}

func (a *App) groupSeekCommand() *cobra.Command {
	var shard uint32
	var yes bool
	cmd := &cobra.Command{
		Use:   "seek STREAM GROUP POSITION",
		Short: "Move a group to another position",
		Long: `Move the cursor of GROUP to POSITION: latest, earliest or an offset, in either
direction, on every shard of STREAM or on that of --shard. An offset means one
record, so it needs --shard where the stream has several.

Every claim of the group ends: what was handed out is handed out again if it
lies at the new position or behind it. Dead letters stay. To move back over
records that were finished, so that they are worked on again, is asked about,
or confirmed with --yes.`,
		Example: `  # skip everything there is
  felix group seek orders billing latest

  # do it all again
  felix group seek orders billing earliest --yes
  felix group seek orders billing 1000 --shard 2`,
		Args:              positional(3, 3),
		ValidArgsFunction: completePosition,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			start, err := parsePosition("POSITION", args[2])
			if err != nil {
				return err
			}
			return a.withGroup(cmd, args, shard, func(ctx context.Context, g *groupAt) error {
				if err := g.oneShardFor("POSITION", args[2]); err != nil {
					return err
				}
				back, err := g.movesBack(ctx, args[2])
				if err != nil {
					return err
				}
				if back > 0 {
					upTo := ""
					if !isOffset(args[2]) {
						upTo = "up to " // the stream may hold fewer of them
					}
					what := fmt.Sprintf("move group %s back over %s%s that %s finished", g.label(), upTo, plural(back, "record"), isOrAre(back))
					if err := a.confirm(ctx, yes, what); err != nil {
						return err
					}
				}
				at, err := g.place(ctx, start, g.Seek)
				if err != nil {
					return err
				}
				return a.tellPositions(at, "stands at", "stands at")
			})
		},
	}
	addShard(cmd, &shard)
	addYes(cmd, &yes)
	return cmd
}

// completePosition offers the positions that are words.
func completePosition(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 2 {
		return []string{"latest", "earliest"}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func isOrAre(n uint64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// oneShardFor refuses an offset where it would name a record in several shards.
func (g *groupAt) oneShardFor(name, position string) error {
	if !isOffset(position) || len(g.shards) == 1 {
		return nil
	}
	return usageError("%s %s: an offset means one record, and %s has %d shards", name, position, g.stream, len(g.shards)).
		hinting("name the shard with --shard")
}

// movesBack counts the finished records behind a position, which it would put
// in play again: for earliest all that the group has ever finished.
func (g *groupAt) movesBack(ctx context.Context, position string) (uint64, error) {
	if position == "latest" {
		return 0, nil
	}
	var to, back uint64
	if isOffset(position) {
		to, _ = decimal(position, 64) // parsed before
	}
	for _, shard := range g.shards {
		info, err := g.Describe(ctx, shard)
		if err != nil {
			return 0, g.ofShard(shard, err)
		}
		if info.HasCommitted && info.Committed > to {
			back += info.Committed - to
		}
	}
	return back, nil
}

// place moves the group on each of its shards.
func (g *groupAt) place(ctx context.Context, to client.Start, move func(context.Context, uint32, client.Start) (client.GroupPosition, error)) (*groupPositions, error) {
	at := &groupPositions{Stream: g.stream, Group: g.name}
	for _, shard := range g.shards {
		p, err := move(ctx, shard, to)
		if err != nil {
			return nil, g.ofShard(shard, err)
		}
		at.Shards = append(at.Shards, groupPosition{Shard: shard, Offset: p.Offset, Moved: p.Moved})
	}
	return at, nil
}

func (a *App) tellPositions(at *groupPositions, moved, stayed string) error {
	if a.flags.json {
		return printJSON(a.Stdout, at)
	}
	if a.flags.quiet {
		return nil
	}
	for _, p := range at.Shards {
		how := moved
		if !p.Moved {
			how = stayed
		}
		if _, err := fmt.Fprintf(a.Stdout, "group %s of %s, shard %d: %s %d\n", at.Group, at.Stream, p.Shard, how, p.Offset); err != nil {
			return err
		}
	}
	return nil
}

func (a *App) groupRemoveCommand() *cobra.Command {
	var shard uint32
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm STREAM GROUP",
		Short: "Delete a group",
		Long: `Delete GROUP on every shard of STREAM, or on that of --shard: its cursor, its
claims and its dead letters. The records of the stream stay as they are. A
group of that name that is polled again begins with the oldest record.

It is asked about, or confirmed with --yes. A group that is not there is exit
code 5.`,
		Example: `  felix group rm orders billing
  felix group rm orders billing --shard 2 --yes`,
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withGroup(cmd, args, shard, func(ctx context.Context, g *groupAt) error {
				what := "delete group " + g.label() + ", its position and its dead letters"
				if !g.every {
					what = fmt.Sprintf("delete group %s on shard %d, its position and its dead letters there", g.label(), shard)
				}
				if err := a.confirm(ctx, yes, what); err != nil {
					return err
				}
				return a.removeGroup(ctx, g)
			})
		},
	}
	addShard(cmd, &shard)
	addYes(cmd, &yes)
	return cmd
}

func (a *App) removeGroup(ctx context.Context, g *groupAt) error {
	removed := []uint32{}
	for _, shard := range g.shards {
		existed, err := g.Delete(ctx, shard)
		if err != nil {
			return g.ofShard(shard, err)
		}
		if existed {
			removed = append(removed, shard)
		}
	}
	if len(removed) == 0 {
		return &Error{Exit: ExitNotFound, Err: fmt.Errorf("there is no group %s", g.label())}
	}
	if a.flags.json {
		return printJSON(a.Stdout, struct {
			Stream string   `json:"stream"`
			Group  string   `json:"group"`
			Shards []uint32 `json:"removed_shards"`
		}{g.stream, g.name, removed})
	}
	if !a.flags.quiet {
		fmt.Fprintf(a.Stdout, "removed group %s on %s\n", g.label(), plural(uint64(len(removed)), "shard"))
	}
	return nil
}
