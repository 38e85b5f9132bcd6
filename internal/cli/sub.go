package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

type subFlags struct {
	from   string
	shard  uint32
	count  uint64
	format string
	resume map[uint32]uint64 // from, where that names shards
}

func (a *App) subCommand() *cobra.Command {
	f := subFlags{}
	cmd := &cobra.Command{
		Use:     "sub STREAM",
		GroupID: groupData,
		Short:   "Print the messages of a stream",
		Long: `Subscribe to STREAM and print each message with a newline after it, until
--count messages came or Ctrl-C ends it; either way the exit code is 0.

Into a pipe or a file the bytes of a message are printed as they are. On a
terminal everything unprintable is escaped, so that no message can steer the
terminal.

All shards are read and merged unless --shard names one. Order holds within a
shard. Records lost on the way, because this reader was too slow, are reported
on standard error where offsets show the gap.

--from earliest begins with the oldest record held, --from OFFSET with that
record in every shard read, and --from SHARD:OFFSET,... with a record in each
shard, those not named with their oldest. Ctrl-C says where to go on, in that
form. A stream in a log keeps its records and offsets over a restart of the
broker, and a subscription carries on by itself. A stream held in memory keeps
a bounded run of recent records, and its offsets begin anew when the broker
does.

The formats: raw is the message alone; offsets puts SHARD:OFFSET and a tab
before it ("-" where there is no offset); json is one object a line, with
"payload", or "payload_base64" where it is not UTF-8.`,
		Example: `  # follow a stream, Ctrl-C ends
  felix sub orders

  # everything it still holds, as the file it was published from
  felix sub quakes --from earliest --count 1707 > copy.ndjson

  # shards and offsets, or objects for another program
  felix sub orders --from 42 --shard 0 --format offsets
  felix sub orders --from 0:43,1:18
  felix sub orders --json | jq .payload`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := f.options(a, cmd)
			if err != nil {
				return err
			}
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			subscription, err := c.Subscribe(cmd.Context(), args[0], options...)
			if err != nil {
				return err
			}
			defer subscription.Close()
			a.remark("subscribed to %s from %s", args[0], f.from)
			err = a.follow(cmd.Context(), subscription, &f)
			if at := subscription.Positions(); err == nil && cmd.Context().Err() != nil && len(at) > 0 {
				a.remark("to go on: --from %s", formatPositions(at))
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "latest", "first message: latest, earliest, an `OFFSET`, or SHARD:OFFSET,...")
	flags.Uint32Var(&f.shard, "shard", 0, "read shard `N` only (default all, merged)")
	flags.Uint64Var(&f.count, "count", 0, "end after `N` messages (default never)")
	flags.StringVar(&f.format, "format", "raw", "`FORM` of the output: raw, offsets or json")
	mustComplete(cmd, "from", "latest", "earliest")
	mustComplete(cmd, "format", "raw", "offsets", "json")
	return cmd
}

// options checks the flags and turns them into those of the client.
func (f *subFlags) options(a *App, cmd *cobra.Command) ([]client.SubscribeOption, error) {
	var options []client.SubscribeOption
	switch f.from {
	case "latest":
		options = append(options, client.From(client.Latest()))
	case "earliest":
		options = append(options, client.From(client.Earliest()))
	default:
		start, err := parsePositions(f.from)
		if err != nil {
			return nil, err
		}
		if f.resume = start.shards; f.resume == nil {
			options = append(options, client.From(client.Offset(start.offset)))
		} else {
			options = append(options, client.From(client.Earliest()), client.ResumeAt(f.resume))
		}
	}
	if f.resume != nil && cmd.Flags().Changed("shard") {
		return nil, usageError("--from %s names its shards: --shard contradicts it", f.from)
	}
	if cmd.Flags().Changed("shard") {
		options = append(options, client.Shard(f.shard))
	} else {
		options = append(options, client.AllShards())
	}
	if cmd.Flags().Changed("count") && f.count == 0 {
		return nil, usageError("--count 0: want at least 1")
	}
	switch f.format {
	case "raw", "offsets", "json":
	default:
		return nil, usageError("--format %q: want raw, offsets or json", f.format)
	}
	if a.flags.json {
		if cmd.Flags().Changed("format") && f.format != "json" {
			return nil, usageError("--json and --format %s contradict each other", f.format)
		}
		f.format = "json"
	}
	return options, nil
}

// follow prints the messages of a subscription until there were enough, or
// ctx ends.
func (a *App) follow(ctx context.Context, subscription *client.Subscription, f *subFlags) error {
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	printer := eventPrinter{format: f.format, tty: a.StdoutTTY}
	var printed uint64
	for {
		batch, err := subscription.NextBatch(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil // the user's wish
		case errors.Is(err, client.ErrEnded):
			return &Error{Err: fmt.Errorf("the broker ended the subscription after %s", plural(printed, "message"))}
		default:
			return err
		}
		for event := range batch.Events() {
			if event.Gap > 0 {
				a.remark("%s lost before %s", plural(event.Gap, "message"), position(&event))
			}
			if _, err := out.Write(printer.line(&event)); err != nil {
				return err
			}
			if printed++; printed == f.count {
				return out.Flush()
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

// position names the place of an event: shard 0 offset 42.
func position(event *client.Event) string {
	if !event.HasOffset {
		return fmt.Sprintf("a message of shard %d", event.Shard)
	}
	return fmt.Sprintf("shard %d offset %d", event.Shard, event.Offset)
}

// eventJSON is a message as --json prints it.
type eventJSON struct {
	Shard  uint32  `json:"shard"`
	Offset *uint64 `json:"offset,omitempty"`
	// Gap counts the records lost right before this one.
	Gap uint64 `json:"gap,omitempty"`
	// SkippedBefore counts the offsets right before that hold no record.
	SkippedBefore uint64 `json:"skipped_before,omitempty"`
	payloadJSON
}

// An eventPrinter makes lines of events.
type eventPrinter struct {
	format  string
	tty     bool
	scratch []byte
}

// line is an event as a line of output, valid until the next call.
func (p *eventPrinter) line(event *client.Event) []byte {
	dst := p.scratch[:0]
	switch p.format {
	case "json":
		shown := eventJSON{Shard: event.Shard, Gap: event.Gap, SkippedBefore: event.SkippedBefore, payloadJSON: newPayloadJSON(event.Payload)}
		if event.HasOffset {
			shown.Offset = &event.Offset
		}
		dst = appendJSON(dst, shown)
	case "offsets":
		dst = strconv.AppendUint(dst, uint64(event.Shard), 10)
		dst = append(dst, ':')
		if event.HasOffset {
			dst = strconv.AppendUint(dst, event.Offset, 10)
		} else {
			dst = append(dst, '-')
		}
		dst = append(dst, '\t')
		dst = appendRaw(dst, event.Payload, p.tty)
	default:
		dst = appendRaw(dst, event.Payload, p.tty)
	}
	p.scratch = append(dst, '\n')
	return p.scratch
}
