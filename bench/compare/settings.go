package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/report"
	"github.com/felixlog/felix/bench/internal/schedule"
)

const (
	maxRounds  = 1000
	maxSeconds = 600
)

// settings are what a user asks for.
type settings struct {
	rows   []row
	rounds int
	phases measure.Phases
	modes  []schedule.Mode
	settle time.Duration
	felix  string
	json   bool
	check  bool
	list   bool
}

const usage = `Usage: go run ./bench/compare [flags]

Measures Felix and its references in turns and prints the ratios.

`

func parseSettings(args []string, out io.Writer) (settings, error) {
	fs := flag.NewFlagSet("compare", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.Usage = func() {
		fmt.Fprint(out, usage)
		fs.PrintDefaults()
	}
	var s settings
	rows := fs.String("rows", "", "rows to measure: names or patterns such as 'cache-*', separated by commas; 'all' is every row, empty is those of the speed table")
	fs.IntVar(&s.rounds, "rounds", report.MinRounds, fmt.Sprintf("rounds; a verdict takes %d", report.MinRounds))
	seconds := fs.Float64("seconds", 3, "seconds measured in each run")
	warmup := fs.Float64("warmup", 1, "seconds before that which do not count")
	mode := fs.String("mode", "U,P", "U (client and server on all CPUs), P (client on one CPU, server on another), or both")
	settle := fs.Float64("settle", 2, "most seconds to wait before each run until other processes leave the machine alone")
	fs.StringVar(&s.felix, "felix", "", "felix binary to measure; empty builds ./cmd/felix")
	fs.BoolVar(&s.json, "json", false, "print one JSON document with every sample instead of the table")
	fs.BoolVar(&s.check, "check", false, fmt.Sprintf("exit %d when a row is below its floor or invalid", exitBelow))
	fs.BoolVar(&s.list, "list", false, "list the rows and stop")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return s, err
		}
		return s, fmt.Errorf("%w; -help lists the flags", err)
	}
	if fs.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if s.rounds < 1 || s.rounds > maxRounds {
		return s, fmt.Errorf("-rounds %d is not between 1 and %d", s.rounds, maxRounds)
	}
	var err error
	if s.phases.Measure, err = span("seconds", *seconds, .05); err != nil {
		return s, err
	}
	if s.phases.Warmup, err = span("warmup", *warmup, 0); err != nil {
		return s, err
	}
	if s.settle, err = span("settle", *settle, 0); err != nil {
		return s, err
	}
	if s.modes, err = schedule.ParseModes(*mode); err != nil {
		return s, fmt.Errorf("-mode: %w", err)
	}
	if s.rows, err = selectRows(catalogue(), *rows); err != nil {
		return s, fmt.Errorf("-rows: %w", err)
	}
	return s, nil
}

func span(name string, seconds, least float64) (time.Duration, error) {
	if !(seconds >= least && seconds <= maxSeconds) { // refuses NaN too
		return 0, fmt.Errorf("-%s %v is not between %v and %d", name, seconds, least, maxSeconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// selectRows picks rows by name or pattern, in the catalogue's order. A row
// that reads several figures of one run goes by its name and the figure's,
// "cache-get-256.p50"; its name alone means all of them.
func selectRows(all []row, list string) ([]row, error) {
	if list == "" {
		return slices.DeleteFunc(slices.Clone(all), func(r row) bool { return r.optional }), nil
	}
	if list == "all" {
		return all, nil
	}
	picked := make([]bool, len(all))
	for pattern := range strings.SplitSeq(list, ",") {
		pattern = strings.TrimSpace(pattern)
		found := false
		for i, r := range all {
			name, _, _ := strings.Cut(r.ID, ".")
			for _, candidate := range []string{r.ID, name} {
				ok, err := path.Match(pattern, candidate)
				if err != nil {
					return nil, fmt.Errorf("pattern %q: %w", pattern, err)
				}
				if ok {
					picked[i], found = true, true
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("no row matches %q; -list names them", pattern)
		}
	}
	var rows []row
	for i, r := range all {
		if picked[i] {
			rows = append(rows, r)
		}
	}
	return rows, nil
}
