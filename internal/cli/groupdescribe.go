package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

// How many held records of a shard are shown unasked, and how many the broker
// is asked for at once.
const (
	heldShown = 10
	heldPage  = 1000
)

func (a *App) groupDescribeCommand() *cobra.Command {
	var shard uint32
	var held bool
	cmd := &cobra.Command{
		Use:   "describe STREAM GROUP",
		Short: "Show where a group stands, and why it stands there",
		Long: `Show where GROUP stands on each shard of STREAM:

  COMMITTED     everything before this offset is finished; - before the first
  TAIL          the offset that the next record of the shard will get
  LAG           how many offsets lie between the two
  IN_FLIGHT     records handed out and not finished, also those handed back
                with a delay, and those on their way to the dead letters
  OWED          records that came back and wait to be handed out again
  DEAD_LETTERS  records given up

Below the table there is a sentence for each shard that says why the cursor is
where it is, with who has the record, since when and until when; and then the
records that are held, by claim: the first ten of each shard, with --held all.
The times are told against the clock of this machine.

With --json all of it is one object, the sentence as "why".`,
		Example: `  felix group describe orders billing

  # everybody who holds something, and since when
  felix group describe orders billing --held

  # for an alert
  felix group describe orders billing --json | jq '.shards[] | select(.lag > 10000) | .why'`,
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withGroup(cmd, args, shard, func(ctx context.Context, g *groupAt) error {
				d, err := describeGroup(ctx, g, held)
				if err != nil {
					return err
				}
				if a.flags.json {
					return printJSON(a.Stdout, d)
				}
				return a.printGroup(d, time.Now())
			})
		},
	}
	addShard(cmd, &shard)
	cmd.Flags().BoolVar(&held, "held", false, "list every record that is held, not the first ten of a shard")
	return cmd
}

// heldJSON is a record that is held as --json prints it.
type heldJSON struct {
	Offset      uint64 `json:"offset"`
	State       string `json:"state"`
	Attempts    uint32 `json:"attempts"`
	Consumer    string `json:"consumer,omitempty"`
	Principal   string `json:"principal,omitempty"`
	Connection  uint64 `json:"connection,omitempty"`
	SinceMicros int64  `json:"since_micros,omitempty"`
	UntilMicros int64  `json:"until_micros,omitempty"`
	Reserved    bool   `json:"reserved,omitempty"`
	Redriven    bool   `json:"redriven,omitempty"`

	at client.GroupHeld
}

func newHeldJSON(h client.GroupHeld) heldJSON {
	return heldJSON{
		Offset: h.Offset, State: string(h.State), Attempts: h.Attempts, Consumer: h.Consumer, Principal: h.Principal, Connection: h.Connection,
		SinceMicros: unixMicro(h.Since), UntilMicros: unixMicro(h.Until), Reserved: h.Reserved, Redriven: h.Redriven, at: h,
	}
}

// groupShard is a group on one shard as "felix group describe" shows it.
type groupShard struct {
	Shard       uint32  `json:"shard"`
	Committed   *uint64 `json:"committed,omitempty"` // absent before the first
	Tail        uint64  `json:"tail"`
	Lag         uint64  `json:"lag"`
	InFlight    uint64  `json:"in_flight"`
	Owed        uint64  `json:"owed"`
	DeadLetters uint64  `json:"dead_letters"`
	// Trimmed counts the records that retention took before they were
	// finished, since the group was last read from disk.
	Trimmed     uint64 `json:"trimmed"`
	HighWater   uint64 `json:"high_water,omitempty"`
	MaxAttempts uint32 `json:"max_attempts,omitempty"`
	// NextLapseMicros is when the next claim or delay ends.
	NextLapseMicros int64  `json:"next_lapse_micros,omitempty"`
	Why             string `json:"why"`
	// First is the record that holds the cursor.
	First *heldJSON  `json:"first,omitempty"`
	Held  []heldJSON `json:"held"`
	// HeldMore says that there are more than Held lists.
	HeldMore bool `json:"held_more,omitempty"`
}

// groupDescription is what "felix group describe --json" prints.
type groupDescription struct {
	Stream string       `json:"stream"`
	Group  string       `json:"group"`
	Lag    uint64       `json:"lag"` // of all shards
	Shards []groupShard `json:"shards"`
}

