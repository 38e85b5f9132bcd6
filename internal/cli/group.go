package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

func (a *App) groupCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "group",
		GroupID: groupData,
		Short:   "Share the records of a stream among workers",
		Long: `Share the records of a stream among workers: a queue. A group is a position on
each shard of a stream, before which every record is finished. A worker polls
records, which are its own until their claims end, and acknowledges each when
its work is done; what nobody acknowledges in time is handed out again, and in
the end goes to the dead letters of the group. "felix work" is such a worker.

A record that was polled is named by its claim, SHARD:OFFSET:ATTEMPTS, where
ATTEMPTS says how often it has been handed out. A group needs no creation: an
unknown one begins with the oldest record. It needs a broker with storage.`,
		Example: `  felix group poll orders billing --max 1
  felix group ack orders billing 0:17:1
  felix group describe orders billing`,
	}, a.groupCreateCommand(), a.groupDescribeCommand(), a.groupSeekCommand(), a.groupRemoveCommand(),
		a.groupPollCommand(), a.groupAckCommand(), a.groupNackCommand(), a.groupExtendCommand(),
		a.deadLettersCommand())
}

// A groupAt is the group of a command line and the shards it is about.
type groupAt struct {
	*client.Group
	stream, name string
	shards       []uint32
	// every says that these are all shards of the stream.
	every bool
}

// label names the group for a person: billing of orders.
func (g *groupAt) label() string { return g.name + " of " + g.stream }

// openGroup connects and finds the shards a command is about: that of --shard,
// or all. The caller closes the client.
func (a *App) openGroup(cmd *cobra.Command, args []string, shard uint32, further ...client.Option) (*client.Client, *groupAt, error) {
	c, err := a.connect(cmd.Context(), cmd, further...)
	if err != nil {
		return nil, nil, err
	}
	g := &groupAt{Group: c.Group(args[0], args[1]), stream: args[0], name: args[1]}
	total, err := g.Shards(cmd.Context())
	if errors.Is(err, client.ErrUnsupported) && cmd.Flags().Changed("shard") {
		total, err = shard+1, nil // the broker will know
	}
	if err == nil && cmd.Flags().Changed("shard") && shard >= total {
		err = &Error{Exit: ExitNotFound, Err: fmt.Errorf("stream %q has no shard %d: it has %s, from 0 on", args[0], shard, plural(uint64(total), "shard"))}
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	if g.every = !cmd.Flags().Changed("shard"); !g.every {
		g.shards = []uint32{shard}
		return c, g, nil
	}
	for n := range total {
		g.shards = append(g.shards, n)
	}
	return c, g, nil
}

// withGroup runs do with the group of a command line and its client.
func (a *App) withGroup(cmd *cobra.Command, args []string, shard uint32, do func(context.Context, *groupAt) error, further ...client.Option) error {
	c, g, err := a.openGroup(cmd, args, shard, further...)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(cmd.Context(), g)
}

// addShard adds --shard to a command that is about all shards without it.
func addShard(cmd *cobra.Command, shard *uint32) {
	cmd.Flags().Uint32Var(shard, "shard", 0, "shard `N` only (default all)")
}

// ofShard says at which shard something failed, where there are several.
func (g *groupAt) ofShard(shard uint32, err error) error {
	if len(g.shards) == 1 {
		return err
	}
	out := &Error{Err: fmt.Errorf("shard %d: %w", shard, err)}
	if ours, ok := errors.AsType[*Error](err); ok {
		out.Exit, out.Hint = ours.Exit, ours.Hint
	}
	return out
}

// parsePosition reads where a group begins: latest, earliest, or an offset.
func parsePosition(flag, text string) (client.Start, error) {
	switch text {
	case "latest":
		return client.Latest(), nil
	case "earliest":
		return client.Earliest(), nil
	}
	offset, err := decimal(text, 64)
	if err != nil {
		return client.Start{}, usageError("%s %q: want latest, earliest or an offset", flag, text)
	}
	return client.Offset(offset), nil
}

// isOffset says that a position names one record, which one shard has.
func isOffset(text string) bool { return text != "latest" && text != "earliest" }
