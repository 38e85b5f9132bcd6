package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

func (a *App) manCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "man",
		GroupID: groupSetUp,
		Hidden:  true,
		Short:   "Write the manual pages",
		Long:    `Write a manual page for every command into a directory, which is made if it is not there.`,
		Example: `  felix man --out-dir /usr/local/share/man/man1
  man felix-pub`,
		Args: positional(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usageError("%s needs --out-dir DIR", cmd.CommandPath())
			}
			into := a.abs(dir)
			if err := os.MkdirAll(into, 0o755); err != nil {
				return err
			}
			pages := visible(cmd.Root())
			for _, documented := range pages {
				name := filepath.Join(into, manName(documented.CommandPath())+".1")
				if err := os.WriteFile(name, []byte(manPage(documented)), 0o644); err != nil {
					return err
				}
			}
			if a.flags.json {
				return printJSON(a.Stdout, struct {
					Dir   string `json:"dir"`
					Pages int    `json:"pages"`
				}{into, len(pages)})
			}
			if !a.flags.quiet {
				fmt.Fprintf(a.Stdout, "%s written to %s\n", plural(uint64(len(pages)), "manual page"), into)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "out-dir", "", "write the pages into `DIR`")
	return cmd
}

// manName is the name of a command's manual page: felix-cache-get.
func manName(path string) string { return strings.ReplaceAll(path, " ", "-") }

// manPage is the manual page of cmd, in the man macros of roff.
func manPage(cmd *cobra.Command) string {
	p := pageOf(cmd)
	var out strings.Builder
	fmt.Fprintf(&out, ".TH %q 1 \"\" \"Felix\" \"Felix Manual\"\n", strings.ToUpper(manName(p.path)))
	fmt.Fprintf(&out, ".SH NAME\n%s \\- %s\n", roff(manName(p.path)), roff(p.short))
	if p.runnable {
		fmt.Fprintf(&out, ".SH SYNOPSIS\n%s\n", roff(p.usage))
	}
	out.WriteString(".SH DESCRIPTION\n")
	for i, part := range p.long {
		switch {
		case part.verbatim:
			roffVerbatim(&out, dedent(part.text))
		case i > 0:
			fmt.Fprintf(&out, ".PP\n%s\n", roff(part.text))
		default:
			fmt.Fprintf(&out, "%s\n", roff(part.text))
		}
	}
	if len(p.members) > 0 {
		out.WriteString(".SH COMMANDS\n")
		for _, member := range p.members {
			fmt.Fprintf(&out, ".TP\n.BR %s (1)\n%s\n", roff(manName(member[0])), roff(member[1]))
		}
	}
	if p.flags != "" {
		out.WriteString(".SH OPTIONS\n")
		roffVerbatim(&out, p.flags)
	}
	if p.examples != "" {
		out.WriteString(".SH EXAMPLES\n")
		roffVerbatim(&out, p.examples)
	}
	out.WriteString(".SH SEE ALSO\n")
	if parent := cmd.Parent(); parent != nil {
		fmt.Fprintf(&out, ".BR %s (1),\n", roff(manName(parent.CommandPath())))
	}
	out.WriteString(".BR felix\\-connection (1),\n.BR felix\\-exit\\-codes (1)\n")
	return out.String()
}

func roffVerbatim(out *strings.Builder, text string) {
	fmt.Fprintf(out, ".PP\n.nf\n%s\n.fi\n", roff(text))
}

// roff escapes what the formatter would take for an order.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
