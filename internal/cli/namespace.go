package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/model"
)

func (a *App) namespaceCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "namespace",
		GroupID: groupControl,
		Short:   "Make, list and remove namespaces of the tenant",
		Long: `Make, list and remove the namespaces of the tenant. Streams and caches are made
inside one; grants may be given for a whole one.`,
		Example: `  felix namespace create billing
  felix namespace ls
  felix stream create orders -n billing`,
	}, a.namespaceListCommand(), a.namespaceInfoCommand(), a.namespaceCreateCommand(), a.namespaceRemoveCommand())
}

func (a *App) namespaceListCommand() *cobra.Command {
	return a.tenantVerb(&cobra.Command{
		Use:     "ls",
		Short:   "List the namespaces",
		Long:    "List the namespaces of the tenant that the token may manage. With --json each is\nan object on a line.",
		Example: "  felix namespace ls",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		all, err := c.Namespaces(ctx, c.tenant)
		if err != nil {
			return err
		}
		return tell(a, []string{"NAMESPACE", "DISPLAY NAME"}, all, func(n model.Namespace) []string { return []string{n.Namespace, n.DisplayName} })
	})
}

func (a *App) namespaceInfoCommand() *cobra.Command {
	return a.tenantVerb(&cobra.Command{
		Use:     "info NAMESPACE",
		Short:   "Show a namespace",
		Long:    "Show one namespace of the tenant. One that does not exist is exit code 5.",
		Example: "  felix namespace info billing",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		all, err := c.Namespaces(ctx, c.tenant)
		if err != nil {
			return err
		}
		n, err := find(all, "namespace", args[0], func(n model.Namespace) bool { return n.Namespace == args[0] })
		if err != nil {
			return err
		}
		return a.facts(n, [][2]string{{"tenant", n.TenantID}, {"namespace", n.Namespace}, {"display name", n.DisplayName}})
	})
}

func (a *App) namespaceCreateCommand() *cobra.Command {
	var display string
	cmd := a.tenantVerb(&cobra.Command{
		Use:     "create NAMESPACE",
		Short:   "Make a namespace",
		Long:    "Make a namespace in the tenant. It has no streams and no caches.",
		Example: "  felix namespace create billing --display-name Billing",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		n, err := c.CreateNamespace(ctx, model.Namespace{TenantID: c.tenant, Namespace: args[0], DisplayName: orDefault(display, args[0])})
		if err != nil {
			return err
		}
		return a.done(n, "made namespace %s", n.Namespace)
	})
	cmd.Flags().StringVar(&display, "display-name", "", "`NAME` for people (default the namespace's own)")
	return cmd
}

func (a *App) namespaceRemoveCommand() *cobra.Command {
	var yes bool
	cmd := a.tenantVerb(&cobra.Command{
		Use:     "rm NAMESPACE",
		Short:   "Remove a namespace and all that is in it",
		Long:    "Remove a namespace with its streams and caches and their data on the brokers. It\nasks first, or takes --yes.",
		Example: "  felix namespace rm billing --yes",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := a.confirm(ctx, yes, "remove namespace "+args[0]+" with its streams, caches and their data"); err != nil {
			return err
		}
		if err := c.DeleteNamespace(ctx, model.NamespaceKey{TenantID: c.tenant, Namespace: args[0]}); err != nil {
			return err
		}
		return a.done(removed{args[0]}, "removed namespace %s", args[0])
	})
	addYes(cmd, &yes)
	return cmd
}