func describeGroup(ctx context.Context, g *groupAt, all bool) (*groupDescription, error) {
	d := &groupDescription{Stream: g.stream, Group: g.name}
	for _, shard := range g.shards {
		limit := heldShown
		if all {
			limit = heldPage
		}
		info, err := g.Describe(ctx, shard, client.DescribeHeld(0, limit))
		for err == nil && all && info.More {
			var next client.GroupInfo
			if next, err = g.Describe(ctx, shard, client.DescribeHeld(info.HeldNext, limit)); err == nil {
				next.Held = append(info.Held, next.Held...)
				info = next
			}
		}
		if err != nil {
			return nil, g.ofShard(shard, err)
		}
		s := newGroupShard(shard, &info, time.Now())
		d.Lag += s.Lag
		d.Shards = append(d.Shards, s)
	}
	return d, nil
}

func newGroupShard(shard uint32, info *client.GroupInfo, now time.Time) groupShard {
	s := groupShard{
		Shard: shard, Tail: info.Tail, Lag: info.Lag(), InFlight: info.InFlight, Owed: info.Owed, DeadLetters: info.DeadLetters,
		Trimmed: info.Trimmed, HighWater: info.HighWater, MaxAttempts: info.MaxAttempts, NextLapseMicros: unixMicro(info.NextLapse),
		Why: whyThere(info, now), Held: []heldJSON{}, HeldMore: info.More,
	}
	if info.HasCommitted {
		s.Committed = &info.Committed
	}
	if info.First != nil {
		s.First = new(newHeldJSON(*info.First))
	}
	for _, h := range info.Held {
		s.Held = append(s.Held, newHeldJSON(h))
	}
	return s
}

// printGroup writes a description for a person.
func (a *App) printGroup(d *groupDescription, now time.Time) error {
	var rows, held [][]string
	more := false
	for _, s := range d.Shards {
		committed := "-"
		if s.Committed != nil {
			committed = strconv.FormatUint(*s.Committed, 10)
		}
		rows = append(rows, []string{
			strconv.FormatUint(uint64(s.Shard), 10), committed, strconv.FormatUint(s.Tail, 10), strconv.FormatUint(s.Lag, 10),
			strconv.FormatUint(s.InFlight, 10), strconv.FormatUint(s.Owed, 10), strconv.FormatUint(s.DeadLetters, 10),
		})
		for _, h := range s.Held {
			row := heldRow(s.Shard, &h.at, s.MaxAttempts, now)
			for i, cell := range row { // the names are what clients made up
				row[i] = string(appendRaw(nil, []byte(cell), a.StdoutTTY))
			}
			held = append(held, row)
		}
		more = more || s.HeldMore
	}
	if err := printTable(a.Stdout, []string{"SHARD", "COMMITTED", "TAIL", "LAG", "IN_FLIGHT", "OWED", "DEAD_LETTERS"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout)
	for _, s := range d.Shards {
		if _, err := fmt.Fprintf(a.Stdout, "shard %d: %s\n", s.Shard, appendRaw(nil, []byte(s.Why), a.StdoutTTY)); err != nil {
			return err
		}
	}
	if len(held) == 0 {
		return nil
	}
	fmt.Fprintln(a.Stdout)
	if err := printTable(a.Stdout, []string{"CLAIM", "STATE", "HOLDER", "CONNECTION", "PRINCIPAL", "SINCE", "UNTIL", "TRIES"}, held); err != nil {
		return err
	}
	if more {
		a.remark("there are more; --held lists them all")
	}
	return nil
}

// heldRow is a held record as a row of the table.
func heldRow(shard uint32, h *client.GroupHeld, maxAttempts uint32, now time.Time) []string {
	state := string(h.State)
	if h.Reserved {
		state += ", set aside"
	}
	if h.Redriven {
		state += ", redriven"
	}
	connection, since, until := "-", "-", "-"
	if h.Connection != 0 {
		connection = strconv.FormatUint(h.Connection, 10)
	}
	if !h.Since.IsZero() {
		since = span(now.Sub(h.Since)) + " ago"
	}
	if !h.Until.IsZero() {
		until = "in " + span(h.Until.Sub(now))
	}
	tries := strconv.FormatUint(uint64(h.Attempts), 10)
	if maxAttempts > 0 {
		tries = fmt.Sprintf("%d of %d", h.Attempts, maxAttempts)
	}
	return []string{
		formatClaim(client.Claim{Shard: shard, Offset: h.Offset, Attempts: h.Attempts}), state,
		orDefault(h.Consumer, "-"), connection, orDefault(h.Principal, "-"), since, until, tries,
	}
}
