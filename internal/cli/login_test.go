package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
	"github.com/felixlog/felix/internal/auth"
)

// A loginRig is a provider that the tenant acme trusts, and an App without any
// context.
type loginRig struct {
	idp   *idp.Provider
	plane *testPlane
	*testApp
	errs  *lockedBuffer // instead of the App's own: it is read while a command runs
	state string
}

func newLoginRig(t *testing.T, o idp.Options) *loginRig {
	t.Helper()
	r := &loginRig{idp: idp.Start(t, o), plane: startPlane(t, map[string]string{"oidc-allow-insecure-http": "true"}), errs: &lockedBuffer{}, state: t.TempDir()}
	issuer := model.IdpIssuer{Issuer: r.idp.Issuer(), Audiences: []string{r.idp.Audience()}, ClaimMappings: model.ClaimMappings{SubjectClaim: "sub"}}
	if err := r.plane.Store().PutIssuer(t.Context(), "acme", issuer); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"alice", "billing"} {
		for _, rule := range [][2]string{{"namespace:acme/*", "ns.manage"}, {"stream:acme/default/orders", "stream.publish"}} {
			p := model.Policy{Subject: auth.PrincipalID(r.idp.Issuer(), subject), Object: rule[0], Action: rule[1]}
			if err := r.plane.Store().AddPolicy(t.Context(), "acme", p); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.use(t, "http://"+r.plane.Addr(), nil)
	return r
}

// use makes the App one whose environment names a control plane.
func (r *loginRig) use(t *testing.T, controlPlane string, environ map[string]string) {
	t.Helper()
	all := map[string]string{"FELIX_CONTROLPLANE_URL": controlPlane, "FELIX_AUTH_TENANT": "acme", "XDG_STATE_HOME": r.state}
	for name, value := range environ {
		all[name] = value
	}
	r.testApp = newTestApp(t, all)
	r.testApp.Stderr = r.errs
}

// exits runs a command line, checks its exit code, and returns what it said.
func (r *loginRig) exits(t *testing.T, want int, args ...string) string {
	t.Helper()
	before := len(r.errs.String())
	r.out.Reset()
	code := r.Run(t.Context(), args)
	said := r.errs.String()[before:]
	if code != want {
		t.Fatalf("felix %s: exit %d, want %d: %s", strings.Join(args, " "), code, want, said)
	}
	return said
}

func (r *loginRig) file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// loggedIn checks that a context has the tokens of a subject and works, without
// the help of the environment.
func (r *loginRig) loggedIn(t *testing.T, name, subject string) {
	t.Helper()
	for _, file := range []string{"broker.token", "broker.token.refresh", "controlplane.token", "controlplane.token.refresh"} {
		path := filepath.Join(r.state, "felix", "logins", name, file)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", file, info, err)
		}
		secret, err := os.ReadFile(path)
		if err != nil || strings.Contains(r.out.String()+r.errs.String(), strings.TrimSpace(string(secret))) {
			t.Fatalf("%s was printed (%v)", file, err)
		}
	}
	bare := newTestApp(t, map[string]string{"XDG_CONFIG_HOME": r.Dir})
	if code := bare.Run(t.Context(), []string{"namespace", "ls", "--context", name}); code != ExitOK {
		t.Fatalf("exit %d: %s", code, &bare.errs)
	}
	bare.out.Reset()
	if code := bare.Run(t.Context(), []string{"token", "inspect", "--context", name}); code != ExitOK || !strings.Contains(bare.out.String(), auth.PrincipalID(r.idp.Issuer(), subject)) {
		t.Fatalf("exit %d: %s%s", code, &bare.out, &bare.errs)
	}
}

var userCode = regexp.MustCompile(`enter the code (\S+)\n`)

