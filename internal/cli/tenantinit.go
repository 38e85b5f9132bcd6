package cli

import (
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
			if !strings.HasPrefix(f.url, "https:") {
				by.ControlPlaneCAFile = "" // it is for the API; this listener may be without TLS on its machine
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
	return readSecret(a.abs(file), "the bootstrap token")
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
	r.IdpIssuers = []model.IdpIssuer{{
		Issuer: f.issuer, Audiences: f.audiences, JWKSURL: optional(f.jwksURL),
		ClaimMappings: model.ClaimMappings{SubjectClaim: "sub", GroupsClaim: optional(f.groups)},
	}}
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
