package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// shells are those "felix completions" knows.
func shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

func (a *App) completionsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "completions SHELL",
		GroupID: groupSetUp,
		Short:   "Print a completion script for a shell",
		Long: `Print a script that makes a shell complete the commands, flags and context
names of felix. SHELL is bash, zsh, fish or powershell.`,
		Example: `  # bash, for this session
  source <(felix completions bash)

  # bash, for good
  felix completions bash > ~/.local/share/bash-completion/completions/felix

  # zsh: a directory in $fpath
  felix completions zsh > ~/.zfunc/_felix

  # fish
  felix completions fish > ~/.config/fish/completions/felix.fish

  # PowerShell: add to the profile
  felix completions powershell >> $PROFILE`,
		Args:      positional(1, 1),
		ValidArgs: shells(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return generateCompletions(cmd.Root(), args[0], a.Stdout)
		},
	}
}

func generateCompletions(root *cobra.Command, shell string, w io.Writer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(w)
	}
	return usageError("no completions for the shell %q; there are for %s", shell, strings.Join(shells(), ", "))
}

// completeContexts offers the names of the saved contexts.
func (a *App) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	store, err := a.contextStore()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	file, err := store.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return file.Names(), cobra.ShellCompDirectiveNoFileComp
}

// choices completes a flag or an argument from a fixed list.
func choices(list ...string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}
