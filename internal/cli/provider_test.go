package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/felixtest/idp"
)

// What a provider that fails says is not trusted, and not repeated at length.
func TestLoginAtABrokenProvider(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, idp.Options{})
	login := []string{"login", "--issuer", r.idp.Issuer(), "--client-id", "felix"}
	for name, fault := range map[string]idp.Fault{
		"failing": idp.Failing, "html": idp.HTML, "huge": idp.Huge, "other issuer": idp.OtherIssuer, "redirecting": idp.Redirecting,
	} {
		r.idp.Break(fault)
		if said := r.exits(t, ExitOther, login...); len(said) > 1000 || !strings.Contains(said, "identity provider") {
			t.Errorf("%s: said %q", name, said)
		}
	}
	r.idp.Break(idp.Slow)
	ctx, interrupt := context.WithCancelCause(t.Context())
	done := make(chan int, 1)
	before := r.idp.DiscoveryRequests()
	go func() { done <- r.Run(ctx, login) }()
	waitFor(t, func() bool { return r.idp.DiscoveryRequests() > before })
	interrupt(errInterrupted)
	if code := <-done; code != ExitOther || !strings.HasSuffix(r.errs.String(), "interrupted\n") {
		t.Errorf("exit %d: %s", code, r.errs)
	}
	r.idp.Close()
	r.exits(t, ExitUnreachable, login...)
	r.exits(t, ExitUsage, "login", "--client-id", "felix")
}

// A hostile provider neither moves the cursor nor gets a call that Ctrl-C does
// not end.
func TestLoginAtAHostileProvider(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, idp.Options{})
	var answer atomic.Pointer[func(http.ResponseWriter, *http.Request)]
	mux := http.NewServeMux()
	hostile := httptest.NewServer(mux)
	t.Cleanup(hostile.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = printJSON(w, map[string]string{"issuer": hostile.URL, "token_endpoint": hostile.URL + "/token", "device_authorization_endpoint": hostile.URL + "/device"})
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = printJSON(w, map[string]string{"error": "x", "error_description": "\x1b[2J" + strings.Repeat("no ", 100_000)})
	})
	mux.HandleFunc("/device", func(w http.ResponseWriter, r *http.Request) { (*answer.Load())(w, r) })

	escapes := func(w http.ResponseWriter, _ *http.Request) {
		_ = printJSON(w, map[string]any{"device_code": "d", "user_code": "\x1b]0;c", "verification_uri": "http://x/\x1b[31m", "interval": 1})
	}
	answer.Store(&escapes)
	login := []string{"login", "--issuer", hostile.URL, "--client-id", "felix"}
	said := r.exits(t, ExitRefused, login...)
	if strings.ContainsRune(said, '\x1b') || !strings.Contains(said, `\x1b[31m`) || len(said) > 2000 {
		t.Errorf("said %.3000q", said)
	}

	asked, release := make(chan struct{}), make(chan struct{})
	silent := func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	}
	answer.Store(&silent)
	ctx, interrupt := context.WithCancelCause(t.Context())
	done := make(chan int, 1)
	go func() { done <- r.Run(ctx, login) }()
	<-asked
	interrupt(errInterrupted)
	if code := <-done; code != ExitOther {
		t.Errorf("exit %d: %s", code, r.errs)
	}
	close(release)
}
