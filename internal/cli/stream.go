package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

func (a *App) streamCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "stream",
		GroupID: groupControl,
		Short:   "Make, list, change and remove streams",
		Long: `Make, list, change and remove the streams of a namespace. The shards, the kind,
the copies, the region and the routing of a stream are fixed once it is made;
its retention, consistency, delivery and durability can be changed.`,
		Example: `  felix stream create orders --shards 4 --retention-secs 3600
  felix stream ls
  felix stream set orders --retention-secs default
  felix stream rm orders`,
	}, a.streamListCommand(), a.streamInfoCommand(), a.streamCreateCommand(), a.streamSetCommand(), a.streamRemoveCommand())
}

func (a *App) streamListCommand() *cobra.Command {
	return a.controlVerb(&cobra.Command{
		Use:     "ls",
		Short:   "List the streams of the namespace",
		Long:    "List the streams of the namespace that the token may manage. With --json each is\nan object on a line.",
		Example: "  felix stream ls\n  felix stream ls -n billing --json | jq -r .stream",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		if err := c.needTenant(); err != nil {
			return err
		}
		all, err := c.Streams(ctx, c.namespaceKey())
		if err != nil {
			return err
		}
		return tell(a, []string{"STREAM", "KIND", "SHARDS", "COPIES", "DURABLE", "RETENTION", "CONSISTENCY", "DELIVERY"}, all, func(s model.Stream) []string {
			return []string{s.Stream, lowered(s.Kind), strconv.FormatUint(uint64(s.Shards), 10), strconv.FormatUint(uint64(s.ReplicationFactor), 10),
				yesNo(s.Durable), retentionText(s.Retention), lowered(s.Consistency), deliveryText(s.Delivery)}
		})
	})
}

func (a *App) streamInfoCommand() *cobra.Command {
	return a.controlVerb(&cobra.Command{
		Use:     "info STREAM",
		Short:   "Show the settings of a stream",
		Long:    "Show the settings of one stream. One that does not exist is exit code 5.",
		Example: "  felix stream info orders\n  felix stream info orders --json | jq .shards",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := c.needTenant(); err != nil {
			return err
		}
		s, err := c.Stream(ctx, c.stream(args[0]))
		if err != nil {
			return err
		}
		return a.facts(s, streamFacts(&s))
	})
}

func streamFacts(s *model.Stream) [][2]string {
	return [][2]string{
		{"stream", s.TenantID + "/" + s.Namespace + "/" + s.Stream},
		{"kind", lowered(s.Kind)},
		{"shards", strconv.FormatUint(uint64(s.Shards), 10)},
		{"copies", strconv.FormatUint(uint64(s.ReplicationFactor), 10)},
		{"durable", yesNo(s.Durable)},
		{"retention", retentionText(s.Retention)},
		{"consistency", lowered(s.Consistency)},
		{"delivery", deliveryText(s.Delivery)},
		{"region", orDefault(s.Region, "any")},
		{"routing", orDefault(strings.ReplaceAll(string(s.Routing), "_", "-"), "modulo")},
	}
}

type streamFlags struct {
	kind, consistency, delivery, durable, routing, region string
	shards, copies                                        uint32
	retentionSecs, retentionBytes                         string
}

func (a *App) streamCreateCommand() *cobra.Command {
	f := streamFlags{}
	cmd := a.controlVerb(&cobra.Command{
		Use:   "create STREAM",
		Short: "Make a stream",
		Long: `Make a stream in the namespace. Made again with the same settings it is left as
it is; with other settings that is an error, exit code 4.

Brokers serve it as soon as they have heard of it, which takes a moment.`,
		Example: `  felix stream create orders --shards 4 --retention-secs 3600
  felix stream create metrics --durable false`,
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := c.needTenant(); err != nil {
			return err
		}
		spec, err := f.spec(args[0])
		if err != nil {
			return err
		}
		s, err := c.CreateStream(ctx, c.namespaceKey(), spec)
		if apiclient.StatusOf(err) == 409 {
			return a.madeBefore(ctx, c, &spec, err)
		}
		if err != nil {
			return err
		}
		return a.done(s, "made stream %s with %s", s.Stream, plural(uint64(s.Shards), "shard"))
	})
	flags := cmd.Flags()
	flags.Uint32Var(&f.shards, "shards", 1, "`N` shards, fixed from now on")
	flags.Uint32Var(&f.copies, "replication", 1, "`N` copies of each shard, fixed from now on")
	flags.StringVar(&f.kind, "kind", "stream", "what it is for: stream or queue")
	addStreamSettings(cmd, &f)
	flags.StringVar(&f.region, "region", "", "`REGION` that the shards stay in (default any)")
	flags.StringVar(&f.routing, "routing", "modulo", "how keys find their shard: modulo or jump-hash")
	return cmd
}

