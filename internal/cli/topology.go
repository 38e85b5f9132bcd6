package cli

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

// topologyView is what "felix topology --json" prints.
type topologyView struct {
	Name    string           `json:"name"`
	Shards  []topologyShard  `json:"shards"`
	Brokers []topologyBroker `json:"brokers"`
}

type topologyShard struct {
	Shard       uint32 `json:"shard"`
	Leader      string `json:"leader,omitempty"`
	Addr        string `json:"addr,omitempty"`
	Generation  uint64 `json:"generation"`
	Unavailable string `json:"unavailable,omitempty"`
}

type topologyBroker struct {
	NodeID string `json:"node_id"`
	Addr   string `json:"addr"`
}

func (a *App) topologyCommand() *cobra.Command {
	var ofCache bool
	cmd := &cobra.Command{
		Use:     "topology NAME",
		GroupID: groupControl,
		Short:   "Ask a broker who serves the shards of a stream",
		Long: `Ask a broker who serves the shards of a stream, or with --cache of a cache, and
which brokers there are. It is what clients go by. A broker that stands alone
serves all shards and names nobody.`,
		Example:           "  felix topology orders\n  felix topology users --cache",
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			view, err := readTopology(cmd.Context(), c, args[0], ofCache)
			if err != nil {
				return err
			}
			return a.tellTopology(view)
		},
	}
	cmd.Flags().BoolVar(&ofCache, "cache", false, "NAME is a cache")
	return cmd
}

func readTopology(ctx context.Context, c *client.Client, name string, ofCache bool) (*topologyView, error) {
	kind := client.KindStream
	if ofCache {
		kind = client.KindCache
	}
	owners, err := c.ShardOwners(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	brokers, err := c.Topology(ctx)
	if err != nil && !errors.Is(err, client.ErrUnsupported) {
		return nil, err
	}
	view := &topologyView{Name: name, Shards: []topologyShard{}, Brokers: []topologyBroker{}}
	for _, o := range owners {
		view.Shards = append(view.Shards, topologyShard{Shard: o.Shard, Leader: o.NodeID, Addr: o.Addr, Generation: o.Generation, Unavailable: o.Unavailable})
	}
	for _, b := range brokers {
		view.Brokers = append(view.Brokers, topologyBroker{b.NodeID, b.Addr})
	}
	return view, nil
}

func (a *App) tellTopology(view *topologyView) error {
	if a.flags.json {
		return printJSON(a.Stdout, view)
	}
	err := tell(a, []string{"SHARD", "LEADER", "ADDRESS", "GENERATION", "STATE"}, view.Shards, func(s topologyShard) []string {
		state := "served"
		if s.Unavailable != "" {
			state = "not served: " + s.Unavailable
		}
		return []string{strconv.FormatUint(uint64(s.Shard), 10), orDefault(s.Leader, "this broker"), orDefault(s.Addr, "-"), strconv.FormatUint(s.Generation, 10), state}
	})
	if err != nil || len(view.Brokers) == 0 {
		return err
	}
	if _, err := a.Stdout.Write([]byte{'\n'}); err != nil {
		return err
	}
	return tell(a, []string{"BROKER", "ADDRESS"}, view.Brokers, func(b topologyBroker) []string { return []string{b.NodeID, b.Addr} })
}
