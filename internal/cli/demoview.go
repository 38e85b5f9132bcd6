package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/felixlog/felix/internal/demo"
)

// The terminal sequences of a redrawn block.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearRest  = "\x1b[K"   // of the line
	clearBelow = "\x1b[J"   // of the screen
	lineUp     = "\x1b[%dA" // so many lines
)

// demoFrame is how often the show is redrawn.
const demoFrame = 80 * time.Millisecond

// showDemo draws how far the demo is, again and again, until it is stopped.
func (a *App) showDemo(out io.Writer, show *demo.Demo) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	view := demoView{size: a.Size}
	fmt.Fprint(out, hideCursor)
	go func() {
		defer close(ended)
		tick := time.NewTicker(demoFrame)
		defer tick.Stop()
		for {
			view.draw(out, show.Snapshot())
			select {
			case <-tick.C:
			case <-done:
				view.draw(out, show.Snapshot())
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		fmt.Fprint(out, showCursor+"\n")
	}
}

// A demoView is the block of lines being redrawn.
type demoView struct {
	size  func() (width, height int)
	drawn int // lines on the screen
}

// draw puts a snapshot in place of what was drawn before.
func (v *demoView) draw(out io.Writer, s demo.Snapshot) {
	width, height := defaultWidth, defaultHeight
	if v.size != nil {
		width, height = v.size()
	}
	var frame strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&frame, lineUp, v.drawn)
	}
	// One line stays free for the cursor, three for what stands above.
	lines := demoLines(s, width, max(height-4, 4))
	for _, line := range lines {
		frame.WriteString(ansi.Truncate(line, width-1, "…") + clearRest + "\n")
	}
	frame.WriteString(clearBelow)
	v.drawn = len(lines)
	io.WriteString(out, frame.String())
}

// demoLines shows a snapshot in at most so many lines: the most important
// first.
func demoLines(s demo.Snapshot, width, most int) []string {
	const labels = 34 // characters beside the bars
	barWidth := min(max(width-labels, 10), 40)
	order := "in order"
	if !s.InOrder {
		order = "OUT OF ORDER"
	}
	total := fmt.Sprintf("of %s", count(uint64(s.Total)))
	lines := []string{
		"publish  " + meter(s.Published, s.Total, barWidth) + fmt.Sprintf(" %6s %s", count(uint64(s.Published)), total),
		"stream   " + meter(s.Received, s.Total, barWidth) + fmt.Sprintf(" %6s %s", count(uint64(s.Received)), order),
		"cache    " + meter(s.Cached, s.Total, barWidth) + fmt.Sprintf(" %6s writes", count(uint64(s.Cached))),
		"queue    " + meter(s.Queue.Finished, s.Total, barWidth) + fmt.Sprintf(" %6s, %d of %d strong", count(uint64(s.Queue.Finished)), s.Queue.Worked, s.Queue.Strong),
	}
	switch {
	case s.Kill.Done():
		lines = append(lines, faint(fmt.Sprintf("broker   killed after %s records, went on after %s", count(uint64(s.Kill.After)), elapsed(s.Kill.Recovery()))))
	case !s.Kill.At.IsZero():
		lines = append(lines, lipgloss.NewStyle().Foreground(lipgloss.Red).Render(fmt.Sprintf("broker   killed after %s records", count(uint64(s.Kill.After)))))
	}
	lines = append(lines, queueLines(s.Queue)...)
	if s.Received > 0 {
		lines = append(lines, "", quakeLine("now", s.Last))
	}
	if s.Queue.Worked > 0 {
		lines = append(lines, quakeLine("worked", s.Queue.Last))
	}
	if len(s.Latest) > 0 {
		lines = append(lines, "", faint("the cache: latest of each network"))
		for _, network := range slices.Sorted(maps.Keys(s.Latest)) {
			lines = append(lines, quakeLine(network, s.Latest[network]))
		}
	}
	return lines[:min(len(lines), most)]
}

// queueLines tell what goes wrong in the queue, and how it is mended.
func queueLines(q demo.Queue) []string {
	red := lipgloss.NewStyle().Foreground(lipgloss.Red)
	var lines []string
	switch {
	case q.Killed && q.Back == q.Held:
		lines = append(lines, faint(fmt.Sprintf("worker   killed with %d claims, all back after %s", q.Held, elapsed(q.BackAfter))))
	case q.Killed:
		lines = append(lines, red.Render(fmt.Sprintf("worker   killed with %d claims, %d are back", q.Held, q.Back)))
	}
	p := q.Poison
	switch {
	case p.Worked:
		lines = append(lines, faint(fmt.Sprintf("poison   failed %d times, was given up, redriven and worked", p.Attempts)))
	case p.Redriven:
		lines = append(lines, fmt.Sprintf("poison   failed %d times, was given up, is back in play", p.Attempts))
	case p.GivenUp:
		lines = append(lines, red.Render(fmt.Sprintf("poison   failed %d times, is a dead letter", p.Attempts)))
	case p.Attempts > 0:
		lines = append(lines, red.Render(fmt.Sprintf("poison   failed %d times", p.Attempts)))
	}
	return lines
}

// meter is a bar of a share.
func meter(n, of, width int) string {
	full := 0
	if of > 0 {
		full = width * n / of
	}
	return lipgloss.NewStyle().Foreground(lipgloss.Cyan).Render(strings.Repeat("━", full)) + faint(strings.Repeat("─", width-full))
}

// quakeLine is one quake, coloured by its strength.
func quakeLine(name string, q demo.Quake) string {
	style := lipgloss.NewStyle()
	switch {
	case q.Mag >= 5:
		style = style.Foreground(lipgloss.Red).Bold(true)
	case q.Mag >= 3:
		style = style.Foreground(lipgloss.Yellow)
	}
	return fmt.Sprintf("%-8s %s  %s", name, style.Render(fmt.Sprintf("M %4.1f", q.Mag)), q.Place)
}

func faint(text string) string { return lipgloss.NewStyle().Faint(true).Render(text) }
