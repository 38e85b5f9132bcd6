package cli

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/internal/auth"
)

type initFlags struct {
	url, tokenFile, display  string
	issuer, jwksURL, groups  string
	audiences, admins, users []string
	brokers, brokerGroups    []string
	operator                 bool
}

// bootstrapToken is the variable that holds the bootstrap token.
const bootstrapToken = "FELIX_BOOTSTRAP_TOKEN"

func (a *App) tenantInitCommand() *cobra.Command {
	f := initFlags{}
	cmd := &cobra.Command{
		Use:   "init TENANT",
		Short: "Begin a tenant where nobody has a token yet",
		Long: `Begin a tenant on the bootstrap listener of a control plane: make it, trust an
identity provider, make a signing key, and make users administrators. It can be
done once for a tenant. The listener is switched on by FELIX_BOOTSTRAP_ENABLED
and asks for the secret of FELIX_BOOTSTRAP_TOKEN, which is read here from
--bootstrap-token-file or the variable of the same name.

An administrator is given as the subject of the provider's tokens (--admin) or
as a group of the provider (--admin-group).

With --operator the administrators may manage the whole cluster: tenants and
nodes. --broker and --broker-group name those as whom brokers show up, who may
see the cluster and register nodes. There is no other way to these rights, so
begin with an operator's tenant.`,
		Example: `  felix tenant init ops --operator --bootstrap-url http://127.0.0.1:9095 \
    --issuer https://idp.example --audience felix --admin alice --broker-group felix-brokers`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, args []string) error {
			by, err := a.resolve(cmd.Flags())
			if err != nil {
				return err
			}
			api, err := a.openAPI(&by, f.url)
			if err != nil {
				return err
			}
			defer api.CloseIdle()
			token, err := a.bootstrapSecret(f.tokenFile)
			if err != nil {
				return err
			}
			request, err := f.request(args[0])
			if err != nil {
				return err
			}
			got, err := api.Bootstrap(cmd.Context(), args[0], token, request)
			if err != nil {
				return explainControl(cmd.Context(), err)
			}
			return a.done(got, "tenant %s has begun; its keys are at %s", got.TenantID, got.JWKSURL)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "bootstrap-url", "http://127.0.0.1:9095", "base `URL` of the bootstrap listener")
	flags.StringVar(&f.tokenFile, "bootstrap-token-file", "", "`FILE` that holds the bootstrap token (else env "+bootstrapToken+")")
	flags.StringVar(&f.display, "display-name", "", "`NAME` for people (default the tenant's own)")
	flags.StringVar(&f.issuer, "issuer", "", "issuer `URL` of the identity provider")
	flags.StringSliceVar(&f.audiences, "audience", nil, "`AUDIENCE` of the provider's tokens, and further ones")
	flags.StringVar(&f.jwksURL, "jwks-url", "", "`URL` of the provider's keys (default found by discovery)")
	flags.StringVar(&f.groups, "groups-claim", "", "`CLAIM` that lists a user's groups")
	flags.StringSliceVar(&f.users, "admin", nil, "`SUBJECT` that administers the tenant, and further ones")
	flags.StringSliceVar(&f.admins, "admin-group", nil, "`GROUP` of the provider that administers the tenant, and further ones")
	flags.BoolVar(&f.operator, "operator", false, "the administrators manage the whole cluster, too")
	flags.StringSliceVar(&f.brokers, "broker", nil, "`SUBJECT` as which brokers show up, and further ones")
	flags.StringSliceVar(&f.brokerGroups, "broker-group", nil, "`GROUP` of the provider that brokers are in, and further ones")
	return cmd
}

