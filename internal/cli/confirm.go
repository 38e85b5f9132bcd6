package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// addYes adds --yes to a command that asks before it takes something away.
func addYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVarP(yes, "yes", "y", false, "do it without asking")
}

// confirm asks the person at the terminal whether to do what cannot be undone:
// "delete group billing". Where nobody sits there, --yes has to be given.
func (a *App) confirm(ctx context.Context, yes bool, what string) error {
	if yes {
		return nil
	}
	if !a.StdinTTY || a.flags.json {
		return usageError("this would %s: confirm with --yes", what)
	}
	fmt.Fprintf(a.Stderr, "felix: %s? [y/N] ", what)
	answered := make(chan error, 1)
	go func() { // a read of a terminal cannot be interrupted
		line, err := bufio.NewReader(a.Stdin).ReadString('\n')
		switch answer := strings.ToLower(strings.TrimSpace(line)); {
		case err != nil && !errors.Is(err, io.EOF):
		case answer == "y" || answer == "yes":
			err = nil
		default:
			err = usageError("not done: the answer was not y")
		}
		answered <- err
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		fmt.Fprintln(a.Stderr)
		return context.Cause(ctx)
	}
}
