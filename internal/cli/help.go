package cli

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpCommand is "felix help".
func (a *App) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND...]",
		GroupID: groupSetUp,
		Short:   "Show the help of a command or a topic",
		Long: `Show the help of a command, the same as COMMAND --help, or of a topic that
concerns every command: connection, exit-codes.`,
		Example: `  felix help pub
  felix help cache get
  felix help connection`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return memberNames(at), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, name := range args {
				next := member(at, name)
				if next == nil {
					return unknownCommand(at, name)
				}
				at = next
			}
			a.printHelp(a.Stdout, at)
			return nil
		},
	}
}

// member is the command called name directly below cmd, or nil.
func member(cmd *cobra.Command, name string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

// topics are pages of help on what all commands share.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{
			Use:   "connection",
			Short: "How commands find and trust their broker",
			Long: `A command that talks to a broker puts its connection together from three
places. A flag beats the environment, the environment beats the context, and
each part is taken on its own: --tenant on the command line leaves the rest to
the context.

Contexts are named connections in one file, felix/config.yaml under the user's
configuration directory ($XDG_CONFIG_HOME, else ~/.config on Linux). "felix
context" edits it, "felix dev" adds the context dev. The file is readable by
its owner alone, keys it does not know are errors, file names in it are
absolute, and nothing from the environment is ever saved.

` + connectionTable(),
			Example: `  felix pub orders hello --brokers 127.0.0.1:5000 --tenant t1 --token-file token --ca-file ca.pem
  felix context add staging --brokers 10.0.0.5:5000 --tenant t1 --token-file token --use`,
		},
		{
			Use:   "exit-codes",
			Short: "What commands exit with",
			Long: `Every command exits with one of these codes:

` + exitTable() + `
With --json the error itself is one object on standard error, with the same
number in it: {"error":"...","exit":3}. A broker's refusal also has its "code"
and its "retry" class.`,
			Example: `  felix cache get users u1 || test $? -eq 5 && echo "nobody by that name"
  felix pub orders hello --json 2>&1 | jq .exit`,
		},
	}
}

// exitTable lists the exit codes, one a line.
func exitTable() string {
	var out strings.Builder
	for code, meaning := range exitMeanings() {
		fmt.Fprintf(&out, "  %d  %s\n", code, meaning)
	}
	return out.String()
}

// connectionTable lists flag, variable and context key of every part of a
// connection.
func connectionTable() string {
	rows := [][3]string{{"FLAG", "VARIABLE", "CONTEXT KEY"}}
	for _, s := range settings() {
		env := s.env
		if env == "" {
			env = "-"
		}
		rows = append(rows, [3]string{"--" + s.flag, env, strings.ReplaceAll(s.flag, "-", "_")})
	}
	rows = append(rows, [3]string{"--context", "FELIX_CONTEXT", "current"}, [3]string{"--config", "FELIX_CLI_CONFIG", "-"})
	var out strings.Builder
	for _, row := range rows {
		fmt.Fprintf(&out, "  %-26s%-31s%s\n", row[0], row[1], row[2])
	}
	return out.String()
}

// printHelp writes the help of cmd.
func (a *App) printHelp(w io.Writer, cmd *cobra.Command) {
	heading := func(text string) string { return text + ":" }
	if a.StdoutTTY && a.Getenv("NO_COLOR") == "" {
		heading = func(text string) string { return "\x1b[1m" + text + "\x1b[0m" }
	}
	fmt.Fprintf(w, "%s\n", strings.TrimRight(cmd.Long, "\n"))
	if cmd.Runnable() {
		fmt.Fprintf(w, "\n%s\n  %s\n", heading("Usage"), usageLine(cmd))
	}
	printCommands(w, cmd, heading)
	if cmd.Example != "" {
		fmt.Fprintf(w, "\n%s\n%s\n", heading("Examples"), strings.TrimRight(cmd.Example, "\n"))
	}
	if flags := ownFlags(cmd); flags.HasAvailableFlags() {
		fmt.Fprintf(w, "\n%s\n%s", heading("Flags"), flagList(flags, a.width()))
	}
	fmt.Fprintf(w, "\n%s\n%s", heading("Flags of every command"), flagList(globalFlagSet(cmd), a.width()))
	switch {
	case !cmd.HasParent():
		fmt.Fprintf(w, "\n\"felix help COMMAND\" tells more. Contexts and connection flags: \"felix help connection\".\n")
	case cmd.Annotations[connects] != "":
		fmt.Fprintf(w, "\nConnection flags (--brokers, --tenant, --namespace, --token-file, --ca-file, ...):\n\"felix help connection\".\n")
	}
}

// printCommands lists the commands below cmd, by group where there are groups.
func printCommands(w io.Writer, cmd *cobra.Command, heading func(string) string) {
	var plain, topics []*cobra.Command
	grouped := make(map[string][]*cobra.Command)
	longest := 0
	for _, sub := range cmd.Commands() {
		if sub.Hidden {
			continue
		}
		longest = max(longest, len(sub.Name()))
		switch {
		case !sub.Runnable():
			topics = append(topics, sub)
		case sub.GroupID != "":
			grouped[sub.GroupID] = append(grouped[sub.GroupID], sub)
		default:
			plain = append(plain, sub)
		}
	}
	list := func(title string, commands []*cobra.Command) {
		if len(commands) == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s\n", heading(title))
		for _, sub := range commands {
			fmt.Fprintf(w, "  %-*s  %s\n", longest, sub.Name(), sub.Short)
		}
	}
	for _, group := range cmd.Groups() {
		list(group.Title, grouped[group.ID])
	}
	list("Commands", plain)
	list("Topics", topics)
}

// usageLine is the form of a command: felix pub STREAM [DATA] [flags].
func usageLine(cmd *cobra.Command) string {
	line := cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name())
	switch {
	case !cmd.HasParent():
		line += " COMMAND"
	case len(memberNames(cmd)) > 0:
		line += " COMMAND [flags]"
	case ownFlags(cmd).HasAvailableFlags():
		before, behind, foreign := strings.Cut(line, " -- ")
		if line = before + " [flags]"; foreign { // what follows is not ours to read
			line += " -- " + behind
		}
	}
	return line
}

// ownFlags are the flags of cmd alone, without --help.
func ownFlags(cmd *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	own.SortFlags = false
	if !cmd.HasParent() {
		return own
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			own.AddFlag(f)
		}
	})
	return own
}

// globalFlagSet are the flags of every command that are not part of a
// connection.
func globalFlagSet(cmd *cobra.Command) *pflag.FlagSet {
	part := make(map[string]bool)
	for _, s := range settings() {
		part[s.flag] = true
	}
	own := ownFlags(cmd)
	set := pflag.NewFlagSet("global", pflag.ContinueOnError)
	set.SortFlags = false
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !part[f.Name] && own.Lookup(f.Name) == nil {
			set.AddFlag(f)
		}
	})
	return set
}

// plainNumberError says in a few words what is wrong with a number.
func plainNumberError(err error) error {
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return errors.New("not a number that fits here")
	case errors.Is(err, strconv.ErrRange):
		return errors.New("out of range")
	}
	return err
}
