package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/cli/contexts"
)

func connectionWith(tokenFile string) contexts.Connection {
	return contexts.Connection{TokenFile: tokenFile}
}

// startLogin is a control plane with a login of it, whose token for the control
// plane ends after lives.
func startLogin(t *testing.T, lives time.Duration) (p *testPlane, file string) {
	t.Helper()
	p = startPlane(t, nil)
	secret := strings.Repeat("5e", 32)
	file = p.tokenFile(t, auth.AudienceControlPlane, lives, "ns.manage:namespace:acme/*")
	seedRefresh(t, p.Store(), "acme", "ann", secret)
	if err := os.WriteFile(file+refreshSuffix, []byte(tokenID+"."+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return p, file
}

// countRefreshes stands before a control plane and counts its renewals.
func countRefreshes(t *testing.T, p *testPlane) (address string, refreshes *atomic.Int32) {
	t.Helper()
	target, err := url.Parse("http://" + p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	proxy, refreshes := httputil.NewSingleHostReverseProxy(target), new(atomic.Int32)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/token/refresh") {
			refreshes.Add(1)
		}
		proxy.ServeHTTP(w, q)
	}))
	t.Cleanup(front.Close)
	return front.URL, refreshes
}

// Processes that need a new token at the same time get one, and spend one
// refresh token: a second use would end the login.
func TestProcessesRenewInTurn(t *testing.T) {
	t.Parallel()
	p, file := startLogin(t, 10*time.Second)
	address, refreshes := countRefreshes(t, p)
	ta := newTestApp(t, nil)
	environ := append(os.Environ(), "FELIX_CONTROLPLANE_URL="+address, "FELIX_AUTH_TENANT=acme", "FELIX_CONTROLPLANE_TOKEN_FILE="+file,
		"XDG_CONFIG_HOME="+ta.Dir, "GORACE=atexit_sleep_ms=0")
	var processes []*exec.Cmd
	outputs := make([]lockedBuffer, 3)
	for i := range outputs {
		cmd := exec.Command(ta.Self, "namespace", "ls")
		cmd.Env, cmd.Stdout, cmd.Stderr = environ, &outputs[i], &outputs[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	for i, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v: %s", i, err, &outputs[i])
		}
	}
	if n := refreshes.Load(); n != 1 {
		t.Errorf("%d renewals", n)
	}
	ta = newTestApp(t, map[string]string{"FELIX_CONTROLPLANE_URL": address, "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN_FILE": file})
	ta.runs(t, "token", "renew") // the login goes on
}

// A token whose refresh token was lost is good until it ends.
func TestLostRefreshToken(t *testing.T) {
	t.Parallel()
	for lives, exit := range map[time.Duration]int{50 * time.Second: ExitOK, -10 * time.Minute: ExitRefused} {
		p, file := startLogin(t, lives)
		if err := os.Remove(file + refreshSuffix); err != nil {
			t.Fatal(err)
		}
		ta := newTestApp(t, map[string]string{"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN_FILE": file})
		if code := ta.Run(t.Context(), []string{"namespace", "ls"}); code != exit {
			t.Errorf("token that lives %s: exit %d: %s", lives, code, &ta.errs)
		}
		if said := ta.errs.String(); exit != ExitOK && !strings.Contains(said, "felix login") {
			t.Errorf("said %q", said)
		}
		ta.fails(t, ExitUsage, "token", "renew")
	}
}

