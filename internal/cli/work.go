package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/client"
)

type workFlags struct {
	shard       uint32
	concurrency int
	batch       int
	visibility  time.Duration
	as          string
	from        string
	count       uint64
	untilEmpty  bool
	nackDelay   time.Duration
	deadStatus  uint8
	drain       time.Duration
}

func (a *App) workCommand() *cobra.Command {
	f := workFlags{}
	cmd := &cobra.Command{
		Use:     "work STREAM GROUP -- COMMAND [ARG...]",
		GroupID: groupData,
		Short:   "Run a command for each record of a group",
		Long: `Work on GROUP: take its records and run COMMAND once for each, with the payload
on its standard input. Exit status 0 finishes the record. With any other the
record is handed back and handed out again, to this worker or another, after a
delay that doubles from one second with each attempt, or after --nack-delay.
When the attempts are used up it goes to the dead letters of the group; with
the status of --dead-letter-status it does at once.

What the command finds in its environment:

  FELIX_STREAM     the stream
  FELIX_GROUP      the group
  FELIX_SHARD      the shard of the record
  FELIX_OFFSET     its offset there; the two name the record for good
  FELIX_ATTEMPTS   how often it was handed out, this time included
  FELIX_TIMESTAMP  when it was published, in UTC: 2026-01-31T12:00:00.000000Z

A record is handed out at least once, and may come again when a worker or a
broker fails, so the command should bear to run twice for one record. While it
runs the claim is extended, however long that takes. When the claim is lost
all the same, as the broker could not be reached in time or the group was
moved, the command is killed, for the record is somebody else's.

The command's output is passed through. With --json each record is an object on
a line of standard output when its fate is settled, with "result" (acked,
handed_back, dead_lettered or lost) and "status". Objects of the kinds "trouble"
and "recovered" say that a shard cannot be polled, and can again; the last one,
of kind "summary", has the numbers. The command's output then goes to standard
error.

SIGTERM and Ctrl-C end the worker gracefully: it takes no more records, waits
for the commands that run, and hands the rest back. A second signal kills the
commands and hands their records back too. Commands run in process groups of
their own, so that Ctrl-C at a terminal does not reach them; on Linux they are
killed when the worker is.

--as names the worker, for "felix group describe", and so that a worker that
starts again takes its records over at once instead of waiting until their
claims end. Two workers must not use one name at the same time. The default
is the name of the host and the number of the process.

The exit code is 0 when the worker ended as it was told: by a signal, --count
or --until-empty; what the commands exited with does not matter. It is 1 when
commands had to be killed or could not be started, and that of the refusal when
the broker refuses.`,
		Example: `  # a worker, four records at a time
  felix work orders billing --concurrency 4 -- ./bill.sh

  # a new group begins with the oldest record; or wherever it is told to
  felix work orders audit --from latest -- sh -c 'cat >> audit.log'

  # everything there is, once; status 3 gives a record up
  felix work orders billing --until-empty --dead-letter-status 3 -- ./bill.sh`,
		Args:              workArguments,
		ValidArgsFunction: completeWork,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return a.work(cmd, &f, args)
		},
	}
	flags := cmd.Flags()
	addShard(cmd, &f.shard)
	flags.IntVar(&f.concurrency, "concurrency", 1, "run up to `N` commands at once")
	flags.IntVar(&f.batch, "batch", 0, "take up to `N` records at once (default 128, or less where the work is slow)")
	flags.DurationVar(&f.visibility, "visibility", 0, "`DURATION` of a claim, after which others get the records of a dead worker (default 30s)")
	flags.StringVar(&f.as, "as", "", "`NAME` of this worker (default the host's, a dash and the process id)")
	flags.StringVar(&f.from, "from", "", "where the group begins if it is new: latest, earliest or an `OFFSET` (default earliest)")
	flags.Uint64Var(&f.count, "count", 0, "end after `N` records (default never)")
	flags.BoolVar(&f.untilEmpty, "until-empty", false, "end when there is nothing to hand out")
	flags.DurationVar(&f.nackDelay, "nack-delay", 0, "`DURATION` until a failed record is handed out again (default 1s, twice as long with each attempt)")
	flags.Uint8Var(&f.deadStatus, "dead-letter-status", 0, "exit status `N` gives the record up at once (default none does)")
	flags.DurationVar(&f.drain, "drain", 0, "`DURATION` that running commands have after a signal (default until they end)")
	mustComplete(cmd, "from", "latest", "earliest")
	return cmd
}

// workArguments checks that stream and group stand before a -- and a command
// behind it.
func workArguments(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	hint := "usage: " + usageLine(cmd)
	switch {
	case dash < 0 && len(args) > 2:
		return usageError("%s needs -- before its COMMAND", cmd.CommandPath()).hinting("%s", hint)
	case dash < 0:
		dash = len(args)
	}
	switch {
	case dash < 2:
		return usageError("%s needs %s", cmd.CommandPath(), [...]string{"STREAM and GROUP", "GROUP"}[dash]).hinting("%s", hint)
	case dash > 2:
		return usageError("%s does not take the argument %q", cmd.CommandPath(), args[2]).hinting("%s", hint)
	case len(args) == 2:
		return usageError("%s needs -- COMMAND", cmd.CommandPath()).hinting("%s", hint)
	}
	return nil
}

// completeWork completes the command to run as a file.
func completeWork(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) >= 2 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// The bounds of the client, and a delay of a record that is as long as any.
const (
	maxConcurrency = 4096
	minVisibility  = time.Second
	maxVisibility  = 12 * time.Hour
	endless        = time.Duration(1<<63 - 1)
)

