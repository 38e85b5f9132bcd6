package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/internal/cli/contexts"
	"github.com/felixlog/felix/internal/ownfile"
)

// refreshSuffix names, beside the file of a token, the one with what renews it.
const refreshSuffix = ".refresh"

// tokenOf is the part of a connection that is its token for an audience.
func tokenOf(by *resolved, audience string) *contexts.Connection {
	if audience == apiclient.AudienceControlPlane {
		return &contexts.Connection{Token: by.ControlPlaneToken, TokenFile: by.ControlPlaneTokenFile}
	}
	return &contexts.Connection{Token: by.Token, TokenFile: by.TokenFile}
}

// renewable says whether "felix login" left, beside the file of a token, what
// renews it.
func renewable(file string) bool {
	_, err := os.Stat(file + refreshSuffix)
	return err == nil
}

// freshToken is the token of a connection for an audience, renewed where it is
// about to expire and can be renewed. While it is good for a moment yet, a
// renewal that fails does no harm.
func (a *App) freshToken(ctx context.Context, by *resolved, audience string) (string, error) {
	c := tokenOf(by, audience)
	token, err := readToken(c)
	if err != nil || c.Token != "" || c.TokenFile == "" || !aboutToExpire(token) || !renewable(c.TokenFile) {
		return token, err
	}
	renewed, err := a.renewToken(ctx, by, c.TokenFile, audience, false)
	switch {
	case err == nil:
		return renewed, nil
	case renewed != "":
		a.remark("the renewed token is not kept: %v; \"felix login\" before it expires", err)
		return renewed, nil
	case hasExpired(token):
		return "", explainRenewal(ctx, err)
	}
	return token, nil
}

// explainRenewal says what to do about a token that cannot be renewed.
func explainRenewal(ctx context.Context, err error) error {
	err = fmt.Errorf("renew the token: %w", err)
	switch apiclient.StatusOf(err) {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return (&Error{Exit: ExitRefused, Err: err}).hinting("the login is over; \"felix login\" begins another")
	}
	return explainControl(ctx, err)
}

// renewToken spends the refresh token in the file beside a token, and keeps
// what comes for both; where it cannot be kept it returns the token and the
// error. Processes take turns: a refresh token works once. Unless it is to be
// done at once, a token that is good for a while is left as it is.
func (a *App) renewToken(ctx context.Context, by *resolved, file, audience string, atOnce bool) (string, error) {
	unlock, err := contexts.Lock(file + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	token, err := readToken(&contexts.Connection{TokenFile: file})
	if err == nil && !atOnce && !aboutToExpire(token) {
		return token, nil // another process was faster
	}
	refresh, err := readSecret(file+refreshSuffix, "what renews it")
	if err != nil {
		return "", err
	}
	api, err := a.openAPI(by, by.ControlPlaneURL)
	if err != nil {
		return "", err
	}
	defer api.CloseIdle()
	got, err := api.Refresh(ctx, by.Tenant, refresh, audience)
	if err != nil {
		return "", err
	}
	return got.FelixToken, keepTokens(file, &got)
}

// keepTokens writes a token and what renews it, what renews it first: without
// that, a crash between the two would end the login. Without a new one, the old
// one goes: it is spent, and must not be shown again.
func keepTokens(file string, got *apiclient.TokenResponse) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if got.RefreshToken != "" {
		if err := ownfile.Replace(file+refreshSuffix, []byte(got.RefreshToken+"\n")); err != nil {
			return err
		}
	} else if err := os.Remove(file + refreshSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ownfile.Replace(file, []byte(got.FelixToken+"\n"))
}
