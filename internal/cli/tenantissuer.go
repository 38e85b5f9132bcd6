package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/model"
)

func (a *App) tenantIssuerCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:     "issuer",
		Short:   "Trust and distrust identity providers",
		Long:    "Say which identity providers the tenant trusts. Whoever controls a provider's\nkeys can speak for all its users, so changing or removing one takes a token that\nmay manage tenants of the whole cluster.",
		Example: "  felix tenant issuer add https://idp.example --audience felix",
	}, a.issuerAddCommand(), a.issuerRemoveCommand())
}

func (a *App) issuerAddCommand() *cobra.Command {
	var audiences []string
	var jwks, discovery, subject, groups string
	cmd := a.tenantVerb(&cobra.Command{
		Use:     "add ISSUER",
		Short:   "Trust an identity provider",
		Long:    "Trust an identity provider, or change what is known of one. Its keys are found\nby discovery unless --jwks-url says where they are.",
		Example: "  felix tenant issuer add https://idp.example --audience felix --groups-claim groups",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if len(audiences) == 0 {
			return usageError("no audience").hinting("give --audience: what the provider's tokens for Felix have as aud")
		}
		issuer := model.IdpIssuer{
			Issuer: args[0], Audiences: audiences, DiscoveryURL: optional(discovery), JWKSURL: optional(jwks),
			ClaimMappings: model.ClaimMappings{SubjectClaim: subject, GroupsClaim: optional(groups)},
		}
		if err := c.PutIssuer(ctx, c.tenant, issuer); err != nil {
			return err
		}
		return a.done(issuer, "%s trusts %s", c.tenant, args[0])
	})
	flags := cmd.Flags()
	flags.StringSliceVar(&audiences, "audience", nil, "`AUDIENCE` of the provider's tokens, and further ones")
	flags.StringVar(&jwks, "jwks-url", "", "`URL` of the provider's keys (default found by discovery)")
	flags.StringVar(&discovery, "discovery-url", "", "`URL` of the provider's discovery document (default under the issuer)")
	flags.StringVar(&subject, "subject-claim", "sub", "`CLAIM` that names a user")
	flags.StringVar(&groups, "groups-claim", "", "`CLAIM` that lists a user's groups")
	return cmd
}

func (a *App) issuerRemoveCommand() *cobra.Command {
	var yes bool
	cmd := a.tenantVerb(&cobra.Command{
		Use:     "rm ISSUER",
		Short:   "Distrust an identity provider",
		Long:    "Trust an identity provider no longer: its users get no new tokens. It asks\nfirst, or takes --yes.",
		Example: "  felix tenant issuer rm https://idp.example --yes",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := a.confirm(ctx, yes, "distrust "+args[0]); err != nil {
			return err
		}
		if err := c.DeleteIssuer(ctx, c.tenant, args[0]); err != nil {
			return err
		}
		return a.done(removed{args[0]}, "%s trusts %s no longer", c.tenant, args[0])
	})
	addYes(cmd, &yes)
	return cmd
}

// optional is text that may be left out.
func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
