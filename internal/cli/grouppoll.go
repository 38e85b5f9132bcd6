package cli

import (
	"bufio"
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

// The bounds of what one poll may ask for. Those of times are the broker's to
// judge; a number of milliseconds only has to be one that a Duration holds.
const (
	maxPollRecords  = 1000
	maxMilliseconds = uint64(1<<63-1) / uint64(time.Millisecond)
)

type pollFlags struct {
	max          uint32
	waitMS       uint64
	visibilityMS uint64
	shard        uint32
	as           string
	reclaim      bool
}

func (a *App) groupPollCommand() *cobra.Command {
	f := pollFlags{}
	cmd := &cobra.Command{
		Use:   "poll STREAM GROUP",
		Short: "Take records from a group, each with its claim",
		Long: `Take up to --max records from GROUP and print each: its claim, a tab, and its
payload. What was handed out before and came back comes first, then new
records. Whoever holds a record finishes it with its claim:

  felix group ack     the work is done
  felix group nack    hand it back, at once or after a delay
  felix group extend  more time is needed

A claim that ends without any of them is handed out again, with one attempt
more, until the attempts are used up and the record becomes a dead letter.

With nothing to hand out the output is empty and the exit code 0; --wait-ms
waits for something first. All shards are polled in turn unless --shard names
one.

--as names the member of the group that polls, which "felix group describe"
then shows. With --reclaim the claims that a member of that name took over
earlier connections come to this poll first: for a worker that was restarted
and does not want to wait for them to end.`,
		Example: `  felix group poll orders billing
  felix group poll orders billing --max 1 --wait-ms 30000 --visibility-ms 60000

  # take one, work on it, finish it
  claim=$(felix group poll orders billing --max 1 --json | jq -r .claim)
  felix group ack orders billing "$claim"`,
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := f.options(cmd)
			if err != nil {
				return err
			}
			return a.withGroup(cmd, args, f.shard, func(ctx context.Context, g *groupAt) error {
				deliveries, err := f.poll(ctx, g, options)
				if err != nil {
					return err
				}
				if len(deliveries) == 0 {
					a.remark("nothing to hand out")
				}
				return a.printDeliveries(deliveries)
			}, client.WithTimestamps(), client.WithPublishers())
		},
	}
	flags := cmd.Flags()
	flags.Uint32Var(&f.max, "max", 10, "take `N` records at most")
	flags.Uint64Var(&f.waitMS, "wait-ms", 0, "wait up to `N` milliseconds for a record (default not at all)")
	flags.Uint64Var(&f.visibilityMS, "visibility-ms", 0, "let the claims end after `N` milliseconds (default the broker's)")
	addShard(cmd, &f.shard)
	flags.StringVar(&f.as, "as", "", "poll as the member `NAME` of the group (default anonymous)")
	flags.BoolVar(&f.reclaim, "reclaim", false, "take over the claims of this member; with --as")
	return cmd
}

// options checks the flags and turns them into those of the client, but for
// shard, number and wait.
func (f *pollFlags) options(cmd *cobra.Command) ([]client.PollOption, error) {
	var options []client.PollOption
	switch {
	case f.max == 0 || f.max > maxPollRecords:
		return nil, usageError("--max %d: want 1 to %d", f.max, maxPollRecords)
	case f.waitMS > maxMilliseconds:
		return nil, usageError("--wait-ms %d: want 0 to %d", f.waitMS, maxMilliseconds)
	case f.reclaim && f.as == "":
		return nil, usageError("--reclaim needs --as: an anonymous worker has no claims of its own")
	}
	if cmd.Flags().Changed("visibility-ms") {
		visibility, err := milliseconds("--visibility-ms", f.visibilityMS)
		if err != nil {
			return nil, err
		}
		options = append(options, client.PollVisibility(visibility))
	}
	if cmd.Flags().Changed("as") {
		options = append(options, client.PollAs(f.as))
	}
	if f.reclaim {
		options = append(options, client.PollReclaim())
	}
	return options, nil
}

// milliseconds is a flag's number of at least one as a Duration.
func milliseconds(flag string, n uint64) (time.Duration, error) {
	if n == 0 || n > maxMilliseconds {
		return 0, usageError("%s %d: want 1 to %d", flag, n, maxMilliseconds)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// How long one poll waits: the most that may be asked for, and, of several
// shards, at one before the next is looked at.
const (
	longestWait = 30 * time.Second
	turnWait    = 250 * time.Millisecond
)

// poll takes records from one shard after the other until there are enough,
// and while there are none waits as long as the flags say. A broker may end a
// wait sooner; it is then begun again.
func (f *pollFlags) poll(ctx context.Context, g *groupAt, options []client.PollOption) ([]client.Delivery, error) {
	var taken []client.Delivery
	deadline := time.Now().Add(time.Duration(f.waitMS) * time.Millisecond)
	for round := 0; ; round++ {
		for _, shard := range g.shards {
			var wait time.Duration
			if left := time.Until(deadline); round > 0 && len(taken) == 0 && left > 0 {
				wait = min(left, longestWait)
				if len(g.shards) > 1 {
					wait = min(left, turnWait)
				}
			}
			some, err := g.Poll(ctx, append(options, client.PollShard(shard), client.PollMax(int(f.max)-len(taken)), client.PollWait(wait))...)
			if err != nil {
				if len(taken) > 0 {
					return taken, nil // they are claimed: show them; the next poll meets the error again
				}
				return nil, g.ofShard(shard, err)
			}
			if taken = append(taken, some...); len(taken) >= int(f.max) {
				return taken, nil
			}
		}
		if len(taken) > 0 || time.Until(deadline) <= 0 {
			return taken, nil
		}
	}
}

// deliveryJSON is a record of a poll as --json prints it.
type deliveryJSON struct {
	// Claim names this delivery in ack, nack, extend and dead-letters.
	Claim    string `json:"claim"`
	Shard    uint32 `json:"shard"`
	Offset   uint64 `json:"offset"`
	Attempts uint32 `json:"attempts,omitempty"`
	// SkippedBefore counts the offsets right before that hold no record.
	SkippedBefore   uint64 `json:"skipped_before,omitempty"`
	Publisher       string `json:"publisher,omitempty"`
	TimestampMicros int64  `json:"timestamp_micros,omitempty"`
	payloadJSON
}

func newDeliveryJSON(d *client.Delivery) deliveryJSON {
	return deliveryJSON{
		Claim: formatClaim(d.Claim), Shard: d.Shard, Offset: d.Offset, Attempts: d.Attempts,
		SkippedBefore: d.SkippedBefore, Publisher: d.Publisher, TimestampMicros: unixMicro(d.Time),
		payloadJSON: newPayloadJSON(d.Payload),
	}
}

// unixMicro is t in Unix microseconds, 0 for no time.
func unixMicro(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// printDeliveries writes each record on a line.
func (a *App) printDeliveries(deliveries []client.Delivery) error {
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	var line []byte
	for i := range deliveries {
		line = appendDelivery(line[:0], &deliveries[i], a.flags.json, a.StdoutTTY)
		if _, err := out.Write(line); err != nil {
			return err
		}
	}
	return out.Flush()
}

// appendDelivery appends a record as a line of output.
func appendDelivery(dst []byte, d *client.Delivery, asJSON, tty bool) []byte {
	if asJSON {
		return append(appendJSON(dst, newDeliveryJSON(d)), '\n')
	}
	dst = append(dst, formatClaim(d.Claim)...)
	dst = append(dst, '\t')
	return append(appendRaw(dst, d.Payload, tty), '\n')
}
