package cli

import (
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A progress shows how far a long job is, how fast it goes and when it will
// be done: one line on Stderr, redrawn. It is only drawn for a person: not
// when Stderr is no terminal, nor with --quiet or --json. Without a drawing
// its methods do nothing.
type progress struct {
	done      atomic.Uint64
	container *mpb.Progress
	bar       *mpb.Bar
	stop      chan struct{}
	stopped   chan struct{}
}

// progressEvery is how often the line is redrawn.
const progressEvery = 150 * time.Millisecond

// progressBarWidth is the width of the bar itself, in characters.
const progressBarWidth = 24

// startProgress begins a line called label that counts nouns. A total of 0
// means that nobody knows it: then it shows a count and a rate, no share and
// no end.
func (a *App) startProgress(label string, total uint64, noun string) *progress {
	p := &progress{}
	if !a.StderrTTY || a.flags.quiet || a.flags.json {
		return p
	}
	p.container = mpb.New(
		mpb.WithOutput(a.Stderr),
		mpb.WithWidth(a.width()),
		mpb.WithRefreshRate(progressEvery),
		mpb.ForceTTY(),
		mpb.WithAutoRefresh(),
	)
	started := time.Now()
	speed := decor.Any(func(s decor.Statistics) string {
		return "  " + rate(perSecond(uint64(s.Current), time.Since(started)), noun)
	})
	if total > 0 {
		p.bar = p.container.New(int64(total), mpb.BarStyle().Lbound("").Rbound("").Filler("━").Tip("━").Padding("─"),
			mpb.BarWidth(progressBarWidth),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(label+" "), decor.Percentage(decor.WC{W: 5})),
			mpb.AppendDecorators(speed, decor.Name("  "), decor.AverageETA(decor.ET_STYLE_GO), decor.Name(" left")),
		)
	} else {
		p.bar = p.container.New(0, mpb.NopStyle(),
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(
				decor.Name(label+" "),
				decor.Any(func(s decor.Statistics) string { return plural(uint64(s.Current), noun) }),
				speed,
			),
		)
	}
	p.stop, p.stopped = make(chan struct{}), make(chan struct{})
	go p.follow()
	return p
}

// follow carries the count to the bar at the pace of drawing, so that the job
// itself only adds to a number.
func (p *progress) follow() {
	defer close(p.stopped)
	tick := time.NewTicker(progressEvery / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.bar.SetCurrent(int64(p.done.Load()))
		case <-p.stop:
			return
		}
	}
}

// add says that n more are done. It is cheap and safe for concurrent use.
func (p *progress) add(n uint64) { p.done.Add(n) }

// finish takes the line away. Calling it again does nothing.
func (p *progress) finish() {
	if p.container == nil {
		return
	}
	close(p.stop)
	<-p.stopped
	p.bar.Abort(true)
	p.container.Wait()
	p.container = nil
}
