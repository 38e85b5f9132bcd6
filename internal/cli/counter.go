package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func (a *App) counterCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "counter",
		GroupID: groupData,
		Short:   "Add to and read counters",
		Long: `Add to and read the counters of a cache: sums of 64 bits with a sign, kept
beside its keys and apart from them. They need a broker with storage.`,
		Example: `  felix counter add stats visits 1
  felix counter get stats visits`,
	}, a.counterAddCommand(), a.counterGetCommand())
}

// counterJSON is a counter as --json prints it.
type counterJSON struct {
	Cache string `json:"cache"`
	Key   string `json:"key"`
	Value int64  `json:"value"`
}

func (a *App) counterAddCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add CACHE KEY DELTA",
		Short: "Add to a counter and print the sum",
		Long: `Add DELTA, which may be negative, to the counter KEY and print the sum. A
counter that was never written is 0. A sum that 64 bits cannot hold is refused
and changes nothing.

The request is sent exactly once. When the connection is lost before the
answer, the error says that the outcome is unknown: adding again may count
twice.`,
		Example: `  felix counter add stats visits 1
  felix counter add stock apples -3
  felix counter add stats visits 10 --json | jq .value`,
		Args:              positional(3, 3),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			delta, err := strconv.ParseInt(args[2], 10, 64)
			if err != nil {
				return usageError("DELTA %q: want a whole number of 64 bits", args[2])
			}
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			sum, err := c.Cache(args[0]).CounterAdd(cmd.Context(), args[1], delta)
			if err != nil {
				return err
			}
			return a.tellCounter(counterJSON{Cache: args[0], Key: args[1], Value: sum})
		},
	}
}

func (a *App) counterGetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get CACHE KEY",
		Short: "Print a counter",
		Long:  `Print the counter KEY. One that was never written is exit code 5.`,
		Example: `  felix counter get stats visits
  felix counter get stats visits --json`,
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			value, ok, err := c.Cache(args[0]).CounterGet(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			if !ok {
				return &Error{Exit: ExitNotFound, Err: fmt.Errorf("counter %q of cache %q was never written", args[1], args[0])}
			}
			return a.tellCounter(counterJSON{Cache: args[0], Key: args[1], Value: value})
		},
	}
}

func (a *App) tellCounter(c counterJSON) error {
	if a.flags.json {
		return printJSON(a.Stdout, c)
	}
	_, err := fmt.Fprintln(a.Stdout, c.Value)
	return err
}

// negativeDelta lets "felix counter add stock apples -3" mean what it says:
// the negative number goes behind a "--", where it is no flag. Other command
// lines are left as they are.
func negativeDelta(args []string) []string {
	if !slices.Contains(args, "counter") || !slices.Contains(args, "add") || slices.Contains(args, "--") {
		return args
	}
	for i, arg := range args {
		digits, negative := strings.CutPrefix(arg, "-")
		if !negative || digits == "" || strings.Trim(digits, "0123456789") != "" || i > 0 && strings.HasPrefix(args[i-1], "-") {
			continue
		}
		return append(append(slices.Clone(args[:i]), args[i+1:]...), "--", arg)
	}
	return args
}
