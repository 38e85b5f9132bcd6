package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// reference is the page docs/cli.md: every command with its help, as the tree
// has it.
func reference(root *cobra.Command) string {
	var out strings.Builder
	out.WriteString("# The felix command line\n\n" +
		"Made from the command tree by `go test ./internal/cli -run TestReference -update`; edit the commands, not this page.\n")
	for _, cmd := range visible(root) {
		writeMarkdown(&out, pageOf(cmd))
	}
	out.WriteString("\n## Flags of every command\n\n")
	fence(&out, "", strings.TrimRight(flagList(root.PersistentFlags(), referenceWidth), "\n"))
	return out.String()
}

func writeMarkdown(out *strings.Builder, p page) {
	fmt.Fprintf(out, "\n## %s\n\n%s.\n", p.path, p.short)
	for _, part := range p.long {
		out.WriteByte('\n')
		if part.verbatim {
			fence(out, "", dedent(part.text))
			continue
		}
		fmt.Fprintf(out, "%s\n", part.text)
	}
	if p.runnable {
		out.WriteByte('\n')
		fence(out, "", p.usage)
	}
	if len(p.members) > 0 {
		out.WriteByte('\n')
		for _, member := range p.members {
			fmt.Fprintf(out, "- [%s](#%s): %s\n", member[0], strings.ReplaceAll(member[0], " ", "-"), member[1])
		}
	}
	if p.examples != "" {
		out.WriteString("\nExamples:\n\n")
		fence(out, "sh", p.examples)
	}
	if p.flags != "" {
		out.WriteString("\nFlags:\n\n")
		fence(out, "", p.flags)
	}
	if p.connects {
		out.WriteString("\nIt takes the connection flags, see [felix connection](#felix-connection).\n")
	}
}

func fence(out *strings.Builder, language, text string) {
	fmt.Fprintf(out, "```%s\n%s\n```\n", language, text)
}
