package main

import (
	"os"
	"sync/atomic"

	"github.com/charmbracelet/x/term"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows on a terminal how far a comparison has come; elsewhere it
// shows nothing.
type progress struct {
	bars  *mpb.Progress
	bar   *mpb.Bar
	label atomic.Value
}

func newProgress(steps int) *progress {
	p := &progress{}
	p.label.Store("")
	if !term.IsTerminal(os.Stderr.Fd()) {
		return p
	}
	p.bars = mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(40))
	p.bar = p.bars.AddBar(int64(steps),
		mpb.PrependDecorators(decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(
			decor.AverageETA(decor.ET_STYLE_GO), decor.Name("  "),
			decor.Any(func(decor.Statistics) string { return p.label.Load().(string) }),
		),
		mpb.BarRemoveOnComplete(),
	)
	return p
}

func (p *progress) show(label string) { p.label.Store(label) }

func (p *progress) step() {
	if p.bar != nil {
		p.bar.Increment()
	}
}

func (p *progress) close() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
