package idp_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/felixlog/felix/felixtest/idp"
)

// TestStandardClient reads the provider with the usual library.
func TestStandardClient(t *testing.T) {
	for _, alg := range []string{"", "RS256"} {
		p := idp.Start(t, idp.Options{Algorithm: alg})
		provider, err := oidc.NewProvider(t.Context(), p.Issuer())
		if err != nil {
			t.Fatal(err)
		}
		verifier := provider.Verifier(&oidc.Config{ClientID: p.Audience()})
		old := p.Token(idp.Claims{"sub": "alice", "groups": []string{"staff"}})
		if _, err := p.Rotate(); err != nil {
			t.Fatal(err)
		}
		for _, signed := range []string{old, p.Token(idp.Claims{"sub": "alice", "groups": []string{"staff"}})} {
			token, err := verifier.Verify(t.Context(), signed)
			if err != nil {
				t.Fatalf("%s: %v", alg, err)
			}
			var claims struct{ Groups []string }
			if err := token.Claims(&claims); err != nil || token.Subject != "alice" || len(claims.Groups) != 1 {
				t.Errorf("%s: %+v, %+v, %v", alg, token, claims, err)
			}
		}
		p.Withdraw()
		fresh, err := oidc.NewProvider(t.Context(), p.Issuer())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fresh.Verifier(&oidc.Config{ClientID: p.Audience()}).Verify(t.Context(), old); err == nil {
			t.Errorf("%s: a key that was withdrawn verifies", alg)
		}
		if p.DiscoveryRequests() != 2 || p.KeyRequests() < 2 {
			t.Errorf("%s: %d and %d requests", alg, p.DiscoveryRequests(), p.KeyRequests())
		}
	}
}

func post(t *testing.T, address string, form url.Values) (int, map[string]any) {
	t.Helper()
	response, err := http.PostForm(address, form)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}

func TestClientCredentials(t *testing.T) {
	p := idp.Start(t, idp.Options{Clients: map[string]string{"broker": "secret"}})
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {"broker"}, "client_secret": {"secret"}}
	status, body := post(t, p.Issuer()+"/token", form)
	if status != 200 || body["token_type"] != "Bearer" || body["expires_in"] != 300.0 {
		t.Fatalf("%d %v", status, body)
	}
	provider, err := oidc.NewProvider(t.Context(), p.Issuer())
	if err != nil {
		t.Fatal(err)
	}
	token, err := provider.Verifier(&oidc.Config{ClientID: p.Audience()}).Verify(t.Context(), body["access_token"].(string))
	if err != nil || token.Subject != "broker" {
		t.Errorf("%+v, %v", token, err)
	}
	for name, change := range map[string]url.Values{
		"secret": {"client_secret": {"guess"}}, "client": {"client_id": {"other"}}, "grant": {"grant_type": {"password"}},
	} {
		wrong := url.Values{}
		for key := range form {
			wrong.Set(key, form.Get(key))
		}
		for key := range change {
			wrong.Set(key, change.Get(key))
		}
		if status, body := post(t, p.Issuer()+"/token", wrong); status < 400 || body["error"] == nil || body["access_token"] != nil {
			t.Errorf("wrong %s: %d %v", name, status, body)
		}
	}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.Issuer()+"/token", strings.NewReader("grant_type=client_credentials"))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth("broker", "secret")
	response, err := http.DefaultClient.Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("with basic authentication: %v, %v", response, err)
	}
	_ = response.Body.Close()
}

func TestDeviceCode(t *testing.T) {
	now := time.Now()
	p := idp.Start(t, idp.Options{Now: func() time.Time { return now }})
	begin := func() (string, string, string) {
		status, body := post(t, p.Issuer()+"/device_authorization", url.Values{"client_id": {"cli"}})
		if status != 200 || body["interval"] == nil || body["verification_uri"] == nil {
			t.Fatalf("%d %v", status, body)
		}
		return body["device_code"].(string), body["user_code"].(string), body["verification_uri_complete"].(string)
	}
	ask := func(code string) (int, map[string]any) {
		return post(t, p.Issuer()+"/token", url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {code}, "client_id": {"cli"}})
	}
	want := func(code, reason string) {
		t.Helper()
		if status, body := ask(code); status != 400 || body["error"] != reason {
			t.Errorf("%d %v, want %s", status, body, reason)
		}
	}
	code, user, complete := begin()
	want(code, "authorization_pending")
	for query, status := range map[string]int{"": 400, "&sub=alice&group=staff": 200} {
		response, err := http.Get(complete + query)
		if err != nil || response.StatusCode != status {
			t.Fatalf("%v, %v", response, err)
		}
		_ = response.Body.Close()
	}
	if status, body := ask(code); status != 200 || body["id_token"] == nil {
		t.Errorf("%d %v", status, body)
	}
	want(code, "invalid_grant") // a code is good for one token
	if p.Approve(user, idp.Claims{"sub": "x"}) == nil {
		t.Error("a device that is gone was approved")
	}
	code, user, _ = begin()
	if err := p.Approve(user, nil); err != nil {
		t.Fatal(err)
	}
	want(code, "access_denied")
	code, _, _ = begin()
	now = now.Add(time.Hour)
	want(code, "expired_token")
	want("guess", "invalid_grant")
	auto := idp.Start(t, idp.Options{AutoApprove: idp.Claims{"sub": "ci"}})
	p = auto
	code, _, _ = begin()
	if status, _ := ask(code); status != 200 {
		t.Error("not approved by itself")
	}
}

func TestDevicesAreBounded(t *testing.T) {
	now := time.Now()
	p := idp.Start(t, idp.Options{Now: func() time.Time { return now }})
	form := url.Values{"client_id": {"cli"}}
	for range 1000 {
		if status, body := post(t, p.Issuer()+"/device_authorization", form); status != 200 {
			t.Fatalf("%d %v", status, body)
		}
	}
	if status, _ := post(t, p.Issuer()+"/device_authorization", form); status != 429 {
		t.Errorf("%d", status)
	}
	now = now.Add(time.Hour)
	if status, _ := post(t, p.Issuer()+"/device_authorization", form); status != 200 {
		t.Errorf("%d after the others expired", status)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]idp.Options{
		"algorithm": {Algorithm: "HS256"}, "all algorithms": {Algorithm: "RS256 PS256"}, "a space": {Algorithm: "256 R"}, "everybody": {Addr: "0.0.0.0:0"}, "nowhere": {Addr: "127.0.0.1"},
	} {
		if p, err := idp.New(o); err == nil {
			p.Close()
			t.Errorf("%s is taken", name)
		}
	}
	p, err := idp.New(idp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.Close()
}
