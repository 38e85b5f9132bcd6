package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/recovery"
	"github.com/felixlog/felix/storage/segment"
)

func (a *App) inspectCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "inspect",
		GroupID: groupServe,
		Short:   "Look at what a broker keeps",
		Long: `Look at what a broker keeps. Nothing is changed: what these commands say about
the files of a broker is what starting it would find and do.`,
		Example: `  felix inspect segments /var/lib/felix
  felix inspect segments /var/lib/felix acme/default/orders/0 --segments`,
	}, a.inspectSegmentsCommand())
}

// An inspection is the flags of "felix inspect segments".
type inspection struct {
	kind     string
	segments bool
	repair   bool
	spacing  int
	all      bool
}

func (a *App) inspectSegmentsCommand() *cobra.Command {
	var in inspection
	cmd := &cobra.Command{
		Use:   "segments DIR [TENANT/NAMESPACE/NAME/SHARD]",
		Short: "Check the logs in a storage directory",
		Long: `Check every log in DIR, the directory of a broker's storage or of one shard,
and say what opening it would do. Nothing is written, so that it may run on a
copy, on a read-only mount, and beside a broker; of logs in use it tells how
they are at that moment, with what is just being written unfinished.

Each shard has one of these verdicts:

  clean   all of it is whole
  fresh   there is a directory and no log yet
  repair  a crash left something unfinished, and opening would remove it, or an
          index is wrong and would be rebuilt; nothing that was known to be
          durable is lost
  refuse  something that was durable is damaged or missing; opening would leave
          all of it as it is, and the file and the position are named

The segment that is appended to is read whole, the others from their last index
entry on; --verify-all-on-open reads all of them. The settings below must be
those of the broker for its start to find the same.

The exit code is 0 where every log is clean or fresh, 6 where opening would
repair one, 7 where it would refuse one. With --json each shard is one object
on a line of its own.`,
		Example: `  felix inspect segments /var/lib/felix
  felix inspect segments /var/lib/felix acme/default/orders/0 --segments
  felix inspect segments /var/lib/felix --kind cache --verify-all-on-open
  felix inspect segments /var/lib/felix --json | jq 'select(.verdict != "clean")'`,
		Args: positional(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.inspectSegments(args, in)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.kind, "kind", "", "only logs of `KIND`: "+strings.Join(logKinds(), ", ")+" (default all)")
	flags.BoolVar(&in.segments, "segments", false, "list the segments of each log too")
	flags.BoolVar(&in.repair, "repair-checksum-tail", false, "judge as with the setting that cuts a damaged batch at the very end")
	flags.IntVar(&in.spacing, "index-spacing", segment.DefaultIndexSpacing, "the least number of `BYTES` between index entries")
	flags.BoolVar(&in.all, "verify-all-on-open", false, "read every byte of every segment")
	return cmd
}

// logKinds lists what --kind takes.
func logKinds() []string {
	var kinds []string
	for _, space := range storage.Spaces() {
		kinds = append(kinds, space.Kind())
	}
	return kinds
}

// options turns arguments and flags into what storage takes.
func (in inspection) options(args []string) (storage.InspectOptions, error) {
	o := storage.InspectOptions{Options: recovery.Options{
		VerifyAll: in.all, RepairChecksumTail: in.repair, IndexSpacing: in.spacing,
	}}
	if in.spacing <= 0 {
		return o, usageError("--index-spacing %d: want 1 or more", in.spacing)
	}
	if len(args) > 1 {
		key, err := storage.ParseKey(args[1])
		if err != nil {
			return o, usageError("%w", err)
		}
		o.Shard = &key
	}
	if in.kind == "" {
		return o, nil
	}
	for _, space := range storage.Spaces() {
		if space.Kind() == in.kind {
			o.Spaces = []storage.Space{space}
			return o, nil
		}
	}
	return o, usageError("--kind %q: want %s", in.kind, strings.Join(logKinds(), ", "))
}

func (a *App) inspectSegments(args []string, in inspection) error {
	o, err := in.options(args)
	if err != nil {
		return err
	}
	dir := args[0]
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.Dir, dir)
	}
	var verdicts inspected
	err = storage.InspectDir(fs.OS(), dir, o, func(r storage.ShardReport) error {
		verdicts.count(r)
		if a.flags.json {
			return printJSON(a.Stdout, r)
		}
		return a.printShard(r, in.segments)
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Exit: ExitNotFound, Err: err}
	case err != nil:
		return err
	case verdicts.shards == 0 && o.Shard != nil:
		return &Error{Exit: ExitNotFound, Err: fmt.Errorf("there is no log of %s in %s", o.Shard, dir)}
	}
	if !a.flags.json && !a.flags.quiet {
		fmt.Fprintln(a.Stdout, verdicts.summary())
	}
	return verdicts.err()
}

