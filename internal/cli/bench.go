package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/bench"
)

func (a *App) benchCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "bench",
		GroupID: groupMeasure,
		Short:   "Measure a running broker",
		Long: `Measure a running broker with made-up messages. The streams and caches named
must exist, or be allowed to appear on first use.

How the figures are meant: every run warms up before it measures. A rate spans
from the first send to the last answer or arrival and counts all workers
together. Refused and lost messages are counted and shown. The loops are
closed (a worker waits for answers before it sends more), so latencies during
a pause of the broker are under-reported.`,
		Example: `  felix bench ingest load --total 1000000 --payload-bytes 1024
  felix bench latency load
  felix bench fanout load --fanout 10
  felix bench cache scratch --concurrency 32 --json
  felix bench queue load --batch 10 --concurrency 8`,
	}, a.benchIngestCommand(), a.benchLatencyCommand(), a.benchFanoutCommand(), a.benchCacheCommand(), a.benchQueueCommand())
}

// benchFlags are what most benchmarks share.
type benchFlags struct {
	total, warmup uint64
	payload       int
}

func (f *benchFlags) add(cmd *cobra.Command, noun string, total, warmup uint64) {
	flags := cmd.Flags()
	flags.Uint64Var(&f.total, "total", total, "measure `N` "+noun)
	flags.Uint64Var(&f.warmup, "warmup", warmup, "`N` "+noun+" before the measurement")
	flags.IntVar(&f.payload, "payload-bytes", 256, "`SIZE` of a "+noun[:len(noun)-1])
}

// benchError gives a bad parameter the exit code of wrong usage.
func benchError(err error) error {
	if errors.Is(err, bench.ErrParameter) {
		return &Error{Exit: ExitUsage, Err: err}
	}
	return err
}

// dialer opens clients by the settings of this command line.
func (a *App) dialer(cmd *cobra.Command) (bench.Dialer, error) {
	by, err := a.resolve(cmd.Flags())
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*client.Client, error) { return a.dial(ctx, &by) }, nil
}

func (a *App) benchIngestCommand() *cobra.Command {
	var f benchFlags
	var b bench.Ingest
	var seconds uint64
	cmd := &cobra.Command{
		Use:   "ingest STREAM",
		Short: "Measure acknowledged publishing",
		Long: `Publish to STREAM with --concurrency publishers that share one client, each
with up to --in-flight batches of --batch messages unanswered, and print the
rate of acknowledged messages and the latency of a batch.`,
		Example: `  felix bench ingest load
  felix bench ingest load --payload-bytes 1024 --batch 64 --in-flight 8 --duration-secs 10
  felix bench ingest load --keys 1000 --json`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			b.Stream, b.Total, b.Warmup, b.PayloadBytes = args[0], f.total, f.warmup, f.payload
			b.Duration = time.Duration(min(seconds, uint64(maxBenchTime/time.Second))) * time.Second
			total := b.Total
			if seconds > 0 && !cmd.Flags().Changed("total") {
				b.Total, total = bench.Endless, 0
			}
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			bar := a.startProgress("ingest", total, "message")
			defer bar.finish()
			r, err := b.Run(cmd.Context(), c, bar.add)
			bar.finish()
			if err != nil {
				return benchError(err)
			}
			if a.flags.json {
				return printJSON(a.Stdout, r)
			}
			fmt.Fprintf(a.Stdout, "published   %s (%s) in %s\n", plural(r.Messages, "message"), size(r.Bytes), inSeconds(r.Seconds))
			fmt.Fprintf(a.Stdout, "rate        %s, %s/s\n", rate(r.Rate, "message"), size(uint64(r.BytesPerSecond)))
			fmt.Fprintf(a.Stdout, "refused     %s\n", count(r.Refused))
			return a.printLatencies([]string{"batch"}, []bench.Quantiles{r.BatchLatencyUS})
		},
	}
	f.add(cmd, "messages", 1_000_000, 50_000)
	flags := cmd.Flags()
	flags.IntVar(&b.Concurrency, "concurrency", 4, "`N` publishers")
	flags.IntVar(&b.Batch, "batch", 64, "`N` messages a batch")
	flags.IntVar(&b.InFlight, "in-flight", 4, "`N` batches a publisher has unanswered at most")
	flags.IntVar(&b.Keys, "keys", 0, "`N` distinct routing keys, taken in turn (default none)")
	flags.Uint64Var(&seconds, "duration-secs", 0, "measure for `N` seconds, and no further than --total if that is given")
	return cmd
}

// maxBenchTime is the longest --duration-secs.
const maxBenchTime = 24 * time.Hour

func (a *App) benchLatencyCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "latency STREAM",
		Short: "Measure one message at a time, to its acknowledgement and to a subscriber",
		Long: `Publish to STREAM one message at a time, and print how long each took to be
acknowledged and to arrive at a subscriber on a connection of its own. The
next message is sent when the one before has arrived.`,
		Example: `  felix bench latency load
  felix bench latency load --total 20000 --payload-bytes 1024 --json`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			dial, err := a.dialer(cmd)
			if err != nil {
				return err
			}
			bar := a.startProgress("latency", f.total, "message")
			defer bar.finish()
			b := bench.Latency{Stream: args[0], Total: f.total, Warmup: f.warmup, PayloadBytes: f.payload}
			r, err := b.Run(cmd.Context(), dial, bar.add)
			bar.finish()
			if err != nil {
				return benchError(err)
			}
			if a.flags.json {
				return printJSON(a.Stdout, r)
			}
			fmt.Fprintf(a.Stdout, "published   %s in %s, %s\n", plural(r.Messages, "message"), inSeconds(r.Seconds), rate(r.Rate, "message"))
			fmt.Fprintf(a.Stdout, "lost        %s\n", count(r.Lost))
			return a.printLatencies([]string{"ack", "delivery"}, []bench.Quantiles{r.AckUS, r.DeliveryUS})
		},
	}
	f.add(cmd, "messages", 5_000, 500)
	return cmd
}

