package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/model"
)

func (a *App) tenantCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "tenant",
		GroupID: groupControl,
		Short:   "Make, list and remove tenants",
		Long: `Make, list and remove tenants. A tenant has namespaces, identity providers,
grants and signing keys of its own, and sees nothing of other tenants. These
commands need a token that may manage tenants of the whole cluster.

"felix tenant init" begins a tenant where nobody has a token yet.`,
		Example: `  felix tenant create acme --display-name "Acme Inc."
  felix tenant ls
  felix tenant keys ls`,
	}, a.tenantListCommand(), a.tenantInfoCommand(), a.tenantCreateCommand(), a.tenantRemoveCommand(),
		a.tenantInitCommand(), a.tenantKeysCommand(), a.tenantIssuerCommand(), a.tenantRevokeCommand())
}

func (a *App) tenantListCommand() *cobra.Command {
	return a.controlVerb(&cobra.Command{
		Use:     "ls",
		Short:   "List the tenants",
		Long:    "List the tenants of the cluster with their display names. With --json each is an\nobject on a line.",
		Example: "  felix tenant ls\n  felix tenant ls --json | jq -r .tenant_id",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		all, err := c.Tenants(ctx)
		if err != nil {
			return err
		}
		return tell(a, []string{"TENANT", "DISPLAY NAME"}, all, func(t model.Tenant) []string { return []string{t.TenantID, t.DisplayName} })
	})
}

func (a *App) tenantInfoCommand() *cobra.Command {
	return a.controlVerb(&cobra.Command{
		Use:     "info TENANT",
		Short:   "Show a tenant",
		Long:    "Show one tenant. One that does not exist is exit code 5.",
		Example: "  felix tenant info acme",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		all, err := c.Tenants(ctx)
		if err != nil {
			return err
		}
		t, err := find(all, "tenant", args[0], func(t model.Tenant) bool { return t.TenantID == args[0] })
		if err != nil {
			return err
		}
		return a.facts(t, [][2]string{{"tenant", t.TenantID}, {"display name", t.DisplayName}})
	})
}

func (a *App) tenantCreateCommand() *cobra.Command {
	var display string
	cmd := a.controlVerb(&cobra.Command{
		Use:   "create TENANT",
		Short: "Make a tenant",
		Long: `Make a tenant. It has no namespace and nobody who may act in it: grants are
given with "felix rbac", by somebody who may manage all tenants, or by "felix
tenant init", which begins a tenant with its administrators.`,
		Example: `  felix tenant create acme --display-name "Acme Inc."`,
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		t, err := c.CreateTenant(ctx, model.Tenant{TenantID: args[0], DisplayName: orDefault(display, args[0])})
		if err != nil {
			return err
		}
		return a.done(t, "made tenant %s", t.TenantID)
	})
	cmd.Flags().StringVar(&display, "display-name", "", "`NAME` for people (default the tenant's own)")
	return cmd
}

func (a *App) tenantRemoveCommand() *cobra.Command {
	var yes bool
	cmd := a.controlVerb(&cobra.Command{
		Use:   "rm TENANT",
		Short: "Remove a tenant and all that is in it",
		Long: `Remove a tenant with its namespaces, streams, caches, grants and signing keys.
Its data on the brokers goes with it, and its tokens are worth nothing from then
on. It asks first, or takes --yes.`,
		Example: "  felix tenant rm acme --yes",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := a.confirm(ctx, yes, "remove tenant "+args[0]+" with all its streams, caches, grants and keys"); err != nil {
			return err
		}
		if err := c.DeleteTenant(ctx, args[0]); err != nil {
			return err
		}
		return a.done(removed{args[0]}, "removed tenant %s", args[0])
	})
	addYes(cmd, &yes)
	return cmd
}

func (a *App) tenantRevokeCommand() *cobra.Command {
	return a.tenantVerb(&cobra.Command{
		Use:   "revoke PRINCIPAL",
		Short: "End the refresh tokens of a principal",
		Long: `End every refresh token of a principal of the tenant, so that nobody can renew a
token in its name. Tokens that were given out live on until they expire, which
takes minutes. "felix whoami" shows one's own id, and "felix rbac principal"
computes that of anybody.`,
		Example: `  felix tenant revoke "$(felix rbac principal https://idp.example bob)"`,
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		n, err := c.RevokeRefreshTokens(ctx, c.tenant, args[0])
		if err != nil {
			return err
		}
		return a.done(map[string]int{"revoked": n}, "revoked %s", plural(uint64(n), "refresh token"))
	})
}
