package oidc_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/controlplane/auth/oidc"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
)

// TestPrivateAddresses: a provider in the own network is reached only if that
// is allowed, whatever its name is.
func TestPrivateAddresses(t *testing.T) {
	c := newClock()
	p := idp.Start(t, idp.Options{Now: c.Now})
	var reached atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		response, err := http.Get(p.JWKSURL())
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		if _, err := io.Copy(w, response.Body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	token := p.Token(idp.Claims{"sub": "alice"})
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	issuer := issuerOf(p)
	issuer.JWKSURL = ptr(server.URL)
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, address := range []string{server.URL, "https://localhost:" + port, "https://[::ffff:127.0.0.1]:" + port} {
		issuer.JWKSURL = ptr(address)
		v := newVerifier(t, c, func(o *oidc.Options) { o.AllowInsecureHTTP, o.RootCAs = false, roots })
		_, err := v.Verify(t.Context(), token, []model.IdpIssuer{issuer})
		if kindOf(t, err) != oidc.Keys || !strings.Contains(err.Error(), "private") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if reached.Load() != 0 {
		t.Fatal("the private provider was asked")
	}
	issuer.JWKSURL = ptr(server.URL)
	v := newVerifier(t, c, func(o *oidc.Options) { o.AllowInsecureHTTP, o.AllowPrivateIDP, o.RootCAs = false, true, roots })
	if _, err := v.Verify(t.Context(), token, []model.IdpIssuer{issuer}); err != nil {
		t.Errorf("allowed: %v", err)
	}
	v = newVerifier(t, c, func(o *oidc.Options) { o.AllowInsecureHTTP, o.AllowPrivateIDP = false, true })
	if _, err := v.Verify(t.Context(), token, []model.IdpIssuer{issuer}); kindOf(t, err) != oidc.Keys || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with a certificate of nobody: %v", err)
	}
}
