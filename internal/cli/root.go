package cli

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/felixlog/felix/internal/config/suggest"
)

// The groups of the overview.
const (
	groupStart   = "start"
	groupData    = "data"
	groupControl = "control"
	groupServe   = "serve"
	groupMeasure = "measure"
	groupSetUp   = "setup"
)

// connects marks a command that takes the connection flags.
const connects = "felix:connects"

// Root builds the whole tree of commands, bound to a.
func (a *App) Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "felix",
		Short: "One log, read as a stream, a queue and a cache",
		Long: `Felix is a message broker built on one idea: an append-only log of records,
read in three ways. A stream walks it, a queue shares it among workers, a
cache keeps the latest record of each key.

New here? "felix demo" shows it working and ends by itself. "felix dev" starts
a broker on this machine and selects it, so that "felix pub" and "felix sub"
work in the next terminal with no further set-up.`,
		Example: `  # see it work: a week of earthquakes through one log
  felix demo

  # run a broker for development, then use it from another terminal
  felix dev
  felix sub orders
  felix pub orders hello`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.ArbitraryArgs,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.printHelp(a.Stdout, cmd) })
	root.AddGroup(
		&cobra.Group{ID: groupStart, Title: "Start here"},
		&cobra.Group{ID: groupData, Title: "Streams, queues and caches"},
		&cobra.Group{ID: groupControl, Title: "The control plane: who exists, who may, who serves"},
		&cobra.Group{ID: groupServe, Title: "Servers"},
		&cobra.Group{ID: groupMeasure, Title: "Measure"},
		&cobra.Group{ID: groupSetUp, Title: "Set-up"},
	)
	a.addGlobalFlags(root)
	root.SetHelpCommand(a.helpCommand())
	root.AddCommand(
		a.demoCommand(), a.devCommand(),
		a.pubCommand(), a.subCommand(), a.groupCommand(), a.workCommand(), a.cacheCommand(), a.counterCommand(),
		a.tenantCommand(), a.namespaceCommand(), a.streamCommand(), a.nodeCommand(), a.shardCommand(), a.placementCommand(), a.topologyCommand(),
		a.rbacCommand(), a.loginCommand(), a.tokenCommand(), a.whoamiCommand(),
		a.brokerCommand(), a.controlPlaneCommand(), a.inspectCommand(),
		a.benchCommand(),
		a.contextCommand(), a.completionsCommand(), a.manCommand(), a.versionCommand(),
	)
	root.AddCommand(topics()...)
	walk(root, func(cmd *cobra.Command) {
		cmd.Flags().SortFlags = false
		cmd.PersistentFlags().SortFlags = false
		cmd.LocalFlags().VisitAll(onlyOnce)
	})
	if err := root.RegisterFlagCompletionFunc("context", a.completeContexts); err != nil {
		panic("felix: " + err.Error()) // the flag is defined above
	}
	return root
}

// walk visits cmd and everything below it, parents first.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

// A family is a command that only holds others, such as "felix cache".
func family(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError("%s needs a command: %s", cmd.CommandPath(), strings.Join(memberNames(cmd), ", ")).
				hinting("%s --help tells more", cmd.CommandPath())
		}
		return unknownCommand(cmd, args[0])
	}
	cmd.AddCommand(members...)
	return cmd
}

// memberNames lists the commands below cmd that a person is shown.
func memberNames(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	return names
}

// unknownCommand says that cmd has no member called name and which was
// probably meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	names := memberNames(cmd)
	err := usageError("unknown command %q for %q", name, cmd.CommandPath())
	if near := suggest.Closest(name, names); near != "" {
		return err.hinting("did you mean %q?", cmd.CommandPath()+" "+near)
	}
	return err.hinting("commands: %s", strings.Join(names, ", "))
}

// manyArguments is the most of a command that takes any number of them.
const manyArguments = math.MaxInt

// positional checks that a command got between least and most arguments.
func positional(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		names := strings.Fields(cmd.Use)[1:]
		switch {
		case len(args) < least:
			return usageError("%s needs %s", cmd.CommandPath(), strings.Join(names[len(args):least], " and ")).
				hinting("usage: %s", usageLine(cmd))
		case len(args) > most:
			return usageError("%s does not take the argument %q", cmd.CommandPath(), args[most]).
				hinting("usage: %s", usageLine(cmd))
		}
		return nil
	}
}

// flagError says what is wrong with a flag, and which was probably meant. It
// never repeats the value of a flag that holds a secret.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			return usageError("unknown flag -%s for %q", short, cmd.CommandPath()).
				hinting("a value that begins with a dash goes after --")
		}
		name := unknown.GetSpecifiedName()
		out := usageError("unknown flag --%s for %q", name, cmd.CommandPath())
		if near := suggest.Closest(name, flagNames(cmd)); near != "" {
			return out.hinting("did you mean --%s?", near)
		}
		return out.hinting("%s --help lists the flags", cmd.CommandPath())
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		name := invalid.GetFlag().Name
		if strings.HasSuffix(name, "token") || errors.Is(err, errGivenTwice) {
			return usageError("--%s: %w", name, invalid.Unwrap())
		}
		return usageError("--%s %q: %w", name, invalid.GetValue(), plainNumberError(invalid.Unwrap()))
	}
	return usageError("%w", err)
}

// flagNames lists the flags cmd takes, its parents' included.
func flagNames(cmd *cobra.Command) []string {
	var names []string
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	slices.Sort(names)
	return slices.Compact(names)
}

var errGivenTwice = errors.New("given more than once")

// A onceValue is a flag that may be given once: with two, which one counts is
// anybody's guess.
type onceValue struct {
	pflag.Value
	given bool
}

func (v *onceValue) Set(text string) error {
	if v.given {
		return errGivenTwice
	}
	v.given = true
	return v.Value.Set(text)
}

// onlyOnce makes a second use of a flag an error. Lists may be given in parts,
// and a switch twice says the same.
func onlyOnce(f *pflag.Flag) {
	if _, list := f.Value.(pflag.SliceValue); list || f.Value.Type() == "bool" {
		return
	}
	if _, done := f.Value.(*onceValue); !done {
		f.Value = &onceValue{Value: f.Value}
	}
}
