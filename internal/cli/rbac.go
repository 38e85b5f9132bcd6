package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
	"github.com/felixlog/felix/internal/auth"
)

func (a *App) rbacCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "rbac",
		GroupID: groupControl,
		Short:   "Give and take rights in the tenant",
		Long: `Give and take rights in the tenant. A policy lets a subject do an action to an
object; a grouping gives a user a role, which is a subject too. A user is a
principal, or a group of the identity provider, group:ISSUER#GROUP.

An object is tenant:T, namespace:T/N, stream:T/N/S, cache:T/N/C or
group:T/N/S/G, with * for every name of a part. docs/auth.md has the actions.`,
		Example: `  felix rbac policy add role:reader 'stream:acme/default/*' stream.subscribe
  felix rbac grouping add "$(felix rbac principal https://idp.example alice)" role:reader`,
	}, a.rbacPolicyCommand(), a.rbacGroupingCommand(), a.rbacPrincipalCommand())
}

func (a *App) rbacPolicyCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "policy",
		Short:   "What subjects may do",
		Long:    "List, add and remove what subjects may do in the tenant.",
		Example: "  felix rbac policy ls --subject role:reader",
	}, a.rbacPolicyListCommand(), a.rbacPolicyChange("add"), a.rbacPolicyChange("rm"))
}

func (a *App) rbacPolicyListCommand() *cobra.Command {
	var subject string
	cmd := a.tenantVerb(&cobra.Command{
		Use:     "ls",
		Short:   "List the policies",
		Long:    "List the policies of the tenant, as far as the token shows them. With --json\neach is an object on a line.",
		Example: "  felix rbac policy ls --subject role:reader",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		all, err := c.Policies(ctx, c.tenant)
		if err != nil {
			return err
		}
		shown := keep(all, func(p model.Policy) bool { return subject == "" || p.Subject == subject })
		return tell(a, []string{"SUBJECT", "OBJECT", "ACTION"}, shown, func(p model.Policy) []string { return []string{p.Subject, p.Object, p.Action} })
	})
	cmd.Flags().StringVar(&subject, "subject", "", "only those of `SUBJECT`")
	return cmd
}

// rbacPolicyChange is "add" or "rm".
func (a *App) rbacPolicyChange(verb string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "add SUBJECT OBJECT ACTION",
		Short:   "Let a subject do something",
		Long:    "Let a subject do an action to an object. Whoever gives a right must be allowed\nto administer what it is about. A policy that is there already stays.",
		Example: "  felix rbac policy add role:reader 'stream:acme/default/*' stream.subscribe",
	}
	if verb == "rm" {
		cmd = &cobra.Command{
			Use:     "rm SUBJECT OBJECT ACTION",
			Short:   "Take a right away",
			Long:    "Take a policy away, written as it was given. Tokens that were given out keep\ntheir rights until they expire, which takes minutes.",
			Example: "  felix rbac policy rm role:reader 'stream:acme/default/*' stream.subscribe",
		}
	}
	return a.tenantVerb(cmd, 3, 3, func(ctx context.Context, c *control, args []string) error {
		p := model.Policy{Subject: args[0], Object: args[1], Action: args[2]}
		if verb == "rm" {
			if err := c.RemovePolicy(ctx, c.tenant, p); err != nil {
				return err
			}
			return a.done(p, "%s may no longer %s %s", p.Subject, p.Action, p.Object)
		}
		if err := checkRule(p); err != nil {
			return err
		}
		if err := c.AddPolicy(ctx, c.tenant, p); err != nil {
			return err
		}
		return a.done(p, "%s may %s %s", p.Subject, p.Action, p.Object)
	})
}

// checkRule finds what is wrong with a policy before anybody is asked. To take
// one away it need not be right.
func checkRule(p model.Policy) error {
	if _, known := rbac.ParseAction(p.Action); !known {
		return usageError("unknown action %q", p.Action).hinting("docs/auth.md lists the actions")
	}
	if _, err := rbac.ParseRule(p.Action, p.Object); err != nil {
		return usageError("object %q: %w", p.Object, err).hinting("\"felix rbac --help\" shows how objects are written")
	}
	return nil
}

func (a *App) rbacGroupingCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "grouping",
		Short:   "Who has which role",
		Long:    "List, add and remove who has which role in the tenant.",
		Example: "  felix rbac grouping ls --role role:reader",
	}, a.rbacGroupingListCommand(), a.rbacGroupingChange("add"), a.rbacGroupingChange("rm"))
}

func (a *App) rbacGroupingListCommand() *cobra.Command {
	var user, role string
	cmd := a.tenantVerb(&cobra.Command{
		Use:     "ls",
		Short:   "List who has which role",
		Long:    "List the groupings of the tenant, as far as the token shows them. With --json\neach is an object on a line.",
		Example: "  felix rbac grouping ls --role role:reader",
	}, 0, 0, func(ctx context.Context, c *control, _ []string) error {
		all, err := c.Groupings(ctx, c.tenant)
		if err != nil {
			return err
		}
		shown := keep(all, func(g model.Grouping) bool { return (user == "" || g.User == user) && (role == "" || g.Role == role) })
		return tell(a, []string{"USER", "ROLE"}, shown, func(g model.Grouping) []string { return []string{g.User, g.Role} })
	})
	cmd.Flags().StringVar(&user, "user", "", "only those of `USER`")
	cmd.Flags().StringVar(&role, "role", "", "only those of `ROLE`")
	return cmd
}

// rbacGroupingChange is "add" or "rm".
func (a *App) rbacGroupingChange(verb string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "add USER ROLE",
		Short:   "Give a user a role",
		Long:    "Give a user a role. Whoever does so must be allowed to hand out everything that\nthe role may. A grouping that is there already stays.",
		Example: "  felix rbac grouping add group:https://idp.example#ops role:operator",
	}
	if verb == "rm" {
		cmd = &cobra.Command{
			Use:     "rm USER ROLE",
			Short:   "Take a role away",
			Long:    "Take a role away from a user. Tokens that were given out keep their rights until\nthey expire, which takes minutes.",
			Example: "  felix rbac grouping rm group:https://idp.example#ops role:operator",
		}
	}
	return a.tenantVerb(cmd, 2, 2, func(ctx context.Context, c *control, args []string) error {
		g := model.Grouping{User: args[0], Role: args[1]}
		if verb == "rm" {
			if err := c.RemoveGrouping(ctx, c.tenant, g); err != nil {
				return err
			}
			return a.done(g, "%s has %s no longer", g.User, g.Role)
		}
		if err := c.AddGrouping(ctx, c.tenant, g); err != nil {
			return err
		}
		return a.done(g, "%s has %s", g.User, g.Role)
	})
}

func (a *App) rbacPrincipalCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "principal ISSUER SUBJECT",
		Short: "Compute the id of a principal",
		Long: `Compute the id under which a user of an identity provider is known: from the
issuer of its tokens and their subject, both exactly as the provider writes
them. It asks nobody.`,
		Example:           "  felix rbac principal https://idp.example alice",
		Args:              positional(2, 2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			id := auth.PrincipalID(args[0], args[1])
			if a.flags.json {
				return printJSON(a.Stdout, map[string]string{"principal": id})
			}
			_, err := fmt.Fprintln(a.Stdout, id)
			return err
		},
	}
}