// addStreamSettings adds the flags of what can be changed later.
func addStreamSettings(cmd *cobra.Command, f *streamFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.consistency, "consistency", "leader", "acknowledged by the leader or a quorum")
	flags.StringVar(&f.delivery, "delivery", "at-least-once", "at-least-once or at-most-once")
	flags.StringVar(&f.durable, "durable", "true", "on disk: true or false")
	flags.StringVar(&f.retentionSecs, "retention-secs", "default", "keep records for `SECONDS`, or default for the broker's bound")
	flags.StringVar(&f.retentionBytes, "retention-bytes", "default", "keep `BYTES` a shard, or default for the broker's bound")
}

// madeBefore is for a stream that is there already: it is fine if it has the
// settings that were asked for.
func (a *App) madeBefore(ctx context.Context, c *control, spec *apiclient.StreamSpec, conflict error) error {
	s, err := c.Stream(ctx, c.stream(spec.Stream))
	if err != nil {
		return errors.Join(conflict, err)
	}
	var differ []string
	note := func(what string, have, want any) {
		if have != want {
			differ = append(differ, fmt.Sprintf("%s is %v, not %v", what, have, want))
		}
	}
	note("kind", s.Kind, spec.Kind)
	note("shards", s.Shards, spec.Shards)
	note("copies", s.ReplicationFactor, spec.ReplicationFactor)
	note("durable", s.Durable, spec.Durable)
	note("retention", retentionText(s.Retention), retentionText(spec.Retention))
	note("consistency", s.Consistency, spec.Consistency)
	note("delivery", s.Delivery, spec.Delivery)
	note("region", s.Region, spec.Region)
	note("routing", s.Routing, spec.Routing)
	if len(differ) > 0 {
		return (&Error{Exit: ExitRefused, Err: fmt.Errorf("stream %s is there with other settings: %s", s.Stream, strings.Join(differ, "; "))}).
			hinting("\"felix stream set\" changes what can be changed; the rest is fixed")
	}
	return a.done(s, "stream %s is there already, with these settings", s.Stream)
}

func (a *App) streamSetCommand() *cobra.Command {
	f := streamFlags{}
	var cmd *cobra.Command
	cmd = a.controlVerb(&cobra.Command{
		Use:   "set STREAM",
		Short: "Change settings of a stream",
		Long: `Change settings of a stream: at least one flag is needed, and what no flag names
stays. "default" takes a bound away, so that the broker's holds. A new retention
reaches logs that are open, without a restart.`,
		Example: `  felix stream set orders --retention-secs 86400
  felix stream set orders --retention-bytes default`,
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := c.needTenant(); err != nil {
			return err
		}
		before, err := c.Stream(ctx, c.stream(args[0]))
		if err != nil {
			return err
		}
		patch, err := f.patch(cmd, &before)
		if err != nil {
			return err
		}
		after, err := c.PatchStream(ctx, c.stream(args[0]), patch)
		if err != nil {
			return err
		}
		if a.flags.json {
			return printJSON(a.Stdout, after)
		}
		was, is := streamFacts(&before), streamFacts(&after)
		changed := false
		for i := range is {
			if was[i] != is[i] {
				changed = true
				fmt.Fprintf(a.Stdout, "%s: %s, was %s\n", is[i][0], is[i][1], was[i][1])
			}
		}
		if !changed {
			fmt.Fprintln(a.Stdout, "nothing changed")
		}
		return nil
	})
	addStreamSettings(cmd, &f)
	return cmd
}

func (a *App) streamRemoveCommand() *cobra.Command {
	var yes bool
	cmd := a.controlVerb(&cobra.Command{
		Use:   "rm STREAM",
		Short: "Remove a stream and its data",
		Long: `Remove a stream with its records, its groups and their dead letters, on all
brokers. Subscriptions on it end. It asks first, or takes --yes.`,
		Example: "  felix stream rm orders --yes",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := c.needTenant(); err != nil {
			return err
		}
		if err := a.confirm(ctx, yes, "remove stream "+args[0]+" and its records"); err != nil {
			return err
		}
		if err := c.DeleteStream(ctx, c.stream(args[0])); err != nil {
			return err
		}
		return a.done(removed{args[0]}, "removed stream %s", args[0])
	})
	addYes(cmd, &yes)
	return cmd
}