// A person approves while the command waits.
func TestLoginOfAPerson(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, idp.Options{})
	done := make(chan int, 1)
	go func() {
		done <- r.Run(t.Context(), []string{"login", "--issuer", r.idp.Issuer(), "--client-id", "felix", "--save", "work"})
	}()
	waitFor(t, func() bool { return userCode.MatchString(r.errs.String()) })
	select {
	case code := <-done:
		t.Fatalf("it did not wait: exit %d", code)
	default:
	}
	if err := r.idp.Approve(userCode.FindStringSubmatch(r.errs.String())[1], idp.Claims{"sub": "alice"}); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != ExitOK {
		t.Fatalf("exit %d: %s", code, r.errs)
	}
	if !strings.Contains(r.errs.String(), "To log in, open "+r.idp.Issuer()) || !strings.Contains(r.out.String(), "logged in to tenant acme") {
		t.Errorf("said %q and %q", r.errs, &r.out)
	}
	r.loggedIn(t, "work", "alice")
}

// A login that is denied, or interrupted, leaves nothing behind.
func TestLoginThatIsNotApproved(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, idp.Options{})
	for name, end := range map[string]struct {
		by   func(code string, interrupt context.CancelCauseFunc)
		exit int
		says string
	}{
		"denied":      {func(code string, _ context.CancelCauseFunc) { _ = r.idp.Approve(code, nil) }, ExitRefused, "access_denied"},
		"interrupted": {func(_ string, interrupt context.CancelCauseFunc) { interrupt(errInterrupted) }, ExitOther, "interrupted"},
	} {
		r.use(t, "http://"+r.plane.Addr(), nil)
		before := len(r.errs.String())
		said := func() string { return r.errs.String()[before:] }
		ctx, interrupt := context.WithCancelCause(t.Context())
		done := make(chan int, 1)
		go func() {
			done <- r.Run(ctx, []string{"login", "--issuer", r.idp.Issuer(), "--client-id", "felix", "--save", "work"})
		}()
		waitFor(t, func() bool { return userCode.MatchString(said()) })
		end.by(userCode.FindStringSubmatch(said())[1], interrupt)
		if code := <-done; code != end.exit || !strings.Contains(said(), end.says) {
			t.Errorf("%s: exit %d: %s", name, code, said())
		}
		interrupt(nil)
		if left, _ := os.ReadDir(r.state); len(left) != 0 {
			t.Errorf("%s: tokens were kept: %v", name, left)
		}
		r.exits(t, ExitNotFound, "context", "use", "work")
	}
}

// A program shows a secret, which nobody else gets to see.
func TestLoginOfAProgram(t *testing.T) {
	t.Parallel()
	const secret = "f0xtrot-uniform"
	r := newLoginRig(t, idp.Options{Clients: map[string]string{"billing": secret}})
	args := func(file string) []string {
		return []string{"login", "--issuer", r.idp.Issuer(), "--client-id", "billing", "--client-secret-file", file, "--save", "billing"}
	}
	said := r.exits(t, ExitRefused, args(r.file(t, "guess-"+secret))...)
	if strings.Contains(said, secret) || !strings.Contains(said, "invalid_client") {
		t.Errorf("said %q", said)
	}
	r.exits(t, ExitUsage, args(r.file(t, ""))...)
	r.exits(t, ExitUsage, args(filepath.Join(r.Dir, "gone"))...)
	r.exits(t, ExitOK, args(r.file(t, secret+"\n"))...)
	r.loggedIn(t, "billing", "billing")
	// A context that is in use is logged in to again.
	r.exits(t, ExitOK, args(r.file(t, secret))[:7]...)
	if !strings.Contains(r.out.String(), "the context billing has the tokens") {
		t.Errorf("said %q", &r.out)
	}
}

