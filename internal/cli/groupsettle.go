package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

func (a *App) groupAckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ack STREAM GROUP CLAIM...",
		Short: "Finish records",
		Long: `Finish the records of these claims: nobody is handed them again. A claim is
SHARD:OFFSET or SHARD:OFFSET:ATTEMPTS; an acknowledgement is for the record,
so anybody may give it, and for one that was finished before it does nothing.

It is answered when the position of the group is on disk. Where some claims are
refused the others are finished all the same, and the exit code is 4.`,
		Example: `  felix group ack orders billing 0:17:1
  felix group poll orders billing | cut -f1 | xargs -r felix group ack orders billing`,
		Args:              positional(3, manyArguments),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settle(cmd, args, "acked", func(ctx context.Context, g *client.Group, claims []client.Claim) []error {
				return perClaim(claims, g.Ack(ctx, claims...))
			})
		},
	}
}

func (a *App) groupNackCommand() *cobra.Command {
	var delayMS uint64
	cmd := &cobra.Command{
		Use:   "nack STREAM GROUP CLAIM...",
		Short: "Hand records back",
		Long: `Hand back the records of these claims, to be handed out again at once or after
--delay-ms. The attempt counts.

A claim with its ATTEMPTS names one delivery: where that is over, since the
claim ended and somebody else has the record now, it is refused and changes
nothing (exit code 4). SHARD:OFFSET alone hands the record back whoever holds
it.`,
		Example: `  felix group nack orders billing 0:17:1
  felix group nack orders billing 0:17:1 0:18:1 --delay-ms 60000`,
		Args:              positional(3, manyArguments),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if delayMS > maxMilliseconds {
				return usageError("--delay-ms %d: want 0 to %d", delayMS, maxMilliseconds)
			}
			delay := time.Duration(delayMS) * time.Millisecond
			return a.settle(cmd, args, "handed back", each(func(ctx context.Context, g *client.Group, c client.Claim) error {
				return g.Nack(ctx, c, delay)
			}))
		},
	}
	cmd.Flags().Uint64Var(&delayMS, "delay-ms", 0, "hand them out again `N` milliseconds from now (default at once)")
	return cmd
}

func (a *App) groupExtendCommand() *cobra.Command {
	var forMS uint64
	cmd := &cobra.Command{
		Use:   "extend STREAM GROUP CLAIM",
		Short: "Let a claim stand for longer",
		Long: `Let the claim stand for --for-ms from now on, in place of what was left of it,
and print for how long it was granted: a broker has a limit. The claim must
carry its ATTEMPTS, since a delivery that is over cannot be prolonged (exit
code 4).`,
		Example: `  felix group extend orders billing 0:17:1 --for-ms 60000
  felix group extend orders billing 0:17:1 --for-ms 60000 --json | jq .visible_ms`,
		Args:              positional(3, 3),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			claim, err := parseClaim(args[2])
			if err != nil {
				return err
			}
			if claim.Attempts == 0 {
				return usageError("claim %q: to extend it, it must name its delivery: SHARD:OFFSET:ATTEMPTS", args[2])
			}
			if !cmd.Flags().Changed("for-ms") {
				return usageError("%s needs --for-ms N", cmd.CommandPath())
			}
			extend, err := milliseconds("--for-ms", forMS)
			if err != nil {
				return err
			}
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			granted, err := c.Group(args[0], args[1]).Extend(cmd.Context(), claim, extend)
			if err != nil {
				return &claimError{claim, err}
			}
			if a.flags.json {
				return printJSON(a.Stdout, struct {
					Claim     string `json:"claim"`
					VisibleMS int64  `json:"visible_ms"`
				}{formatClaim(claim), granted.Milliseconds()})
			}
			if !a.flags.quiet {
				fmt.Fprintf(a.Stdout, "%s stands for %s\n", formatClaim(claim), elapsed(granted))
			}
			return nil
		},
	}
	cmd.Flags().Uint64Var(&forMS, "for-ms", 0, "let it stand for `N` milliseconds from now on (required)")
	return cmd
}

// each makes a call for one claim into one for many.
func each(call func(context.Context, *client.Group, client.Claim) error) func(context.Context, *client.Group, []client.Claim) []error {
	return func(ctx context.Context, g *client.Group, claims []client.Claim) []error {
		outcomes := make([]error, 0, len(claims))
		for _, claim := range claims {
			err := call(ctx, g, claim)
			outcomes = append(outcomes, err)
			if err != nil && ctx.Err() != nil {
				break
			}
		}
		return outcomes
	}
}

// perClaim finds the outcome of each claim in the error of a call for all.
func perClaim(claims []client.Claim, err error) []error {
	outcomes := make([]error, len(claims))
	if err == nil {
		return outcomes
	}
	failed := make(map[client.Claim]error)
	for _, one := range claimErrors(err) {
		failed[one.Claim] = one.Err
	}
	for i, claim := range claims {
		if len(failed) == 0 {
			outcomes[i] = err // of the call as a whole
		} else {
			outcomes[i] = failed[claim]
		}
	}
	return outcomes
}

// claimErrors are the errors joined in err that name their claim.
func claimErrors(err error) []*client.ClaimError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*client.ClaimError
		for _, part := range joined.Unwrap() {
			all = append(all, claimErrors(part)...)
		}
		return all
	}
	if one, ok := errors.AsType[*client.ClaimError](err); ok {
		return []*client.ClaimError{one}
	}
	return nil
}

// settle reads the claims of a command line, has them done, and says what
// became of each. A claim that does not parse stops it before anything is
// done.
func (a *App) settle(cmd *cobra.Command, args []string, done string, call func(context.Context, *client.Group, []client.Claim) []error) error {
	claims, err := parseClaims(args[2:])
	if err != nil {
		return err
	}
	c, err := a.connect(cmd.Context(), cmd)
	if err != nil {
		return err
	}
	defer c.Close()
	return a.tellOutcomes(claims, call(cmd.Context(), c.Group(args[0], args[1]), claims), done)
}