func (a *App) benchFanoutCommand() *cobra.Command {
	var f benchFlags
	var b bench.Fanout
	cmd := &cobra.Command{
		Use:   "fanout STREAM",
		Short: "Measure delivery of one stream to many subscribers",
		Long: `Publish to STREAM while --fanout subscribers read it, and print how fast the
messages arrived over all of them, from the first send to the last arrival.

A subscriber that cannot keep up loses messages, unless the broker is set to
hold publishers back; what was lost is counted. --window holds the publisher
back here instead, so that nothing need be lost.`,
		Example: `  felix bench fanout load
  felix bench fanout load --fanout 100 --connections 8
  felix bench fanout load --total 1000000 --window 10000 --json`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			dial, err := a.dialer(cmd)
			if err != nil {
				return err
			}
			b.Stream, b.Total, b.Warmup, b.PayloadBytes = args[0], f.total, f.warmup, f.payload
			bar := a.startProgress("fanout", b.Total*uint64(max(b.Fanout, 0)), "message")
			defer bar.finish()
			r, err := b.Run(cmd.Context(), dial, bar.add)
			bar.finish()
			if err != nil {
				return benchError(err)
			}
			if a.flags.json {
				return printJSON(a.Stdout, r)
			}
			fmt.Fprintf(a.Stdout, "published   %s, %s\n", plural(r.Published, "message"), rate(r.PublishRate, "message"))
			fmt.Fprintf(a.Stdout, "delivered   %s to %s in %s\n", plural(r.Delivered, "message"), plural(uint64(r.Subscribers), "subscriber"), inSeconds(r.Seconds))
			fmt.Fprintf(a.Stdout, "rate        %s, %s/s\n", rate(r.DeliveredRate, "message"), size(uint64(r.BytesPerSecond)))
			fmt.Fprintf(a.Stdout, "lost        %s, %s out of order, %s refused\n", count(r.Lost), count(r.OutOfOrder), count(r.Refused))
			return a.printLatencies([]string{"delivery"}, []bench.Quantiles{r.DeliveryLatencyUS})
		},
	}
	f.add(cmd, "messages", 200_000, 10_000)
	flags := cmd.Flags()
	flags.IntVar(&b.Fanout, "fanout", 10, "`N` subscribers")
	flags.IntVar(&b.Batch, "batch", 64, "`N` messages a batch")
	flags.IntVar(&b.InFlight, "in-flight", 4, "`N` batches unanswered at most")
	flags.IntVar(&b.Connections, "connections", 4, "spread the subscribers over `N` connections")
	flags.Uint64Var(&b.Window, "window", 0, "let the slowest subscriber fall `N` messages behind at most (default no bound)")
	return cmd
}

func (a *App) benchCacheCommand() *cobra.Command {
	var f benchFlags
	var concurrency int
	cmd := &cobra.Command{
		Use:   "cache CACHE",
		Short: "Measure puts and gets of a cache",
		Long: `Put, then get, over 1,024 keys of CACHE with --concurrency workers that share
one client and have one request each under way. The keys are removed at the
end.`,
		Example: `  felix bench cache scratch
  felix bench cache scratch --concurrency 32 --total 100000 --json`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.connect(cmd.Context(), cmd)
			if err != nil {
				return err
			}
			defer c.Close()
			bar := a.startProgress("cache", 2*f.total, "request")
			defer bar.finish()
			b := bench.Cache{Cache: args[0], Total: f.total, Warmup: f.warmup, PayloadBytes: f.payload, Concurrency: concurrency}
			r, err := b.Run(cmd.Context(), c, bar.add)
			bar.finish()
			if err != nil {
				return benchError(err)
			}
			if a.flags.json {
				return printJSON(a.Stdout, r)
			}
			for _, row := range []struct {
				name  string
				phase *bench.CachePhase
			}{{"put", &r.Put}, {"get", &r.Get}} {
				p := row.phase
				fmt.Fprintf(a.Stdout, "%s         %s in %s, %s, %s/s; %s missing, %s refused\n", row.name,
					plural(p.Requests, "request"), inSeconds(p.Seconds), rate(p.Rate, "request"), size(uint64(p.BytesPerSecond)),
					count(p.Missing), count(p.Refused))
			}
			return a.printLatencies([]string{"put", "get"}, []bench.Quantiles{r.Put.LatencyUS, r.Get.LatencyUS})
		},
	}
	f.add(cmd, "requests", 50_000, 5_000)
	cmd.Flags().IntVar(&concurrency, "concurrency", 8, "`N` workers")
	return cmd
}

// inSeconds writes a number of seconds.
func inSeconds(s float64) string { return elapsed(time.Duration(s * float64(time.Second))) }

// printLatencies prints one line of quantiles for each name.
func (a *App) printLatencies(names []string, all []bench.Quantiles) error {
	var rows [][]string
	for i, q := range all {
		row := []string{names[i]}
		for _, us := range []float64{q.P50, q.P90, q.P99, q.P999, q.Max} {
			row = append(row, elapsed(time.Duration(us*float64(time.Microsecond))))
		}
		rows = append(rows, row)
	}
	fmt.Fprintln(a.Stdout)
	return printTable(a.Stdout, []string{"LATENCY", "P50", "P90", "P99", "P99.9", "MAX"}, rows)
}