// check judges the flags by themselves.
func (f *workFlags) check(cmd *cobra.Command) error {
	given := func(flag string) bool { return cmd.Flags().Changed(flag) }
	switch {
	case f.concurrency < 1 || f.concurrency > maxConcurrency:
		return usageError("--concurrency %d: want 1 to %d", f.concurrency, maxConcurrency)
	case given("batch") && (f.batch < 1 || f.batch > maxPollRecords):
		return usageError("--batch %d: want 1 to %d", f.batch, maxPollRecords)
	case given("visibility") && (f.visibility < minVisibility || f.visibility > maxVisibility):
		return usageError("--visibility %s: want %s to %s", f.visibility, minVisibility, maxVisibility)
	case given("as") && f.as == "":
		return usageError("--as: want a name")
	case given("count") && f.count == 0:
		return usageError("--count 0: want at least 1")
	case f.nackDelay < 0 || f.nackDelay > maxVisibility:
		return usageError("--nack-delay %s: want 0s to %s", f.nackDelay, maxVisibility)
	case given("dead-letter-status") && f.deadStatus == 0:
		return usageError("--dead-letter-status 0: want 1 to 255; status 0 finishes the record")
	case given("drain") && f.drain <= 0:
		return usageError("--drain %s: want more than 0s", f.drain)
	}
	return nil
}

// options turns the flags into those of the client.
func (f *workFlags) options(cmd *cobra.Command) ([]client.ConsumeOption, error) {
	options := []client.ConsumeOption{client.ConsumeConcurrency(f.concurrency), client.ConsumeDrain(endless)}
	name := f.as
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name this worker: %w", err)
		}
		name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	options = append(options, client.ConsumeAs(name))
	if cmd.Flags().Changed("shard") {
		options = append(options, client.ConsumeShard(f.shard))
	}
	batch := f.batch
	if f.count > 0 && (batch == 0 || f.count < uint64(batch)) {
		batch = int(min(f.count, maxPollRecords)) // what is taken in vain is an attempt lost
	}
	if batch > 0 {
		options = append(options, client.ConsumeBatch(batch))
	}
	if f.visibility > 0 {
		options = append(options, client.ConsumeVisibility(f.visibility))
	}
	if f.drain > 0 {
		options = append(options, client.ConsumeDrain(f.drain))
	}
	if f.untilEmpty {
		options = append(options, client.ConsumeUntilEmpty())
	}
	return options, nil
}

// work runs the command of a command line for each record.
func (a *App) work(cmd *cobra.Command, f *workFlags, args []string) error {
	options, err := f.options(cmd)
	if err != nil {
		return err
	}
	run, err := a.newRunner(args[0], args[1], args[2:])
	if err != nil {
		return err
	}
	start, err := parsePosition("--from", f.from)
	if f.from != "" && err != nil {
		return err
	}
	c, g, err := a.openGroup(cmd, args, f.shard, client.WithTimestamps())
	if err != nil {
		return err
	}
	defer c.Close()
	if f.from != "" {
		if err := g.oneShardFor("--from", f.from); err != nil {
			return err
		}
		if _, err := g.place(cmd.Context(), start, g.Create); err != nil {
			return err
		}
	}
	w, finish := newWorker(cmd.Context(), a, g, f, run)
	defer finish()
	return w.consume(cmd.Context(), c, options)
}

// newRunner finds the program to run, before any record is taken.
func (a *App) newRunner(stream, group string, command []string) (*runner, error) {
	path, err := exec.LookPath(command[0])
	if errors.Is(err, exec.ErrDot) {
		err = nil // the user said so
	}
	if err != nil {
		return nil, &Error{Exit: ExitUsage, Err: fmt.Errorf("find the command: %w", err)}
	}
	r := &runner{path: path, command: command, dir: a.Dir, environ: a.Environ(), stream: stream, group: group, stdout: a.Stdout, stderr: a.Stderr}
	if a.flags.json {
		r.stdout = a.Stderr
	}
	return r, nil
}

// consume runs the worker until it is told to end.
func (w *worker) consume(signalled context.Context, c *client.Client, options []client.ConsumeOption) error {
	abort, kill := context.WithCancel(context.WithoutCancel(signalled))
	defer kill()
	go func() {
		select {
		case <-w.app.Force:
			kill()
		case <-abort.Done():
		}
	}()
	defer context.AfterFunc(signalled, func() {
		if n := w.running(); n > 0 {
			w.app.remark("ending when %s %s done; a second signal kills", plural(n, "command"), isOrAre(n))
		}
	})()
	began := time.Now()
	err := c.Consume(w.ctx, w.group.Group, w.handle, append(options, client.WithConsumeHooks(w.hooks()), client.ConsumeAbort(abort))...)
	w.summary(time.Since(began))
	if drain, ok := errors.AsType[*client.DrainError](err); ok {
		return cutShort(drain)
	}
	if err != nil {
		return err
	}
	switch why := context.Cause(w.ctx); {
	case why == nil, errors.Is(why, errEnough), errors.Is(why, errInterrupted), signalled.Err() != nil:
		return nil // it ended as it was told
	default:
		return why
	}
}

// cutShort says what was not brought to its end.
func cutShort(e *client.DrainError) error {
	var parts []string
	add := func(n int, noun, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", plural(uint64(n), noun), what))
		}
	}
	add(e.Cut, "command", "killed before its end")
	add(e.Running, "command", "still running")
	add(e.Unsettled, "record", "of which the broker could not be told")
	text := strings.Join(parts, ", ")
	if e.Cause != nil {
		return &Error{Err: fmt.Errorf("%s: %w", text, e.Cause)}
	}
	return errors.New(text)
}
