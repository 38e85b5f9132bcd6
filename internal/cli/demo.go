package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"github.com/felixlog/felix/examples"
	"github.com/felixlog/felix/internal/demo"
	"github.com/felixlog/felix/internal/dev"
)

const (
	// demoTime is how long a demo may take in all.
	demoTime = 60 * time.Second
	// demoSpeed is the pace of the show on a terminal: about six seconds.
	demoSpeed = 280
	// slowestDemo still ends within demoTime.
	slowestDemo = 80
)

func (a *App) demoCommand() *cobra.Command {
	var speed uint32
	var fast bool
	cmd := &cobra.Command{
		Use:     "demo",
		GroupID: groupStart,
		Short:   "Watch a week of earthquakes go through one log",
		Long: fmt.Sprintf(`Start a private broker on free ports, play a week of real earthquakes through
one log, and read it in three ways at once: as a stream, which must show all
%s in order; as a cache of the latest quake of each network, which must be
right at the end; and as a queue, whose workers must finish every record and
do something about the strong quakes.

Things go wrong on the way. One of the two workers, a process like the broker,
is killed with claims in its hands: the other one must get them all. In the
middle of the feed the broker is killed, as kill -9 does, and started again on
what it left on disk; nobody may notice more than a pause. And the workers
fail on one quake, until it is given up to the dead letters; then it is put
back in play and finished.

Then read the log once more from its beginning, print what each reading saw
and how fast, and exit: with 0 only if every count is right.

It needs no set-up, leaves no files behind, and ends by itself within a minute.

On a terminal it is paced so that you can watch; --fast goes as fast as it
can, which it also does when its output is not a terminal.`, count(examples.QuakeCount)),
		Example: `  felix demo
  felix demo --fast
  felix demo --json | jq .strong_worked`,
		Args: positional(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			paced := cmd.Flags().Changed("speed")
			switch {
			case paced && fast:
				return usageError("--speed and --fast contradict each other")
			case paced && speed < slowestDemo:
				return usageError("--speed %d: want at least %d, so that the demo ends within %s", speed, slowestDemo, demoTime)
			case fast, !paced && (!a.StdoutTTY || a.flags.json):
				speed = 0
			case !paced:
				speed = demoSpeed
			}
			return a.runDemo(cmd.Context(), float64(speed))
		},
	}
	cmd.Flags().Uint32Var(&speed, "speed", demoSpeed, fmt.Sprintf("play `N` quakes a second, %d at least", slowestDemo))
	cmd.Flags().BoolVar(&fast, "fast", false, "play as fast as the broker takes them")
	cmd.AddCommand(a.demoWorkerCommand())
	return cmd
}

// demoWorkerCommand is what the demo starts its workers with.
func (a *App) demoWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "worker",
		Hidden: true,
		Short:  "Be a worker of the demo",
		Long: `Be one of the two workers of "felix demo", which starts them: told on standard
input what to do, it tells on standard output what it did. It ends when its
input does.`,
		Example: `  # the demo does this; it is of no use by itself
  felix demo worker`,
		Args: positional(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return demo.Work(cmd.Context(), a.Stdin, a.Stdout) },
	}
}

// runDemo starts the private broker, plays the demo and tells the result.
func (a *App) runDemo(ctx context.Context, speed float64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, demoTime, fmt.Errorf("the demo did not end within %s", demoTime))
	defer cancel()
	dir, err := os.MkdirTemp("", "felix-demo-*")
	if err != nil {
		return fmt.Errorf("make a directory for the private broker: %w", err)
	}
	defer os.RemoveAll(dir)
	broker, err := dev.Spawn(ctx, a.privateFelix, dir)
	if err != nil {
		return fmt.Errorf("private broker: %w", err)
	}
	defer broker.Stop()
	out := a.styled()
	if !a.flags.json {
		fmt.Fprintf(out, "Felix demo: %s earthquakes through one log, on a private broker at %s\n\n", count(examples.QuakeCount), broker.Addr())
	}
	worker := func() *exec.Cmd { return a.privateFelix("demo", "worker") }
	show := demo.New(slices.Collect(examples.QuakeLines()), speed, worker)
	stop := func() {}
	if out.Profile != colorprofile.NoTTY && !a.flags.json {
		stop = a.showDemo(out, show)
	}
	report, err := show.Run(ctx, broker)
	stop()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return a.tellDemo(out, report)
}