// Without the control plane a token is used as long as it is good, and then it
// is the control plane that is missing, not the login.
func TestRenewalWithoutControlPlane(t *testing.T) {
	t.Parallel()
	_, file := startLogin(t, 50*time.Second)
	ta := newTestApp(t, nil)
	by := resolved{Connection: contexts.Connection{ControlPlaneURL: "http://127.0.0.1:1", Tenant: "acme", ControlPlaneTokenFile: file}}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	token, err := ta.freshToken(t.Context(), &by, apiclient.AudienceControlPlane)
	if err != nil || token != strings.TrimSpace(string(before)) {
		t.Errorf("%v", err)
	}
	_, file = startLogin(t, -time.Minute)
	by.ControlPlaneTokenFile = file
	_, err = ta.freshToken(t.Context(), &by, apiclient.AudienceControlPlane)
	if told := explain(err); told.Exit != ExitUnreachable || !strings.Contains(told.Hint, "is the control plane running") {
		t.Errorf("%+v", told)
	}
	if _, err := os.Stat(file + refreshSuffix); err != nil {
		t.Errorf("the refresh token is gone: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	if _, err := ta.freshToken(ctx, &by, apiclient.AudienceControlPlane); explain(err).Error != "interrupted" {
		t.Errorf("interrupted: %v", err)
	}
}

// A renewal without a new refresh token was the last one: the spent one is not
// shown again.
func TestLastRenewal(t *testing.T) {
	file := t.TempDir() + "/token"
	for _, refresh := range []string{"one", ""} {
		if err := keepTokens(file, &apiclient.TokenResponse{FelixToken: "token-" + refresh, RefreshToken: refresh}); err != nil {
			t.Fatal(err)
		}
		if renewable(file) != (refresh != "") {
			t.Errorf("after %q: %v", refresh, renewable(file))
		}
	}
	if token, err := readToken(&contexts.Connection{TokenFile: file}); err != nil || token != "token-" {
		t.Errorf("%q, %v", token, err)
	}
}

// A token of a login is renewed before it expires, by one process at a time, and
// one whose login was ended is not.
func TestTokensAreRenewed(t *testing.T) {
	p := startPlane(t, map[string]string{"exchange-token-ttl-seconds": "900"})
	secret := strings.Repeat("5e", 32)
	file := p.tokenFile(t, auth.AudienceControlPlane, 10*time.Second, "ns.manage:namespace:acme/*")
	seedRefresh(t, p.Store(), "acme", "ann", secret)
	if err := os.WriteFile(file+refreshSuffix, []byte(tokenID+"."+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ta := newTestApp(t, map[string]string{
		"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN_FILE": file,
	})
	ta.runs(t, "namespace", "ls")
	after, err := os.ReadFile(file)
	if err != nil || string(after) == string(before) {
		t.Fatalf("the token is the same (%v)", err)
	}
	_, body, err := decodeToken(strings.TrimSpace(string(after)))
	if err != nil || time.Until(body.expiry()) < 10*time.Minute {
		t.Fatalf("%+v, %v", body, err)
	}
	ta.runs(t, "token", "renew")
	if _, err := p.Store().RevokePrincipal(t.Context(), "acme", "ann"); err != nil {
		t.Fatal(err)
	}
	ta.fails(t, ExitRefused, "token", "renew")
}

const tokenID = "00000000000000000000000000000000000000000000000000000000000000aa"

// seedRefresh gives a principal a refresh token with a secret, and a right to
// namespaces, so that renewing gives something.
func seedRefresh(t *testing.T, s store.Store, tenant, principal, secret string) {
	t.Helper()
	sum := sha256.Sum256([]byte(secret))
	issuer := model.IdpIssuer{Issuer: "https://idp.example", Audiences: []string{"felix"}, ClaimMappings: model.ClaimMappings{SubjectClaim: "sub"}}
	err := errors.Join(
		s.PutIssuer(t.Context(), tenant, issuer),
		s.AddPolicy(t.Context(), tenant, model.Policy{Subject: principal, Object: "namespace:" + tenant + "/*", Action: "ns.manage"}),
		s.InsertRefreshToken(t.Context(), model.RefreshToken{
			TenantID: tenant, TokenID: tokenID, PrincipalID: principal, Groups: []string{}, Issuer: issuer.Issuer, SecretHash: hex.EncodeToString(sum[:]),
			FamilyID: "fam", Audience: auth.AudienceControlPlane, IssuedAtSecs: 1, ExpiresAtSecs: uint64(time.Now().Add(time.Hour).Unix()),
		}))
	if err != nil {
		t.Fatal(err)
	}
}