func TestLoginWithATokenAtHand(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, idp.Options{})
	token := r.idp.Token(idp.Claims{"sub": "alice"})
	r.exits(t, ExitOK, "login", "--id-token-file", r.file(t, token), "--save", "work")
	r.loggedIn(t, "work", "alice")
	r.Stdin = strings.NewReader(token + "\n")
	r.exits(t, ExitOK, "login", "--id-token-file", "-", "--save", "pipe", "--broker-only")
	if _, err := os.Stat(filepath.Join(r.state, "felix", "logins", "pipe", "controlplane.token")); !os.IsNotExist(err) {
		t.Errorf("a token for the control plane: %v", err)
	}
	for name, content := range map[string]string{"empty": " \n", "long": strings.Repeat("a", maxTokenBytes+1)} {
		r.Stdin = strings.NewReader(content)
		r.exits(t, ExitUsage, "login", "--id-token-file", "-")
		if said := r.exits(t, ExitUsage, "login", "--id-token-file", r.file(t, content)); strings.Contains(said, "aaaa") {
			t.Errorf("%s: the token is told", name)
		}
	}
	other := idp.Start(t)
	refused := other.Token(idp.Claims{"sub": "alice"})
	for _, token := range []string{"a.b.c", refused, r.idp.Token(idp.Claims{"sub": "alice", "exp": 1})} {
		if said := r.exits(t, ExitRefused, "login", "--id-token-file", r.file(t, token)); strings.Contains(said, token) {
			t.Errorf("the token is told: %q", said)
		}
	}
}

// Two tokens are kept, or none: one of an older login beside a new one would be
// two identities in one context.
func TestLoginKeepsBothTokensOrNone(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, idp.Options{})
	target, err := url.Parse("http://" + r.plane.Addr())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	var exchanges atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/exchange") && exchanges.Add(1) == 2 {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		proxy.ServeHTTP(w, q)
	}))
	t.Cleanup(front.Close)
	r.use(t, front.URL, nil)
	r.exits(t, ExitRefused, "login", "--id-token-file", r.file(t, r.idp.Token(idp.Claims{"sub": "alice"})), "--save", "work")
	if left, _ := os.ReadDir(r.state); len(left) != 0 || exchanges.Load() != 2 {
		t.Errorf("%d exchanges left %v", exchanges.Load(), left)
	}
}

// A login keeps what it was for, flags, and nothing else of the environment.
func TestLoginSavesNoEnvironment(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, idp.Options{})
	r.use(t, "http://"+r.plane.Addr(), map[string]string{"FELIX_NAMESPACE": "elsewhere", "FELIX_AUTH_TOKEN": "s3cret", "FELIX_CONTROLPLANE_TOKEN": "s3cret"})
	token := r.file(t, r.idp.Token(idp.Claims{"sub": "alice"}))
	r.exits(t, ExitOK, "login", "--id-token-file", token, "--save", "work", "--brokers", "10.0.0.1:5000", "--broker-only")
	store, err := r.contextStore()
	if err != nil {
		t.Fatal(err)
	}
	file, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Contexts["work"]
	if file.Current != "work" || c.Tenant != "acme" || c.ControlPlaneURL != "http://"+r.plane.Addr() || len(c.Brokers) != 1 {
		t.Errorf("%+v", file)
	}
	if c.Namespace != "" || c.HoldsSecret() || c.ControlPlaneTokenFile != "" {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{"..", "../out", "a/b"} {
		r.exits(t, ExitUsage, "login", "--id-token-file", token, "--save", name)
	}
	r.use(t, "", nil)
	r.exits(t, ExitUsage, "login", "--id-token-file", token, "--tenant", "acme")
	newTestApp(t, map[string]string{"FELIX_CONTROLPLANE_URL": "http://127.0.0.1:1"}).fails(t, ExitUsage, "login", "--id-token-file", token)
}

// Without a context the tokens are kept by tenant, where no context's are.
func TestLoginWithoutAContext(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, idp.Options{})
	r.exits(t, ExitOK, "login", "--id-token-file", r.file(t, r.idp.Token(idp.Claims{"sub": "alice"})), "--json")
	want := filepath.Join(r.state, "felix", "logins", "@acme", "broker.token")
	if !strings.Contains(r.out.String(), `"token_file":"`+want+`"`) || !strings.Contains(r.out.String(), `"subject":"`+auth.PrincipalID(r.idp.Issuer(), "alice")) {
		t.Errorf("said %q", &r.out)
	}
	token, err := readToken(tokenOf(&resolved{Connection: connectionWith(want)}, apiclient.AudienceBroker))
	if err != nil || strings.Contains(r.out.String(), token) {
		t.Errorf("%v, said %q", err, &r.out)
	}
}
