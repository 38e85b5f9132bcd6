package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/felixlog/felix/bench/internal/host"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/proc"
	"github.com/felixlog/felix/bench/internal/redisref"
	"github.com/felixlog/felix/bench/internal/report"
	"github.com/felixlog/felix/bench/internal/schedule"
)

// compare measures everything that s asks for.
func compare(ctx context.Context, s settings) (report.Document, error) {
	contenders := contenders()
	cases := casesOf(s.rows)
	if slices.ContainsFunc(cases, func(id string) bool { return contenders[id].redis }) {
		if _, err := redisref.Find(); err != nil {
			return report.Document{}, fmt.Errorf("%w; or leave those rows out with -rows", err)
		}
	}
	b, err := newBench(s)
	if err != nil {
		return report.Document{}, err
	}
	defer b.close()
	if slices.Contains(s.modes, schedule.Pinned) {
		if b.clientCPU, b.serverCPU, err = twoCPUs(); err != nil {
			return report.Document{}, err
		}
	}
	if b.felix == "" {
		if b.felix, err = buildFelix(ctx, b.dir); err != nil {
			return report.Document{}, err
		}
	}
	doc := report.Document{
		Started: time.Now().UTC().Truncate(time.Second), Machine: host.Describe(), Rounds: s.rounds,
		WarmupSeconds: s.phases.Warmup.Seconds(), MeasureSeconds: s.phases.Measure.Seconds(),
	}
	samples, err := b.runAll(ctx, contenders, schedule.Plan(cases, s.modes, s.rounds))
	if err != nil {
		return report.Document{}, err
	}
	for _, r := range s.rows {
		for _, mode := range s.modes {
			ours, theirs := samples[run{r.felix, mode}], samples[run{r.ref, mode}]
			if r.ref == ownBound {
				theirs = bounds(ours)
			}
			doc.Lines = append(doc.Lines, withNotes(report.Judge(r.Row, mode, ours, theirs)))
		}
	}
	return doc, nil
}

// A run names the samples of one case in one mode.
type run struct {
	id   string
	mode schedule.Mode
}

func (b *bench) runAll(ctx context.Context, all map[string]contender, steps []schedule.Step) (map[run][]report.Sample, error) {
	progress := newProgress(len(steps))
	defer progress.close()
	samples := make(map[run][]report.Sample)
	for _, step := range steps {
		progress.show(fmt.Sprintf("round %d, %s, %s", step.Round+1, step.Mode, step.Case))
		sample := b.run(ctx, all[step.Case], step.Mode)
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		sample.Round = step.Round
		key := run{step.Case, step.Mode}
		samples[key] = append(samples[key], sample)
		progress.step()
	}
	return samples, nil
}

// casesOf lists the cases that rows need, each once, with the two sides of a
// row next to each other as far as rows do not share them.
func casesOf(rows []row) []string {
	var cases []string
	for _, r := range rows {
		for _, id := range []string{r.felix, r.ref} {
			if id != ownBound && !slices.Contains(cases, id) {
				cases = append(cases, id)
			}
		}
	}
	return cases
}

// bounds makes reference samples out of the bound that each run states: the
// memory it may take, or a flush for each of its records.
func bounds(ours []report.Sample) []report.Sample {
	theirs := make([]report.Sample, len(ours))
	for i, s := range ours {
		theirs[i] = report.Sample{Round: s.Round, Failed: s.Failed, Result: measure.Result{
			RSS: s.Result.RSSBound, Records: s.Result.Records, Flushes: s.Result.Records, Elapsed: s.Result.Elapsed,
		}}
	}
	return theirs
}

// withNotes gives a line the notes of its first samples: how each side was
// driven.
func withNotes(l report.Line) report.Line {
	for _, side := range []struct {
		name string
		runs []report.Sample
	}{{"felix", l.FelixRuns}, {"reference", l.RefRuns}} {
		if len(side.runs) == 0 {
			continue
		}
		notes := side.runs[0].Result.Notes
		for _, key := range slices.Sorted(maps.Keys(notes)) {
			l.Notes = append(l.Notes, fmt.Sprintf("%s, %s: %s", side.name, key, notes[key]))
		}
	}
	return l
}

// twoCPUs picks the CPUs of mode P: the first two this process may use.
func twoCPUs() (client, server int, err error) {
	cpus, err := proc.CPUs()
	if err != nil {
		return 0, 0, err
	}
	if len(cpus) < 2 {
		return 0, 0, errors.New("mode P needs Linux and two CPUs; use -mode U")
	}
	return cpus[0], cpus[1], nil
}

func show(w io.Writer, doc report.Document, asJSON bool) error {
	if asJSON {
		return doc.Write(w)
	}
	return report.Table(w, doc.Lines)
}
