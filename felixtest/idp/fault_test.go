package idp_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/felixlog/felix/felixtest/idp"
)

// TestFaults: what is broken is broken in the way it is said to be.
func TestFaults(t *testing.T) {
	p := idp.Start(t)
	get := func() (int, string, int64) {
		response, err := http.Get(p.JWKSURL())
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body[:min(len(body), 2000)]), int64(len(body))
	}
	good := func(status int, text string) bool { return status == 200 && strings.Contains(text, p.KeyID()) }
	for name, test := range map[string]struct {
		fault idp.Fault
		holds func(status int, text string, size int64) bool
	}{
		"none":          {idp.None, func(s int, b string, _ int64) bool { return good(s, b) && strings.Contains(b, `"alg":"ES256"`) }},
		"failing":       {idp.Failing, func(s int, _ string, _ int64) bool { return s == 500 }},
		"html":          {idp.HTML, func(s int, b string, _ int64) bool { return s == 200 && strings.Contains(b, "<html>") }},
		"huge":          {idp.Huge, func(s int, _ string, n int64) bool { return s == 200 && n == 50<<20 }},
		"redirecting":   {idp.Redirecting, func(s int, b string, _ int64) bool { return good(s, b) && p.Requests("/moved/jwks.json") == 1 }},
		"no algorithm":  {idp.NoAlgorithm, func(s int, b string, _ int64) bool { return good(s, b) && !strings.Contains(b, `"alg"`) }},
		"shared key id": {idp.SharedKeyID, func(s int, b string, _ int64) bool { return good(s, b) && strings.Count(b, p.KeyID()) == 2 }},
		"no keys":       {idp.NoKeys, func(s int, b string, _ int64) bool { return s == 200 && !strings.Contains(b, p.KeyID()) }},
	} {
		p.Break(test.fault)
		if status, text, size := get(); !test.holds(status, text, size) {
			t.Errorf("%s: %d, %d bytes, %.100s", name, status, size, text)
		}
	}
	p.Break(idp.OtherIssuer)
	if _, err := oidc.NewProvider(t.Context(), p.Issuer()); err == nil {
		t.Error("the discovery document is of its own issuer")
	}
	p.Break(idp.Slow)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	before := p.KeyRequests()
	go func() {
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, p.JWKSURL(), nil)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		done <- err
	}()
	for p.KeyRequests() == before {
		select {
		case err := <-done:
			t.Fatalf("answered: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a slow provider answered")
	}
	p.Repair()
	if status, text, _ := get(); !good(status, text) {
		t.Errorf("after the repair: %d %s", status, text)
	}
}
