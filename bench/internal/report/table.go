package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// noisy is the foreign load above which a line carries a warning.
const noisy = 0.08

// Table writes the lines as a table with a legend, for people.
func Table(w io.Writer, lines []Line) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "ROW\tMODE\tFELIX\tREFERENCE\tUNIT\tRATIO\tRANGE\tFLOOR\tGOAL\tVERDICT")
	disturbed := false
	for _, l := range lines {
		mark := ""
		if l.Foreign > noisy {
			mark, disturbed = "*", true
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s%s\n", l.ID, l.Mode,
			figure(l.Felix.Median, l.Felix.N), figure(l.Ref.Median, l.Ref.N), l.Unit,
			figure(l.Ratio.Median, l.Ratio.N), span(l.Ratio.Min, l.Ratio.Max, l.Ratio.N),
			bound(l.Floor, l), bound(l.Goal, l), l.Verdict, mark)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	return legend(w, lines, disturbed)
}

func legend(w io.Writer, lines []Line, disturbed bool) error {
	ew := &errWriter{w: w}
	ew.printf("\nRatio: median over rounds of Felix divided by the reference of the same round; range: its lowest and highest.\n")
	ew.printf("U: client and server on all CPUs (for claims). P: client on one CPU, server on another (for regressions).\n")
	if disturbed {
		ew.printf("*: other processes used more than %d %% of the machine; run again on a quiet one.\n", int(noisy*100))
	}
	for i, l := range lines {
		if i > 0 && lines[i-1].ID == l.ID {
			continue
		}
		ew.printf("\n%s: %s\n  against %s\n", l.ID, l.Work, l.Reference)
		for _, r := range remarks(lines[i:], l.ID) {
			ew.printf("  %s\n", r)
		}
	}
	return ew.err
}

// remarks are what the lines of one row, which lead the list, say beside
// their figures: each remark once, after the modes it was made in.
func remarks(lines []Line, id string) []string {
	var order []string
	modes := make(map[string]string)
	for _, l := range lines {
		if l.ID != id {
			break
		}
		said := l.Notes
		if l.Why != "" {
			said = append([]string{l.Why}, said...)
		}
		for _, s := range said {
			if modes[s] == "" {
				order = append(order, s)
				modes[s] = string(l.Mode)
			} else {
				modes[s] += ", " + string(l.Mode)
			}
		}
	}
	for i, s := range order {
		order[i] = modes[s] + ": " + s
	}
	return order
}

// errWriter keeps the first error of a series of writes.
type errWriter struct {
	w   io.Writer
	err error
}

func (e *errWriter) printf(format string, args ...any) {
	if e.err == nil {
		_, e.err = fmt.Fprintf(e.w, format, args...)
	}
}

// figure shows three significant digits, or a dash when no round was valid.
func figure(x float64, n int) string {
	if n == 0 {
		return "-"
	}
	return significant(x)
}

func significant(x float64) string {
	if x == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	if digits >= 0 {
		return strconv.FormatFloat(x, 'f', digits, 64)
	}
	scale := math.Pow10(-digits)
	return strconv.FormatFloat(math.Round(x/scale)*scale, 'f', 0, 64)
}

func span(low, high float64, n int) string {
	if n == 0 {
		return "-"
	}
	return significant(low) + ".." + significant(high)
}

// bound shows a mark with the side of it that is good.
func bound(mark float64, l Line) string {
	if mark == 0 {
		return "-"
	}
	sign := ">="
	if l.Metric.LowerIsBetter() {
		sign = "<="
	}
	return sign + strconv.FormatFloat(mark, 'f', -1, 64)
}
