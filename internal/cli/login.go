package cli

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/internal/cli/contexts"
)

type loginFlags struct {
	issuer, clientID, secretFile, idToken, audience string
	scopes                                          []string
	save                                            string
	brokerOnly                                      bool
}

func (a *App) loginCommand() *cobra.Command {
	f := loginFlags{}
	cmd := &cobra.Command{
		Use:     "login",
		GroupID: groupControl,
		Short:   "Get tokens with an identity of your organisation",
		Long: `Get tokens of Felix for an identity of your organisation's identity provider,
and keep them for the context that is in use, or the one named by --save. They
are renewed as they expire, until the login itself ends after 30 days.

A person is shown a code and a page to enter it at (the device flow). A program
gives --client-secret-file (the client credentials flow). A token that the
provider gave otherwise is taken with --id-token-file, - for standard input.

The connection must name the control plane and the tenant.`,
		Example: `  felix login --issuer https://idp.example --client-id felix --controlplane-url https://felix.example --tenant acme --save acme

  # a program
  felix login --issuer https://idp.example --client-id billing --client-secret-file secret

  # with a token at hand
  felix login --id-token-file token.jwt`,
		Args:        positional(0, 0),
		Annotations: map[string]string{connects: "yes"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.login(cmd, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.issuer, "issuer", "", "issuer `URL` of the identity provider")
	flags.StringVar(&f.clientID, "client-id", "", "`ID` under which the provider knows the command line, or the program")
	flags.StringVar(&f.secretFile, "client-secret-file", "", "`FILE` with a program's secret")
	flags.StringSliceVar(&f.scopes, "scope", []string{"openid"}, "`SCOPE` to ask for, and further ones")
	flags.StringVar(&f.audience, "audience", "", "`AUDIENCE` to ask for, where the provider wants to be told")
	flags.StringVar(&f.idToken, "id-token-file", "", "`FILE` with a token of the provider; - for standard input")
	flags.StringVar(&f.save, "save", "", "keep the connection as the context `NAME`, and select it")
	flags.BoolVar(&f.brokerOnly, "broker-only", false, "get no token for the control plane")
	return cmd
}

// loggedIn is what "felix login --json" prints.
type loggedIn struct {
	Tenant    string `json:"tenant"`
	Subject   string `json:"subject"`
	Context   string `json:"context,omitempty"`
	TokenFile string `json:"token_file"`
	Control   string `json:"controlplane_token_file,omitempty"`
}

func (a *App) login(cmd *cobra.Command, f *loginFlags) error {
	ctx := cmd.Context()
	by, err := a.resolve(cmd.Flags())
	if err != nil {
		return err
	}
	if by.Tenant == "" {
		return usageError("no tenant to log in to").hinting("give --tenant, or choose a context that names one")
	}
	name := orDefault(f.save, by.ContextName)
	dir, err := a.loginDir(name, by.Tenant)
	if err != nil {
		return err
	}
	api, err := a.openAPI(&by, by.ControlPlaneURL)
	if err != nil {
		return err
	}
	defer api.CloseIdle()
	upstream, err := a.upstreamToken(ctx, f)
	if err != nil {
		return err
	}
	files := map[string]string{apiclient.AudienceBroker: filepath.Join(dir, "broker.token")}
	if !f.brokerOnly {
		files[apiclient.AudienceControlPlane] = filepath.Join(dir, "controlplane.token")
	}
	subject, err := exchange(ctx, api, by.Tenant, upstream, files)
	if err != nil {
		return explainControl(ctx, err)
	}
	got := loggedIn{
		Tenant: by.Tenant, Subject: subject, Context: name,
		TokenFile: files[apiclient.AudienceBroker], Control: files[apiclient.AudienceControlPlane],
	}
	if name == "" {
		return a.done(got, "logged in to tenant %s as %s; the token is in %s", by.Tenant, subject, got.TokenFile)
	}
	if err := a.saveLogin(&by, &got, f.save != ""); err != nil {
		return err
	}
	return a.done(got, "logged in to tenant %s as %s; the context %s has the tokens", by.Tenant, subject, name)
}

// exchange gets a Felix token for each audience of files and keeps them there:
// all of them or none, so that two logins never mix. It returns whom the tokens
// speak for.
func exchange(ctx context.Context, api *apiclient.Client, tenant, upstream string, files map[string]string) (subject string, err error) {
	answers := make(map[string]*apiclient.TokenResponse)
	for audience, file := range files {
		got, err := api.Exchange(ctx, tenant, upstream, apiclient.ExchangeRequest{Audience: audience})
		if err != nil {
			return "", err
		}
		_, body, err := decodeToken(got.FelixToken)
		if err != nil {
			return "", fmt.Errorf("the control plane's answer: %w", err)
		}
		answers[file], subject = &got, body.Subject
	}
	for file, got := range answers {
		if err := keepTokens(file, got); err != nil {
			return "", err
		}
	}
	return subject, nil
}

// loginDir is where the tokens of a login are kept: by the context, or where
// there is none by the tenant, which no name of a context can look like.
func (a *App) loginDir(name, tenant string) (string, error) {
	if name == "" {
		name = "@" + url.PathEscape(tenant)
	} else if err := contexts.CheckName(name); err != nil {
		return "", &Error{Exit: ExitUsage, Err: err}
	}
	state := a.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := a.Getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", usageError("there is no home directory to keep tokens in").hinting("set XDG_STATE_HOME")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "felix", "logins", name), nil
}

// saveLogin keeps the connection of a login in its context. Of the environment
// it keeps only what the tokens are for: their tenant and their control plane.
func (a *App) saveLogin(by *resolved, got *loggedIn, selected bool) error {
	store, err := a.contextStore()
	if err != nil {
		return err
	}
	err = store.Update(func(file *contexts.File) error {
		c := by.Saved
		c.Tenant, c.ControlPlaneURL, c.ControlPlaneCAFile = by.Tenant, by.ControlPlaneURL, by.ControlPlaneCAFile
		c.Token, c.TokenFile = "", got.TokenFile
		c.ControlPlaneToken, c.ControlPlaneTokenFile = "", got.Control
		if err := file.Add(got.Context, c, filepath.Dir(store.Path), true); err != nil {
			return err
		}
		if selected {
			return file.Use(got.Context)
		}
		return nil
	})
	if err != nil {
		return &Error{Exit: ExitUsage, Err: err}
	}
	return nil
}
