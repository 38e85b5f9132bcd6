package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/internal/cli/contexts"
	"github.com/felixlog/felix/internal/config/suggest"
)

func (a *App) contextCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "context",
		GroupID: groupSetUp,
		Short:   "Name connections and choose between them",
		Long: `A context is a named connection: brokers, tenant, token, authority. Commands
use the current one unless --context or FELIX_CONTEXT names another.

Contexts live in felix/config.yaml under the user's configuration directory,
readable by their owner alone; --config or FELIX_CLI_CONFIG names another file.`,
		Example: `  felix context ls
  felix context add staging --brokers 10.0.0.5:5000 --tenant t1 --token-file token --ca-file ca.pem
  felix context use staging`,
	}, a.contextAddCommand(), a.contextUseCommand(), a.contextListCommand(), a.contextRemoveCommand())
}

// noSuchContext explains a missing context as exit code 5.
func (a *App) noSuchContext(name string, file *contexts.File) *Error {
	_, err := file.Get(name)
	out := &Error{Exit: ExitNotFound, Err: err}
	names := file.Names()
	if near := suggest.Closest(name, names); near != "" {
		return out.hinting("did you mean %q?", near)
	}
	if len(names) > 0 {
		return out.hinting("contexts: %s", strings.Join(names, ", "))
	}
	return out.hinting("there are none yet; \"felix dev\" and \"felix context add\" make them")
}

// contextChange is what a change to the contexts prints with --json.
type contextChange struct {
	Context string `json:"context"`
	Action  string `json:"action"`
	Current string `json:"current"`
	File    string `json:"file"`
}

// changeContexts edits the context file and says what happened to name.
func (a *App) changeContexts(name, action string, change func(*contexts.File) error) error {
	store, err := a.contextStore()
	if err != nil {
		return err
	}
	var current string
	err = store.Update(func(f *contexts.File) error {
		err := change(f)
		current = f.Current
		if errors.Is(err, contexts.ErrNotFound) {
			return a.noSuchContext(name, f)
		}
		return err
	})
	if err != nil {
		return err
	}
	if a.flags.json {
		return printJSON(a.Stdout, contextChange{Context: name, Action: action, Current: current, File: store.Path})
	}
	fmt.Fprintf(a.Stdout, "context %q %s", name, action)
	switch current {
	case name:
		if action != "selected" {
			fmt.Fprint(a.Stdout, " and current")
		}
	case "":
		fmt.Fprint(a.Stdout, "; no context is current now")
	}
	fmt.Fprintln(a.Stdout)
	return nil
}

func (a *App) contextAddCommand() *cobra.Command {
	var use, replace bool
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Save the connection flags of this command line",
		Long: `Save the connection flags given on this command line under NAME. The first
context saved becomes the current one.

Only flags are saved, never variables of the environment. Relative file names
are saved absolute. A token given with --token is kept in the file itself;
--token-file keeps its name only, so that the token can change.`,
		Example: `  felix context add staging --brokers 10.0.0.5:5000,10.0.0.6:5000 --tenant t1 --token-file token --ca-file ca.pem
  felix context add staging --brokers 10.0.0.7:5000 --tenant t1 --token-file token --replace --use`,
		Args:        positional(1, 1),
		Annotations: map[string]string{connects: "saved"},
		RunE: func(cmd *cobra.Command, args []string) error {
			given := 0
			for _, s := range settings() {
				if cmd.Flags().Changed(s.flag) {
					given++
				}
			}
			if given == 0 {
				return usageError("a context needs at least one connection flag, such as --brokers").
					hinting("\"felix help connection\" lists them; variables of the environment are never saved")
			}
			connection := a.flags.connection
			var conflict contexts.Connection
			if err := overlay(&conflict, &connection, func(s *setting) bool { return cmd.Flags().Changed(s.flag) }, "the command line"); err != nil {
				return err
			}
			return a.changeContexts(args[0], "saved", func(f *contexts.File) error {
				err := f.Add(args[0], connection, a.Dir, replace)
				switch {
				case errors.Is(err, contexts.ErrExists):
					return (&Error{Exit: ExitUsage, Err: err}).hinting("--replace overwrites it")
				case err != nil:
					return &Error{Exit: ExitUsage, Err: err}
				case use:
					return f.Use(args[0])
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&use, "use", false, "make it the current context")
	cmd.Flags().BoolVar(&replace, "replace", false, "overwrite a context of that name")
	return cmd
}

func (a *App) contextUseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "use NAME",
		Short: "Make a context the current one",
		Long:  `Make NAME the context that commands use when no other is named.`,
		Example: `  felix context use dev
  felix context use staging`,
		Args:              positional(1, 1),
		ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.changeContexts(args[0], "selected", func(f *contexts.File) error { return f.Use(args[0]) })
		},
	}
}

func (a *App) contextRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME",
		Short: "Forget a context",
		Long: `Forget the context NAME. The files it names (token, authority) stay. When it
was the current one, none is current afterwards.`,
		Example:           `  felix context rm staging`,
		Args:              positional(1, 1),
		ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.changeContexts(args[0], "removed", func(f *contexts.File) error { return f.Remove(args[0]) })
		},
	}
}

// contextRow is a context as "context ls --json" shows it: without its secrets.
type contextRow struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	contexts.Connection
	TokenSaved bool `json:"token_saved"`
}

func (a *App) contextListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the contexts",
		Long: `List the saved contexts, the current one marked with *. Tokens are not shown.
With --json, one object a line.`,
		Example: `  felix context ls
  felix context ls --json`,
		Args: positional(0, 0),
		RunE: func(*cobra.Command, []string) error {
			store, err := a.contextStore()
			if err != nil {
				return err
			}
			file, err := store.Load()
			if err != nil {
				return &Error{Exit: ExitUsage, Err: err}
			}
			var rows [][]string
			for _, name := range file.Names() {
				c := file.Contexts[name]
				if a.flags.json {
					row := contextRow{Name: name, Current: name == file.Current, Connection: c, TokenSaved: c.HoldsSecret()}
					row.Token, row.ControlPlaneToken = "", ""
					if err := printJSON(a.Stdout, row); err != nil {
						return err
					}
					continue
				}
				mark, token := "", c.TokenFile
				if name == file.Current {
					mark = "*"
				}
				if c.Token != "" {
					token = "(saved)"
				}
				rows = append(rows, []string{mark, name, strings.Join(c.Brokers, ","), c.Tenant, c.Namespace, token})
			}
			switch {
			case a.flags.json:
				return nil
			case len(rows) == 0:
				a.remark("no contexts in %s yet; \"felix dev\" and \"felix context add\" make them", store.Path)
				return nil
			}
			return printTable(a.Stdout, []string{"", "NAME", "BROKERS", "TENANT", "NAMESPACE", "TOKEN"}, rows)
		},
	}
}
