package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// The bounds of one call to an identity provider and of its answer, and of how
// long a person may take to enter a code.
const (
	providerTimeout   = 15 * time.Second
	maxProviderAnswer = 1 << 20 // bytes
	maxProviderWords  = 300     // characters of what it says that are repeated
	longestCode       = 30 * time.Minute
)

// upstreamToken is a token of the identity provider, by the flow that the flags
// ask for.
func (a *App) upstreamToken(ctx context.Context, f *loginFlags) (string, error) {
	if f.idToken != "" {
		return a.readSecretOrStdin(f.idToken, "the provider's token")
	}
	if f.issuer == "" || f.clientID == "" {
		return "", usageError("no identity provider").hinting("give --issuer and --client-id, or --id-token-file")
	}
	secret := ""
	if f.secretFile != "" {
		var err error
		if secret, err = readSecret(a.abs(f.secretFile), "the client secret"); err != nil {
			return "", err
		}
	}
	client := providerClient(ctx)
	defer client.CloseIdleConnections()
	ctx = oidc.ClientContext(ctx, client)
	provider, err := oidc.NewProvider(ctx, f.issuer)
	if err != nil {
		return "", providerError(ctx, err)
	}
	if secret != "" {
		return clientCredentials(ctx, f, provider, secret)
	}
	return a.deviceFlow(ctx, f, provider)
}

// clientCredentials is for programs: the provider's access token is a token of
// the program.
func clientCredentials(ctx context.Context, f *loginFlags, provider *oidc.Provider, secret string) (string, error) {
	c := clientcredentials.Config{
		ClientID: f.clientID, ClientSecret: secret, TokenURL: provider.Endpoint().TokenURL,
		Scopes: keep(f.scopes, func(s string) bool { return s != oidc.ScopeOpenID }), // which is for persons
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

// deviceFlow shows a person a code, and waits until it was entered.
func (a *App) deviceFlow(ctx context.Context, f *loginFlags, provider *oidc.Provider) (string, error) {
	c := oauth2.Config{ClientID: f.clientID, Endpoint: provider.Endpoint(), Scopes: f.scopes}
	if c.Endpoint.DeviceAuthURL == "" {
		return "", usageError("the identity provider has no device flow").
			hinting("get a token from it in another way and give it with --id-token-file")
	}
	// There is no secret to show. Trying out how to show it would double each
	// question, and providers answer that with slow_down.
	c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	var options []oauth2.AuthCodeOption
	if f.audience != "" {
		options = append(options, oauth2.SetAuthURLParam("audience", f.audience))
	}
	code, err := c.DeviceAuth(ctx, options...)
	if err != nil {
		return "", providerError(ctx, err)
	}
	fmt.Fprintf(a.Stderr, "To log in, open %s\nand enter the code %s\n", harmless(code.VerificationURI), harmless(code.UserCode))
	if code.VerificationURIComplete != "" {
		fmt.Fprintf(a.Stderr, "or open %s\n", harmless(code.VerificationURIComplete))
	}
	if latest := time.Now().Add(longestCode); code.Expiry.IsZero() || code.Expiry.After(latest) {
		code.Expiry = latest
	}
	token, err := c.DeviceAccessToken(ctx, code)
	if err != nil && ctx.Err() == nil && !time.Now().Before(code.Expiry) {
		return "", codeExpired()
	}
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
// shown, and no more of its words than a person reads.
func providerError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		if refused.ErrorCode == "expired_token" {
			return codeExpired()
		}
		said := orDefault(refused.ErrorDescription, orDefault(refused.ErrorCode, refused.Response.Status))
		return &Error{Exit: ExitRefused, Err: fmt.Errorf("the identity provider refused: %s", shortened(said))}
	}
	out := &Error{Exit: ExitOther, Err: fmt.Errorf("identity provider: %s", shortened(err.Error()))}
	if isType[*url.Error](err) {
		out.Exit = ExitUnreachable
	}
	return out
}

func codeExpired() error {
	return (&Error{Exit: ExitRefused, Err: errors.New("the code was not entered in time")}).hinting("\"felix login\" gives another")
}

func shortened(text string) string {
	if runes := []rune(text); len(runes) > maxProviderWords {
		text = string(runes[:maxProviderWords]) + "..."
	}
	return harmless(text)
}

// providerClient calls an identity provider until ctx ends. It follows no
// redirects, which could carry a secret away.
func providerClient(ctx context.Context) *http.Client {
	return &http.Client{
		Timeout: providerTimeout, Transport: boundedTransport{ctx, &http.Transport{Proxy: http.ProxyFromEnvironment}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// boundedTransport ends calls with ctx, also those of a library that does not
// pass it on, and cuts answers that are too long.
type boundedTransport struct {
	ctx context.Context
	*http.Transport
}

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.ctx, cancel)
	end := func() { stop(); cancel() }
	res, err := t.Transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	res.Body = &boundedBody{io.LimitReader(res.Body, maxProviderAnswer), res.Body, end}
	return res, nil
}

// boundedBody is the body of an answer up to a bound.
type boundedBody struct {
	io.Reader
	io.Closer
	end func()
}

func (b *boundedBody) Close() error {
	defer b.end()
	return b.Closer.Close()
}
