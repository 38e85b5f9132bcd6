package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// maxFlagColumn is how wide the names of a list of flags may be for their
// help to stand beside them; in a list with longer ones it stands below each.
const maxFlagColumn = 34

// flagList lists flags with their help, in lines of at most width characters
// where words allow it.
func flagList(flags *pflag.FlagSet, width int) string {
	type entry struct{ name, help string }
	var entries []entry
	longest := 0
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, help := pflag.UnquoteUsage(f)
		name := "      --" + f.Name
		if f.Shorthand != "" {
			name = "  -" + f.Shorthand + ", --" + f.Name
		}
		if value != "" {
			name += " " + value
		}
		if shown := shownDefault(f); shown != "" && !strings.Contains(help, "(default ") {
			help += " (default " + shown + ")"
		}
		longest = max(longest, len(name))
		entries = append(entries, entry{name, help})
	})
	beside := longest <= maxFlagColumn
	indent := longest + 3
	if !beside {
		indent = 10
	}
	var out strings.Builder
	for _, e := range entries {
		lines := wrap(e.help, max(width-indent, 20))
		if beside {
			fmt.Fprintf(&out, "%-*s%s\n", indent, e.name, lines[0])
			lines = lines[1:]
		} else {
			fmt.Fprintf(&out, "%s\n", e.name)
		}
		for _, line := range lines {
			fmt.Fprintf(&out, "%s%s\n", strings.Repeat(" ", indent), line)
		}
	}
	return out.String()
}

// shownDefault is the default of a flag where it is worth a word.
func shownDefault(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "false", "[]":
		return ""
	}
	return f.DefValue
}

// wrap cuts text into lines of at most width characters at its blanks; a
// longer word has a line of its own. There is one line at least.
func wrap(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