// bootstrapSecret is the bootstrap token from a file or the environment.
func (a *App) bootstrapSecret(file string) (string, error) {
	if file == "" {
		if token := a.Getenv(bootstrapToken); token != "" {
			return token, nil
		}
		return "", usageError("no bootstrap token").hinting("give --bootstrap-token-file, or set %s", bootstrapToken)
	}
	data, err := os.ReadFile(a.abs(file))
	if err != nil {
		return "", usageError("read the bootstrap token: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// adminRole is the role that administrators get (control plane 17).
const adminRole = "role:tenant-admin"

// brokerRole may see the cluster and register nodes.
const brokerRole = "role:broker"

func (f *initFlags) request(tenant string) (apiclient.BootstrapRequest, error) {
	r := apiclient.BootstrapRequest{DisplayName: orDefault(f.display, tenant)}
	if f.issuer == "" {
		return r, usageError("no identity provider").hinting("give --issuer and --audience")
	}
	if len(f.audiences) == 0 {
		return r, usageError("no audience").hinting("give --audience: what the provider's tokens for Felix have as aud")
	}
	if len(f.users)+len(f.admins) == 0 {
		return r, usageError("no administrator").hinting("give --admin SUBJECT or --admin-group GROUP")
	}
	issuer := model.IdpIssuer{Issuer: f.issuer, Audiences: f.audiences, ClaimMappings: model.ClaimMappings{SubjectClaim: "sub"}}
	if f.jwksURL != "" {
		issuer.JWKSURL = &f.jwksURL
	}
	if f.groups != "" {
		issuer.ClaimMappings.GroupsClaim = &f.groups
	}
	r.IdpIssuers = []model.IdpIssuer{issuer}
	for _, subject := range f.users {
		r.InitialAdminPrincipals = append(r.InitialAdminPrincipals, auth.PrincipalID(f.issuer, subject))
	}
	for _, group := range f.admins {
		r.InitialAdminPrincipals = append(r.InitialAdminPrincipals, "group:"+f.issuer+"#"+group)
	}
	if f.operator {
		for _, action := range []string{"tenant.manage", "node.view", "node.manage"} {
			r.Policies = append(r.Policies, model.Policy{Subject: adminRole, Object: "cluster:*", Action: action})
		}
	}
	if len(f.brokers)+len(f.brokerGroups) > 0 {
		for _, action := range []string{"node.view", "node.manage"} {
			r.Policies = append(r.Policies, model.Policy{Subject: brokerRole, Object: "cluster:*", Action: action})
		}
	}
	for _, subject := range f.brokers {
		r.Groupings = append(r.Groupings, model.Grouping{User: auth.PrincipalID(f.issuer, subject), Role: brokerRole})
	}
	for _, group := range f.brokerGroups {
		r.Groupings = append(r.Groupings, model.Grouping{User: "group:" + f.issuer + "#" + group, Role: brokerRole})
	}
	return r, nil
}

func (a *App) tenantKeysCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "keys",
		Short: "Rotate the signing keys of the tenant",
		Long: `Rotate the keys that sign the tenant's tokens, without a moment in which a token
is refused: stage a new key, wait until brokers know it (a minute; an hour for
brokers of others), activate it, wait as long as a token lives, and retire the
old one.`,
		Example: `  felix tenant keys stage
  felix tenant keys activate 7d1c...
  felix tenant keys retire 0b9a...`,
	}, a.keysVerb("ls", "List the signing keys", "List the ids of the keys that verify the tenant's tokens, and which one signs.",
		func(ctx context.Context, c *control, _ string) (apiclient.Keys, error) {
			return c.SigningKeys(ctx, c.tenant)
		}),
		a.keysVerb("stage", "Make a key that verifies and does not sign yet", "Make a new key. It is published at once and does not sign until it is activated.",
			func(ctx context.Context, c *control, _ string) (apiclient.Keys, error) {
				return c.StageSigningKey(ctx, c.tenant)
			}),
		a.keysVerb("activate KEY", "Let a key sign", "Let a key sign from now on. The one before goes on verifying.",
			func(ctx context.Context, c *control, kid string) (apiclient.Keys, error) {
				return c.ActivateSigningKey(ctx, c.tenant, kid)
			}),
		a.keysVerb("retire KEY", "Forget a key", "Forget a key. Tokens that it signed are refused from then on. The key that signs\ncannot be retired.",
			func(ctx context.Context, c *control, kid string) (apiclient.Keys, error) {
				return c.RetireSigningKey(ctx, c.tenant, kid)
			}))
}

func (a *App) keysVerb(use, short, long string, do func(ctx context.Context, c *control, kid string) (apiclient.Keys, error)) *cobra.Command {
	args := strings.Count(use, " ")
	example := strings.Replace(use, "KEY", "7d1c52f0aa0e4f1f9d3c6a5b2e8f7a10", 1)
	return a.controlVerb(&cobra.Command{Use: use, Short: short, Long: long, Example: "  felix tenant keys " + example}, args, args,
		func(ctx context.Context, c *control, args []string) error {
			if err := c.needTenant(); err != nil {
				return err
			}
			kid := ""
			if len(args) > 0 {
				kid = args[0]
			}
			keys, err := do(ctx, c, kid)
			if err != nil {
				return err
			}
			if a.flags.json {
				return printJSON(a.Stdout, keys)
			}
			return tell(a, []string{"KEY", "SIGNS"}, keys.Verifying, func(kid string) []string { return []string{kid, yesNo(kid == keys.Current)} })
		})
}

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
	cmd := a.controlVerb(&cobra.Command{
		Use:     "add ISSUER",
		Short:   "Trust an identity provider",
		Long:    "Trust an identity provider, or change what is known of one. Its keys are found\nby discovery unless --jwks-url says where they are.",
		Example: "  felix tenant issuer add https://idp.example --audience felix --groups-claim groups",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := c.needTenant(); err != nil {
			return err
		}
		if len(audiences) == 0 {
			return usageError("no audience").hinting("give --audience: what the provider's tokens for Felix have as aud")
		}
		optional := func(text string) *string {
			if text == "" {
				return nil
			}
			return &text
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
	cmd := a.controlVerb(&cobra.Command{
		Use:     "rm ISSUER",
		Short:   "Distrust an identity provider",
		Long:    "Trust an identity provider no longer: its users get no new tokens. It asks\nfirst, or takes --yes.",
		Example: "  felix tenant issuer rm https://idp.example --yes",
	}, 1, 1, func(ctx context.Context, c *control, args []string) error {
		if err := c.needTenant(); err != nil {
			return err
		}
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