// inspected counts shards by verdict.
type inspected struct {
	shards, repair, refuse uint64
}

func (v *inspected) count(r storage.ShardReport) {
	v.shards++
	switch r.Verdict {
	case recovery.Repair:
		v.repair++
	case recovery.Refuse:
		v.refuse++
	}
}

func (v *inspected) summary() string {
	out := plural(v.shards, "log")
	if v.repair+v.refuse == 0 {
		return out + ", none to repair"
	}
	return out + ", " + count(v.repair) + " to repair, " + count(v.refuse) + " refused"
}

// err is the exit code the verdicts amount to.
func (v *inspected) err() error {
	switch {
	case v.refuse > 0:
		return &Error{Exit: ExitWouldRefuse, Err: fmt.Errorf("opening would refuse %s", plural(v.refuse, "log"))}
	case v.repair > 0:
		return &Error{Exit: ExitWouldRepair, Err: fmt.Errorf("opening would repair %s", plural(v.repair, "log"))}
	}
	return nil
}

// printShard writes what is known of a shard for a person: one line, and more
// where it is not clean.
func (a *App) printShard(r storage.ShardReport, segments bool) error {
	label := r.Label
	if label == "" {
		label = filepath.Base(r.Dir)
	}
	w := a.Stdout
	fmt.Fprintf(w, "%-6s  %s %s  offsets %d to %d, %s in %s\n",
		r.Verdict, r.Kind, label, r.Base, r.Tail, size(uint64(r.Bytes)), plural(uint64(len(r.Segments)), "segment"))
	if r.Verdict != recovery.Clean || segments {
		fmt.Fprintf(w, "        in %s\n", r.Dir)
	}
	if r.Error != "" {
		fmt.Fprintf(w, "        %s\n", r.Error)
	}
	if r.Verdict == recovery.Repair {
		for _, step := range r.Steps {
			fmt.Fprintf(w, "        would %s\n", step)
		}
		if r.CutBytes > 0 {
			fmt.Fprintf(w, "        would remove %s in all\n", size(uint64(r.CutBytes)))
		}
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "        warning: %s\n", warning)
	}
	if !segments || len(r.Segments) == 0 {
		return nil
	}
	return printSegments(w, r.Segments)
}

// recordTime writes the time of a record, in UTC.
func recordTime(micros uint64) string {
	if micros == 0 || micros > math.MaxInt64 {
		return "-"
	}
	return time.UnixMicro(int64(micros)).UTC().Format("2006-01-02T15:04:05.000Z")
}

func printSegments(w io.Writer, segments []recovery.SegmentReport) error {
	rows := make([][]string, 0, len(segments))
	for _, s := range segments {
		rows = append(rows, []string{
			"        " + s.File, strconv.FormatUint(s.Base, 10), strconv.FormatUint(s.End, 10), size(uint64(s.Bytes)), recordTime(s.NewestMicros),
		})
	}
	return printTable(w, []string{"        SEGMENT", "BASE", "END", "SIZE", "NEWEST RECORD"}, rows)
}
