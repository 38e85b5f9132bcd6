package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

func (a *App) deadLettersCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "dead-letters",
		Short: "See and settle what a group has given up",
		Long: `See and settle the dead letters of a group: the records that were handed out as
often as the broker allows without being finished, or were given up at once. A
dead letter is a pointer. Its record stays in the stream, to be read at its
offset, as long as the stream keeps it.

Each is printed as SHARD:OFFSET, which the other commands take as a claim.`,
		Example: `  felix group dead-letters ls orders billing
  felix sub orders --shard 0 --from 17 --count 1
  felix group dead-letters redrive orders billing 0:17`,
	}, a.deadLettersListCommand(), a.deadLettersAddCommand(), a.deadLettersRedriveCommand(), a.deadLettersDiscardCommand())
}

// deadLetterJSON is a dead letter as --json prints it.
type deadLetterJSON struct {
	Claim  string `json:"claim"`
	Shard  uint32 `json:"shard"`
	Offset uint64 `json:"offset"`
}

func (a *App) deadLettersListCommand() *cobra.Command {
	var shard uint32
	cmd := &cobra.Command{
		Use:   "ls STREAM GROUP",
		Short: "List the dead letters of a group",
		Long: `List the dead letters of GROUP, one a line as SHARD:OFFSET, on every shard of
STREAM or on that of --shard.`,
		Example: `  felix group dead-letters ls orders billing

  # put all of them back in play
  felix group dead-letters ls orders billing | xargs -r felix group dead-letters redrive orders billing`,
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withGroup(cmd, args, shard, func(ctx context.Context, g *groupAt) error {
				var out []byte
				var listed uint64
				for _, shard := range g.shards {
					offsets, err := g.DeadLetters(ctx, shard)
					if err != nil {
						return g.ofShard(shard, err)
					}
					listed += uint64(len(offsets))
					for _, offset := range offsets {
						out = appendDeadLetter(out, shard, offset, a.flags.json)
					}
				}
				if _, err := a.Stdout.Write(out); err != nil {
					return err
				}
				a.remark("%s of %s", plural(listed, "dead letter"), g.label())
				return nil
			})
		},
	}
	addShard(cmd, &shard)
	return cmd
}

// appendDeadLetter appends a dead letter as a line of output.
func appendDeadLetter(dst []byte, shard uint32, offset uint64, asJSON bool) []byte {
	claim := formatClaim(client.Claim{Shard: shard, Offset: offset})
	if asJSON {
		dst = appendJSON(dst, deadLetterJSON{Claim: claim, Shard: shard, Offset: offset})
	} else {
		dst = append(dst, claim...)
	}
	return append(dst, '\n')
}

func (a *App) deadLettersAddCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add STREAM GROUP CLAIM...",
		Short: "Give up records at once",
		Long: `Give up the records of these claims: each is put on the list of dead letters
and is then finished, whoever holds it and however many attempts are left. A
record that is finished already is refused (exit code 4).`,
		Example: `  felix group dead-letters add orders billing 0:17:1
  felix group dead-letters add orders billing 0:17 0:18`,
		Args:              positional(3, manyArguments),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settle(cmd, args, "given up", each(func(ctx context.Context, g *client.Group, c client.Claim) error {
				return g.DeadLetter(ctx, c)
			}))
		},
	}
}

func (a *App) deadLettersRedriveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "redrive STREAM GROUP CLAIM...",
		Short: "Put dead letters back in play",
		Long: `Put the dead letters of these claims back in play: each is handed out again
with its attempts counted from the beginning, and is off the list. The cursor
of the group does not move back. One that is not on the list is exit code 5,
as is one whose record the stream no longer keeps.`,
		Example: `  felix group dead-letters redrive orders billing 0:17
  felix group dead-letters ls orders billing | xargs -r felix group dead-letters redrive orders billing`,
		Args:              positional(3, manyArguments),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settle(cmd, args, "back in play", each(func(ctx context.Context, g *client.Group, c client.Claim) error {
				return g.Redrive(ctx, c.Shard, c.Offset)
			}))
		},
	}
}

func (a *App) deadLettersDiscardCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "discard STREAM GROUP CLAIM...",
		Short: "Take dead letters off the list for good",
		Long: `Take the dead letters of these claims off the list. The records stay in the
stream, but nothing says any more that the group has not worked on them, so it
is asked about, or confirmed with --yes. One that is not on the list is exit
code 5.`,
		Example: `  felix group dead-letters discard orders billing 0:17
  felix group dead-letters discard orders billing 0:17 0:18 --yes`,
		Args:              positional(3, manyArguments),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			claims, err := parseClaims(args[2:])
			if err != nil {
				return err
			}
			what := "discard " + plural(uint64(len(claims)), "dead letter") + " of group " + args[1] + " of " + args[0]
			if len(claims) == 1 {
				what = "discard dead letter " + strconv.FormatUint(claims[0].Offset, 10) + " of shard " +
					strconv.FormatUint(uint64(claims[0].Shard), 10) + ", group " + args[1] + " of " + args[0]
			}
			if err := a.confirm(cmd.Context(), yes, what); err != nil {
				return err
			}
			return a.settle(cmd, args, "discarded", each(func(ctx context.Context, g *client.Group, c client.Claim) error {
				return g.Discard(ctx, c.Shard, c.Offset)
			}))
		},
	}
	addYes(cmd, &yes)
	return cmd
}
