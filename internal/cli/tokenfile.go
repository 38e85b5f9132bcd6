package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/internal/cli/contexts"
	"github.com/felixlog/felix/internal/ownfile"
)

// refreshSuffix names, beside the file of a token, the one with what renews it.
const refreshSuffix = ".refresh"

// renewBefore is how long before its expiry a token is renewed.
const renewBefore = time.Minute

// tokenBody is what a token says of itself, unverified.
type tokenBody struct {
	Issuer      string   `json:"iss,omitempty"`
	Audience    any      `json:"aud,omitempty"` // a word or a list
	Subject     string   `json:"sub,omitempty"`
	Tenant      string   `json:"tid,omitempty"`
	IssuedAt    float64  `json:"iat,omitempty"`
	Expires     float64  `json:"exp,omitempty"`
	Permissions []string `json:"perms,omitempty"`
}

// tokenHead is the head of a token.
type tokenHead struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid,omitempty"`
}

var errNoJWT = errors.New("not a token: want three parts of base64 with dots between")

// decodeToken reads a token without verifying it.
func decodeToken(token string) (head tokenHead, body tokenBody, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return head, body, errNoJWT
	}
	for i, into := range []any{&head, &body} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(data, into) != nil {
			return head, body, errNoJWT
		}
	}
	return head, body, nil
}

// expiry of a token; the zero time where it does not tell.
func (b *tokenBody) expiry() time.Time {
	if b.Expires <= 0 || b.Expires > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(b.Expires), 0)
}

// freshToken is the token of a connection for an audience, renewed where it is
// about to expire and "felix login" left what renews it.
func (a *App) freshToken(ctx context.Context, by *resolved, audience string) (string, error) {
	c := contexts.Connection{Token: by.Token, TokenFile: by.TokenFile}
	if audience == apiclient.AudienceControlPlane {
		c = contexts.Connection{Token: by.ControlPlaneToken, TokenFile: by.ControlPlaneTokenFile}
	}
	token, err := readToken(&c)
	if err != nil || c.TokenFile == "" || c.Token != "" || !aboutToExpire(token) {
		return token, err
	}
	if _, err := os.Stat(c.TokenFile + refreshSuffix); err != nil {
		return token, nil // whoever made the token renews it
	}
	renewed, err := a.renewToken(ctx, by, c.TokenFile, audience, false)
	if err != nil && !hasExpired(token) {
		return token, nil // the control plane may be back before it is needed
	}
	if err != nil {
		return "", (&Error{Exit: ExitRefused, Err: fmt.Errorf("renew the token: %w", err)}).hinting("\"felix login\" gets another")
	}
	return renewed, nil
}

func aboutToExpire(token string) bool { return expiresWithin(token, renewBefore) }

func hasExpired(token string) bool { return expiresWithin(token, 0) }

func expiresWithin(token string, d time.Duration) bool {
	_, body, err := decodeToken(token)
	return err == nil && !body.expiry().IsZero() && time.Until(body.expiry()) < d
}

// renewToken spends the refresh token in the file beside a token, and keeps
// what comes for both. Processes take turns: a refresh token works once. Unless
// it is to be done at once, a token that is good for a while is left as it is.
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
	refresh, err := os.ReadFile(file + refreshSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("it was spent")
	}
	if err != nil {
		return "", err
	}
	api, err := a.openAPI(by, by.ControlPlaneURL)
	if err != nil {
		return "", err
	}
	defer api.CloseIdle()
	got, err := api.Refresh(ctx, by.Tenant, strings.TrimSpace(string(refresh)), audience)
	if err != nil {
		return "", err
	}
	return got.FelixToken, keepTokens(file, &got)
}

// keepTokens writes a token and what renews it, what renews it first: without
// that, a crash between the two would end the login.
func keepTokens(file string, got *apiclient.TokenResponse) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if got.RefreshToken != "" {
		if err := ownfile.Replace(file+refreshSuffix, []byte(got.RefreshToken+"\n")); err != nil {
			return err
		}
	}
	return ownfile.Replace(file, []byte(got.FelixToken+"\n"))
}
