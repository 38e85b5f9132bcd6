package cli

import (
	"context"
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

func (a *App) nodeCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "node",
		GroupID: groupControl,
		Short:   "List brokers, and take them out of service",
		Long: `List the brokers of the cluster, and take them out of service. A broker
registers itself when it starts and is live while its heartbeats come; one that
falls silent is down, one that was stopped in order has left.`,
		Example: `  felix node ls
  felix node drain broker-2 --yes`,
	}, a.nodeListCommand(), a.nodeInfoCommand(), a.nodeDrainCommand(), a.nodeDeregisterCommand(), a.nodeRemoveCommand())
}

func (a *App) nodeListCommand() *cobra.Command {
	var lifecycle, region string
	var labels []string
	cmd := a.controlVerb(&cobra.Command{
		Use:     "ls",
		Short:   "List the brokers",
		Long:    "List the brokers of the cluster, with why one gets no shards. With --json each\nis an object on a line.",
		Example: "  felix node ls\n  felix node ls --lifecycle down --label rack=a1",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		filter := apiclient.NodeFilter{Lifecycle: model.Lifecycle(lifecycle), Region: region, Labels: make(map[string]string)}
		for _, label := range labels {
			key, value, found := strings.Cut(label, "=")
			if !found {
				return usageError("--label %q: want KEY=VALUE", label)
			}
			filter.Labels[key] = value
		}
		all, err := c.Nodes(ctx, filter)
		if err != nil {
			return err
		}
		return tell(a, []string{"NODE", "LIFECYCLE", "CLIENTS", "REGION", "HEARTBEAT", "NO SHARDS BECAUSE"}, all, func(n apiclient.NodeView) []string {
			return []string{n.Node.NodeID, string(n.Node.Status.Lifecycle), orDefault(n.Node.Spec.ClientAddr, "-"), n.Node.Spec.Region,
				heartbeatAge(n.Placement.HeartbeatAgeMS), orDefault(strings.Join(n.Placement.Reasons, "; "), "-")}
		})
	})
	flags := cmd.Flags()
	flags.StringVar(&lifecycle, "lifecycle", "", "only those that are live, draining, down or left")
	flags.StringVar(&region, "region", "", "only those of `REGION`")
	flags.StringSliceVar(&labels, "label", nil, "only those with the label `KEY=VALUE`, and further ones")
	return cmd
}

// heartbeatAge says how long ago a heartbeat was.
func heartbeatAge(ms uint64) string {
	const longest = 1000 * 24 * time.Hour
	if ms > uint64(longest.Milliseconds()) {
		return "long ago"
	}
	return elapsed(time.Duration(ms)*time.Millisecond) + " ago"
}

func (a *App) nodeInfoCommand() *cobra.Command {
	return a.controlVerb(&cobra.Command{
		Use:     "info NODE",
		Short:   "Show a broker",
		Long:    "Show what the control plane knows of one broker. One that never registered is\nexit code 5.",
		Example: "  felix node info broker-1",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		view, err := c.Node(ctx, args[0])
		if err != nil {
			return err
		}
		n := view.Node
		most := "no bound"
		if n.Spec.Capacity.MaxShards != nil {
			most = strconv.FormatUint(uint64(*n.Spec.Capacity.MaxShards), 10)
		}
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(n.Spec.Labels)) {
			labels = append(labels, key+"="+n.Spec.Labels[key])
		}
		return a.facts(view, [][2]string{
			{"node", n.NodeID},
			{"lifecycle", string(n.Status.Lifecycle)},
			{"between brokers", n.Spec.AdvertiseAddr},
			{"clients", orDefault(n.Spec.ClientAddr, "-")},
			{"region", n.Spec.Region},
			{"zone", orDefault(n.Spec.Zone, "-")},
			{"labels", orDefault(strings.Join(labels, ", "), "-")},
			{"most shards", most},
			{"registrations", strconv.FormatUint(n.Status.Incarnation+1, 10)},
			{"heartbeat", heartbeatAge(view.Placement.HeartbeatAgeMS)},
			{"gets shards", orDefault(strings.Join(view.Placement.Reasons, "; "), "yes")},
		})
	})
}

func (a *App) nodeDrainCommand() *cobra.Command {
	return a.nodeChange(&cobra.Command{
		Use:   "drain NODE",
		Short: "Move the shards of a broker elsewhere",
		Long: `Have a broker give up what it leads, shard by shard, and get nothing new. It
goes on serving until then. It asks first, or takes --yes.`,
		Example: "  felix node drain broker-2 --yes",
	}, "drain", (*apiclient.Client).DrainNode)
}

func (a *App) nodeDeregisterCommand() *cobra.Command {
	return a.nodeChange(&cobra.Command{
		Use:   "deregister NODE",
		Short: "Say that a broker has left",
		Long: `Say that a broker has left for good. A broker that is still there notices, and
registers again. It asks first, or takes --yes.`,
		Example: "  felix node deregister broker-2 --yes",
	}, "deregister", (*apiclient.Client).DeregisterNode)
}

// nodeChange makes cmd a command that changes the lifecycle of a broker.
func (a *App) nodeChange(cmd *cobra.Command, verb string, change func(*apiclient.Client, context.Context, string) (model.Node, error)) *cobra.Command {
	var yes bool
	a.controlVerb(cmd, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := a.confirm(ctx, yes, verb+" "+args[0]); err != nil {
			return err
		}
		n, err := change(c.Client, ctx, args[0])
		if err != nil {
			return err
		}
		return a.done(n, "%s is %s", n.NodeID, n.Status.Lifecycle)
	})
	addYes(cmd, &yes)
	return cmd
}

func (a *App) nodeRemoveCommand() *cobra.Command {
	var yes bool
	cmd := a.controlVerb(&cobra.Command{
		Use:   "rm NODE",
		Short: "Forget a broker",
		Long: `Forget a broker that is down or has left and has no shard any more. A shard
whose only copy it has is then placed elsewhere, empty. It asks first, or takes
--yes.`,
		Example: "  felix node rm broker-2 --yes",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := a.confirm(ctx, yes, "forget node "+args[0]); err != nil {
			return err
		}
		if err := c.DeleteNode(ctx, args[0]); err != nil {
			return err
		}
		return a.done(removed{args[0]}, "forgot %s", args[0])
	})
	addYes(cmd, &yes)
	return cmd
}

// shardText names a shard: orders/0, or orders/0 (cache).
func shardText(k model.ShardKey) string {
	text := fmt.Sprintf("%s/%d", k.Stream, k.Shard)
	if k.Kind == model.CacheShard {
		text += " (cache)"
	}
	return text
}
