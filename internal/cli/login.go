package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/spf13/cobra"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/internal/cli/contexts"
)

type loginFlags struct {
	issuer, clientID, secretFile, idToken, audience string
	scopes                                          []string
	context                                         string
	readOnly                                        bool
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
	flags.StringVar(&f.context, "save", "", "keep the connection as the context `NAME`, and select it")
	flags.BoolVar(&f.readOnly, "broker-only", false, "get no token for the control plane")
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
	api, err := a.openAPI(&by, by.ControlPlaneURL)
	if err != nil {
		return err
	}
	defer api.CloseIdle()
	upstream, err := a.upstreamToken(ctx, f)
	if err != nil {
		return err
	}
	name := orDefault(f.context, by.ContextName)
	dir, err := a.loginDir(orDefault(name, by.Tenant))
	if err != nil {
		return err
	}
	by.Connection.Token, by.Connection.ControlPlaneToken = "", ""
	by.TokenFile = filepath.Join(dir, "broker.token")
	body, err := exchange(ctx, api, by.Tenant, upstream, apiclient.AudienceBroker, by.TokenFile)
	if err != nil {
		return explainControl(ctx, err)
	}
	if !f.readOnly {
		file := filepath.Join(dir, "controlplane.token")
		if _, err := exchange(ctx, api, by.Tenant, upstream, apiclient.AudienceControlPlane, file); err != nil {
			return explainControl(ctx, err)
		}
		by.ControlPlaneTokenFile = file
	}
	got := loggedIn{Tenant: by.Tenant, Subject: body.Subject, Context: name, TokenFile: by.TokenFile, Control: by.ControlPlaneTokenFile}
	if name != "" {
		if err := a.saveLogin(name, by.Connection, f.context != ""); err != nil {
			return err
		}
		return a.done(got, "logged in to tenant %s as %s; the context %s has the tokens", by.Tenant, body.Subject, name)
	}
	return a.done(got, "logged in to tenant %s as %s; the token is in %s", by.Tenant, body.Subject, by.TokenFile)
}

// exchange gets a Felix token for an audience and keeps it in file.
func exchange(ctx context.Context, api *apiclient.Client, tenant, upstream, audience, file string) (tokenBody, error) {
	got, err := api.Exchange(ctx, tenant, upstream, apiclient.ExchangeRequest{Audience: audience})
	if err != nil {
		return tokenBody{}, err
	}
	_, body, err := decodeToken(got.FelixToken)
	if err != nil {
		return body, fmt.Errorf("the control plane's answer: %w", err)
	}
	return body, keepTokens(file, &got)
}

// loginDir is where the tokens of a login are kept.
func (a *App) loginDir(name string) (string, error) {
	if state := a.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "felix", "logins", name), nil
	}
	home := a.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", usageError("there is no home directory to keep tokens in").hinting("set XDG_STATE_HOME")
	}
	return filepath.Join(home, ".local", "state", "felix", "logins", name), nil
}

// saveLogin keeps the connection of a login in its context.
func (a *App) saveLogin(name string, c contexts.Connection, selected bool) error {
	store, err := a.contextStore()
	if err != nil {
		return err
	}
	err = store.Update(func(file *contexts.File) error {
		if err := file.Add(name, c, filepath.Dir(store.Path), true); err != nil {
			return err
		}
		if selected {
			return file.Use(name)
		}
		return nil
	})
	if err != nil {
		return &Error{Exit: ExitUsage, Err: err}
	}
	return nil
}

// providerTimeout bounds one call to an identity provider.
const providerTimeout = 15 * time.Second

// maxProviderAnswer bounds its answer in bytes.
const maxProviderAnswer = 1 << 20

// boundedTransport cuts answers that are too long.
type boundedTransport struct{ http.RoundTripper }

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxProviderAnswer), res.Body}
	}
	return res, err
}