// privateFelix is the command that runs this program with other arguments and
// without the user's settings.
func (a *App) privateFelix(args ...string) *exec.Cmd {
	cmd := exec.Command(a.Self, args...)
	cmd.Env = slices.DeleteFunc(slices.Clone(a.Environ()), func(entry string) bool { return strings.HasPrefix(entry, "FELIX_") })
	return cmd
}

// styled is Stdout for text with colours: they stay where a person sees them
// and NO_COLOR is not set, and are taken out elsewhere. Where it is not a
// terminal that can move its cursor, its profile is NoTTY.
func (a *App) styled() *colorprofile.Writer {
	out := &colorprofile.Writer{Forward: a.Stdout, Profile: colorprofile.NoTTY}
	if a.StdoutTTY {
		out.Profile = colorprofile.Env(a.Environ())
	}
	return out
}

// tellDemo prints the result: exit 0 only if it is all right.
func (a *App) tellDemo(out io.Writer, r *demo.Report) error {
	if a.flags.json {
		if err := printJSON(a.Stdout, r); err != nil {
			return err
		}
	} else if err := printTable(out, []string{"READING", "SAW", "HOW FAST", "RESULT"}, demoRows(r)); err != nil {
		return err
	}
	if !r.OK {
		return fmt.Errorf("the readings did not see what was published")
	}
	return nil
}

// demoRows are the readings of the log, a row each.
func demoRows(r *demo.Report) [][]string {
	order := "in order"
	if !r.InOrder {
		order = "not all in order"
	}
	speed := fmt.Sprintf("%s, %s median to arrive", rate(r.ReceiveRate, "record"), us(r.DeliveryMedianUS))
	if r.Paced {
		speed = us(r.DeliveryMedianUS) + " median to arrive"
	}
	latest := "each the latest"
	if !r.CacheCorrect {
		latest = "not all the latest"
	}
	return [][]string{
		{"stream", fmt.Sprintf("%s of %s records, %s", count(uint64(r.Received)), count(uint64(r.Total())), order), speed, verdict(r.StreamOK())},
		{
			"cache", fmt.Sprintf("%d of %d networks, %s", r.CacheNetworks, r.CacheExpected, latest),
			fmt.Sprintf("put %s, get %s median", us(r.CachePutMedianUS), us(r.CacheGetMedianUS)), verdict(r.CacheOK()),
		},
		{
			"queue", fmt.Sprintf("%d of %d strong quakes worked, %s of %s finished", r.StrongWorked, r.Strong, count(uint64(r.QueueFinished)), count(uint64(r.Total()))),
			fmt.Sprintf("%s claims, %s redelivered, %s median to arrive", count(uint64(r.QueueClaims)), count(uint64(r.QueueRedeliveries)), us(r.QueueClaimMedianUS)),
			verdict(r.QueueOK()),
		},
		{
			"worker", fmt.Sprintf("killed with %d claims in its hands, %d came back", r.ClaimsHeld, r.ClaimsBack),
			us(1e3*r.ClaimsBackMS) + " until the last was back", verdict(r.WorkersOK()),
		},
		{"poison", poisonStory(r), fmt.Sprintf("%d of %d attempts", r.PoisonAttempts, r.MaxAttempts), verdict(r.PoisonOK())},
		{
			"log", fmt.Sprintf("killed after %s records, %s of %s read again", count(uint64(r.KilledAfter)), count(uint64(r.Replayed)), count(uint64(r.Total()))),
			us(1e3*r.RecoveryMS) + " until it went on", verdict(r.LogOK()),
		},
	}
}

// poisonStory is what became of the record on which the workers failed.
func poisonStory(r *demo.Report) string {
	story := fmt.Sprintf("%d dead letters", r.DeadLetters)
	if r.DeadLetters == 1 {
		story = "1 dead letter"
	}
	if r.Redriven {
		story += ", redriven"
	}
	if r.RedrivenWorked {
		story += ", worked"
	}
	return story + fmt.Sprintf("; %d left", r.DeadLettersLeft)
}

// us writes a time given in microseconds.
func us(microseconds float64) string {
	return elapsed(time.Duration(microseconds * float64(time.Microsecond)))
}

// verdict says whether a count is right.
func verdict(ok bool) string {
	if ok {
		return lipgloss.NewStyle().Foreground(lipgloss.Green).Render("ok")
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true).Render("WRONG")
}
