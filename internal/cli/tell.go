package cli

import (
	"fmt"
	"strings"
)

// tell prints a list: rows under a heading, or with --json each item as an
// object on its line.
func tell[T any](a *App, heading []string, items []T, row func(T) []string) error {
	if a.flags.json {
		var out []byte
		for _, item := range items {
			out = append(appendJSON(out, item), '\n')
		}
		_, err := a.Stdout.Write(out)
		return err
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		for _, cell := range row(item) {
			rows[i] = append(rows[i], harmless(cell))
		}
	}
	return printTable(a.Stdout, heading, rows)
}

// done says what a command did: a sentence, or with --json the object.
func (a *App) done(object any, format string, args ...any) error {
	if a.flags.json {
		return printJSON(a.Stdout, object)
	}
	if a.flags.quiet {
		return nil
	}
	_, err := fmt.Fprintln(a.Stdout, harmless(fmt.Sprintf(format, args...)))
	return err
}

// facts prints names and values, one a line, or with --json the object.
func (a *App) facts(object any, pairs [][2]string) error {
	if a.flags.json {
		return printJSON(a.Stdout, object)
	}
	longest := 0
	for _, p := range pairs {
		longest = max(longest, len(p[0]))
	}
	for _, p := range pairs {
		if _, err := fmt.Fprintf(a.Stdout, "%-*s  %s\n", longest, p[0], harmless(p[1])); err != nil {
			return err
		}
	}
	return nil
}

// harmless is text that somebody else wrote, fit for one line of a terminal: a
// display name must not move the cursor, nor break a table.
func harmless(text string) string {
	return strings.ReplaceAll(string(appendRaw(nil, []byte(text), true)), "\t", `\t`)
}

// lowered is a word of the API as the command line writes it.
func lowered[T ~string](word T) string { return strings.ToLower(string(word)) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// find is the one item that matches, or an error that nothing does.
func find[T any](items []T, what, name string, match func(T) bool) (T, error) {
	for _, item := range items {
		if match(item) {
			return item, nil
		}
	}
	var none T
	return none, &Error{Exit: ExitNotFound, Err: fmt.Errorf("there is no %s %q, or the token does not show it", what, name)}
}

// keep are the items that match.
func keep[T any](items []T, match func(T) bool) []T {
	kept := []T{}
	for _, item := range items {
		if match(item) {
			kept = append(kept, item)
		}
	}
	return kept
}

// removed is what a command that removes something says with --json.
type removed struct {
	Removed string `json:"removed"`
}
