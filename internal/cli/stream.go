package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	return a.tenantVerb(&cobra.Command{
		Use:     "ls",
		Short:   "List the streams of the namespace",
		Long:    "List the streams of the namespace that the token may manage. With --json each is\nan object on a line.",
		Example: "  felix stream ls\n  felix stream ls -n billing --json | jq -r .stream",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
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
	return a.tenantVerb(&cobra.Command{
		Use:     "info STREAM",
		Short:   "Show the settings of a stream",
		Long:    "Show the settings of one stream. One that does not exist is exit code 5.",
		Example: "  felix stream info orders\n  felix stream info orders --json | jq .shards",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
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

func (a *App) streamRemoveCommand() *cobra.Command {
	var yes bool
	cmd := a.tenantVerb(&cobra.Command{
		Use:   "rm STREAM",
		Short: "Remove a stream and its data",
		Long: `Remove a stream with its records, its groups and their dead letters, on all
brokers. Subscriptions on it end. It asks first, or takes --yes.`,
		Example: "  felix stream rm orders --yes",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
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
		parts = append(parts, exactSize(*r.MaxSizeBytes))
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