// spec is the stream that the flags describe.
func (f *streamFlags) spec(name string) (apiclient.StreamSpec, error) {
	spec := apiclient.StreamSpec{Stream: name, Shards: f.shards, ReplicationFactor: f.copies, Region: f.region}
	var errs [7]error
	spec.Kind, errs[0] = word("kind", f.kind, map[string]model.StreamKind{"stream": model.KindStream, "queue": model.KindQueue})
	spec.Consistency, errs[1] = consistency(f.consistency)
	spec.Delivery, errs[2] = delivery(f.delivery)
	spec.Durable, errs[3] = word("durable", f.durable, map[string]bool{"true": true, "false": false})
	spec.Routing, errs[4] = word("routing", f.routing, map[string]model.Routing{"modulo": model.Modulo, "jump-hash": model.JumpHash})
	spec.Retention.MaxAgeSeconds, errs[5] = bound("retention-secs", f.retentionSecs)
	spec.Retention.MaxSizeBytes, errs[6] = bound("retention-bytes", f.retentionBytes)
	return spec, errors.Join(errs[:]...)
}

// patch is the change that the given flags ask for. A retention is replaced as
// a whole, so the bound that no flag names is sent as it is.
func (f *streamFlags) patch(cmd *cobra.Command, now *model.Stream) (model.StreamPatch, error) {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	spec, err := f.spec(now.Stream)
	if err != nil {
		return model.StreamPatch{}, err
	}
	var p model.StreamPatch
	if given("consistency") {
		p.Consistency = &spec.Consistency
	}
	if given("delivery") {
		p.Delivery = &spec.Delivery
	}
	if given("durable") {
		p.Durable = &spec.Durable
	}
	if given("retention-secs") || given("retention-bytes") {
		retention := now.Retention
		if given("retention-secs") {
			retention.MaxAgeSeconds = spec.Retention.MaxAgeSeconds
		}
		if given("retention-bytes") {
			retention.MaxSizeBytes = spec.Retention.MaxSizeBytes
		}
		p.Retention = &retention
	}
	if p == (model.StreamPatch{}) {
		return p, usageError("nothing to change").hinting("give --consistency, --delivery, --durable, --retention-secs or --retention-bytes")
	}
	return p, nil
}

// word is what a word of the command line stands for. The words of kind,
// routing and the like are taken from defaults where the command has no such
// flag.
func word[T any](flag, text string, words map[string]T) (T, error) {
	value, known := words[text]
	if !known && text != "" {
		return value, usageError("--%s %q: want %s", flag, text, strings.Join(slices.Sorted(maps.Keys(words)), " or "))
	}
	return value, nil
}

func consistency(text string) (model.Consistency, error) {
	return word("consistency", text, map[string]model.Consistency{"leader": model.Leader, "quorum": model.Quorum})
}

func delivery(text string) (model.Delivery, error) {
	return word("delivery", text, map[string]model.Delivery{"at-least-once": model.AtLeastOnce, "at-most-once": model.AtMostOnce})
}

// bound is a number above zero, or nil for "default".
func bound(flag, text string) (*uint64, error) {
	if text == "default" {
		return nil, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return nil, usageError("--%s %q: want a whole number above 0, or default", flag, text)
	}
	return &n, nil
}

func retentionText(r model.Retention) string {
	var parts []string
	if r.MaxAgeSeconds != nil {
		if age := *r.MaxAgeSeconds; age <= 1<<31 {
			parts = append(parts, (time.Duration(age) * time.Second).String())
		} else {
			parts = append(parts, strconv.FormatUint(age, 10)+"s")
		}
	}
	if r.MaxSizeBytes != nil {
		parts = append(parts, size(*r.MaxSizeBytes))
	}
	return orDefault(strings.Join(parts, ", "), "the broker's")
}

func deliveryText(d model.Delivery) string {
	switch d {
	case model.AtLeastOnce:
		return "at-least-once"
	case model.AtMostOnce:
		return "at-most-once"
	}
	return string(d)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