// upstreamToken is a token of the identity provider, by the flow that the flags
// ask for.
func (a *App) upstreamToken(ctx context.Context, f *loginFlags) (string, error) {
	if f.idToken != "" {
		return a.givenToken(f.idToken)
	}
	if f.issuer == "" || f.clientID == "" {
		return "", usageError("no identity provider").hinting("give --issuer and --client-id, or --id-token-file")
	}
	ctx = oidc.ClientContext(ctx, &http.Client{Timeout: providerTimeout, Transport: boundedTransport{http.DefaultTransport}})
	provider, err := oidc.NewProvider(ctx, f.issuer)
	if err != nil {
		return "", &Error{Exit: ExitUnreachable, Err: fmt.Errorf("identity provider: %w", err)}
	}
	if f.secretFile != "" {
		return a.clientCredentials(ctx, f, provider)
	}
	return a.deviceFlow(ctx, f, provider)
}

func (a *App) givenToken(file string) (string, error) {
	from := a.Stdin
	if file != "-" {
		opened, err := os.Open(a.abs(file))
		if err != nil {
			return "", usageError("read the provider's token: %w", err)
		}
		defer opened.Close()
		from = opened
	}
	data, err := io.ReadAll(io.LimitReader(from, maxTokenBytes))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if token == "" {
		return "", usageError("the provider's token is empty")
	}
	return token, nil
}

// clientCredentials is for programs: the provider's access token is a token of
// the program.
func (a *App) clientCredentials(ctx context.Context, f *loginFlags, provider *oidc.Provider) (string, error) {
	secret, err := os.ReadFile(a.abs(f.secretFile))
	if err != nil {
		return "", usageError("read the client secret: %w", err)
	}
	c := clientcredentials.Config{
		ClientID: f.clientID, ClientSecret: strings.TrimSpace(string(secret)), TokenURL: provider.Endpoint().TokenURL,
		Scopes: withoutOpenID(f.scopes),
	}
	if f.audience != "" {
		c.EndpointParams = map[string][]string{"audience": {f.audience}}
	}
	token, err := c.Token(ctx)
	if err != nil {
		return "", providerError(ctx, err)
	}
	return idTokenOf(token), nil
}

// withoutOpenID drops the scope of persons.
func withoutOpenID(scopes []string) []string {
	return keep(scopes, func(s string) bool { return s != oidc.ScopeOpenID })
}

// deviceFlow shows a person a code, and waits until it was entered.
func (a *App) deviceFlow(ctx context.Context, f *loginFlags, provider *oidc.Provider) (string, error) {
	c := oauth2.Config{ClientID: f.clientID, Endpoint: provider.Endpoint(), Scopes: f.scopes}
	if c.Endpoint.DeviceAuthURL == "" {
		return "", usageError("the identity provider has no device flow").
			hinting("get a token from it in another way and give it with --id-token-file")
	}
	var options []oauth2.AuthCodeOption
	if f.audience != "" {
		options = append(options, oauth2.SetAuthURLParam("audience", f.audience))
	}
	code, err := c.DeviceAuth(ctx, options...)
	if err != nil {
		return "", providerError(ctx, err)
	}
	fmt.Fprintf(a.Stderr, "To log in, open %s\nand enter the code %s\n", code.VerificationURI, code.UserCode)
	token, err := c.DeviceAccessToken(ctx, code)
	if err != nil {
		return "", providerError(ctx, err)
	}
	return idTokenOf(token), nil
}

// idTokenOf is the token that says who somebody is; a provider that gives none
// says it with the access token.
func idTokenOf(token *oauth2.Token) string {
	if id, ok := token.Extra("id_token").(string); ok && id != "" {
		return id
	}
	return token.AccessToken
}

// providerError says what an identity provider refused, without what it was
// shown.
func providerError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		return &Error{Exit: ExitRefused, Err: fmt.Errorf("the identity provider refused: %s", orDefault(refused.ErrorDescription, orDefault(refused.ErrorCode, refused.Response.Status)))}
	}
	return &Error{Exit: ExitUnreachable, Err: fmt.Errorf("identity provider: %w", err)}
}
