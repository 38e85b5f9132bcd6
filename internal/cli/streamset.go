package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
)

// streamSettings are the flags of what can be changed of a stream.
type streamSettings struct {
	consistency, delivery, durable, retentionSecs, retentionBytes string
}

func addStreamSettings(cmd *cobra.Command, f *streamSettings) {
	flags := cmd.Flags()
	flags.StringVar(&f.consistency, "consistency", "leader", "acknowledged by the leader or a quorum")
	flags.StringVar(&f.delivery, "delivery", "at-least-once", "at-least-once or at-most-once")
	flags.StringVar(&f.durable, "durable", "true", "on disk: true or false")
	flags.StringVar(&f.retentionSecs, "retention-secs", "default", "keep records for `SECONDS`, or default for the broker's bound")
	flags.StringVar(&f.retentionBytes, "retention-bytes", "default", "keep `BYTES` a shard, or default for the broker's bound")
}

// fill puts the settings into spec.
func (f *streamSettings) fill(spec *apiclient.StreamSpec) error {
	var errs [5]error
	spec.Consistency, errs[0] = consistency(f.consistency)
	spec.Delivery, errs[1] = delivery(f.delivery)
	spec.Durable, errs[2] = word("durable", f.durable, map[string]bool{"true": true, "false": false})
	spec.Retention.MaxAgeSeconds, errs[3] = bound("retention-secs", f.retentionSecs)
	spec.Retention.MaxSizeBytes, errs[4] = bound("retention-bytes", f.retentionBytes)
	return errors.Join(errs[:]...)
}

func (a *App) streamSetCommand() *cobra.Command {
	f := streamSettings{}
	var cmd *cobra.Command
	cmd = a.tenantVerb(&cobra.Command{
		Use:   "set STREAM",
		Short: "Change settings of a stream",
		Long: `Change settings of a stream: at least one flag is needed, and what no flag names
stays. "default" takes a bound away, so that the broker's holds. A new retention
reaches logs that are open, without a restart.`,
		Example: `  felix stream set orders --retention-secs 86400
  felix stream set orders --retention-bytes default`,
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		given := cmd.Flags().Changed
		if !slices.ContainsFunc([]string{"consistency", "delivery", "durable", "retention-secs", "retention-bytes"}, given) {
			return usageError("nothing to change").hinting("give --consistency, --delivery, --durable, --retention-secs or --retention-bytes")
		}
		var asked apiclient.StreamSpec
		if err := f.fill(&asked); err != nil {
			return err
		}
		before, err := c.Stream(ctx, c.stream(args[0]))
		if err != nil {
			return err
		}
		after, err := c.PatchStream(ctx, c.stream(args[0]), streamPatch(given, &asked, &before))
		if err != nil {
			return err
		}
		changes := differences(streamFacts(&after), streamFacts(&before), "%s: %s, was %s")
		if a.flags.json || len(changes) == 0 {
			return a.done(after, "nothing changed")
		}
		if a.flags.quiet {
			return nil
		}
		for _, change := range changes {
			if _, err := fmt.Fprintln(a.Stdout, harmless(change)); err != nil {
				return err
			}
		}
		return nil
	})
	addStreamSettings(cmd, &f)
	return cmd
}

// streamPatch is the change that the given flags ask for. A retention is
// replaced as a whole, so the bound that no flag names is sent as it is.
func streamPatch(given func(flag string) bool, asked *apiclient.StreamSpec, now *model.Stream) model.StreamPatch {
	var p model.StreamPatch
	if given("consistency") {
		p.Consistency = &asked.Consistency
	}
	if given("delivery") {
		p.Delivery = &asked.Delivery
	}
	if given("durable") {
		p.Durable = &asked.Durable
	}
	retention := now.Retention
	if given("retention-secs") {
		retention.MaxAgeSeconds = asked.Retention.MaxAgeSeconds
	}
	if given("retention-bytes") {
		retention.MaxSizeBytes = asked.Retention.MaxSizeBytes
	}
	if given("retention-secs") || given("retention-bytes") {
		p.Retention = &retention
	}
	return p
}
