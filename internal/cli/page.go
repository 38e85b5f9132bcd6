package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// A page is the documentation of one command, taken from the tree. The help,
// the reference and the manual pages all print it.
type page struct {
	path     string // felix cache get
	short    string
	long     []paragraph
	usage    string
	examples string
	flags    string
	members  [][2]string // name and what it does
	connects bool
	runnable bool
}

// A paragraph is a run of lines without a blank one. One whose lines are all
// set in is verbatim: a table or a list.
type paragraph struct {
	text     string
	verbatim bool
}

// referenceWidth is the width of flag lists in the reference and the manual.
const referenceWidth = 90

// pageOf reads the documentation of cmd.
func pageOf(cmd *cobra.Command) page {
	p := page{
		path: cmd.CommandPath(), short: cmd.Short, long: paragraphs(cmd.Long), usage: usageLine(cmd),
		examples: dedent(cmd.Example), connects: cmd.Annotations[connects] != "", runnable: cmd.Runnable(),
	}
	if flags := ownFlags(cmd); flags.HasAvailableFlags() {
		p.flags = strings.TrimRight(flagList(flags, referenceWidth), "\n")
	}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			p.members = append(p.members, [2]string{sub.CommandPath(), sub.Short})
		}
	}
	return p
}

// paragraphs cuts a text at its blank lines.
func paragraphs(text string) []paragraph {
	var out []paragraph
	for part := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		verbatim := true
		for line := range strings.SplitSeq(part, "\n") {
			verbatim = verbatim && strings.HasPrefix(line, "  ")
		}
		out = append(out, paragraph{text: part, verbatim: verbatim})
	}
	return out
}

// dedent takes the two spaces from before each line.
func dedent(text string) string {
	var lines []string
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		lines = append(lines, strings.TrimPrefix(line, "  "))
	}
	return strings.Join(lines, "\n")
}

// visible lists the commands that are documented, parents first.
func visible(root *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	walk(root, func(cmd *cobra.Command) {
		if !cmd.Hidden {
			list = append(list, cmd)
		}
	})
	return list
}
