package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/internal/bench"
)

func (a *App) benchQueueCommand() *cobra.Command {
	var f benchFlags
	b := bench.Queue{}
	cmd := &cobra.Command{
		Use:   "queue STREAM",
		Short: "Measure polls and acknowledgements of a group",
		Long: `Publish messages to STREAM, then have a group of its own work through them:
--concurrency workers poll --batch messages at a time and acknowledge each one,
going on to poll while up to --acks-in-flight acknowledgements are under way.
The group is deleted at the end; the messages stay in the stream.`,
		Example: `  felix bench queue load
  felix bench queue load --concurrency 8 --batch 10 --total 200000 --json`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			bar := a.startProgress("queue", f.total, "message")
			defer bar.finish()
			b.Stream, b.Total, b.Warmup, b.PayloadBytes = args[0], f.total, f.warmup, f.payload
			r, err := b.Run(cmd.Context(), c, bar.add)
			bar.finish()
			if err != nil {
				return benchError(err)
			}
			if a.flags.json {
				return printJSON(a.Stdout, r)
			}
			fmt.Fprintf(a.Stdout, "queue       %s in %s, %s, %s/s; %s redelivered, %s unfinished\n",
				plural(r.Messages, "message"), inSeconds(r.Seconds), rate(r.Rate, "message"), size(uint64(r.BytesPerSecond)),
				count(r.Redelivered), count(r.Unfinished))
			return a.printLatencies([]string{"poll", "ack"}, []bench.Quantiles{r.PollLatencyUS, r.AckLatencyUS})
		},
	}
	f.add(cmd, "messages", 50_000, 5_000)
	flags := cmd.Flags()
	flags.IntVar(&b.Concurrency, "concurrency", 1, "`N` workers")
	flags.IntVar(&b.Batch, "batch", 100, "`N` messages a poll")
	flags.IntVar(&b.AcksInFlight, "acks-in-flight", 8, "acknowledgements of `N` polls unanswered at most")
	return cmd
}
