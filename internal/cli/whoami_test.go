package cli

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/internal/auth"
)

// Each side of a connection gets a verdict of its own, and what is not named is
// not asked.
func TestWhoAmI(t *testing.T) {
	p := startPlane(t, nil)
	good := p.tokenFile(t, auth.AudienceControlPlane, time.Hour, "node.view:cluster:*")
	for name, tc := range map[string]struct {
		environ map[string]string
		brokers string
		control string
	}{
		"nothing": {nil, "not asked: the connection names no broker", "not asked: the connection names no control plane"},
		"accepted": {map[string]string{"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN_FILE": good},
			"not asked: the connection names no broker", accepted},
		"no token":  {map[string]string{"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme"}, "", "has no token for it"},
		"no tenant": {map[string]string{"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_CONTROLPLANE_TOKEN_FILE": good}, "", "names no tenant"},
		"expired": {map[string]string{"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme",
			"FELIX_CONTROLPLANE_TOKEN_FILE": p.tokenFile(t, auth.AudienceControlPlane, -10*time.Minute, "node.view:cluster:*")}, "", "401"},
		"of a broker": {map[string]string{"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme",
			"FELIX_CONTROLPLANE_TOKEN_FILE": p.tokenFile(t, auth.AudienceBroker, time.Hour, "stream.publish:stream:acme/*")}, "", "401"},
		"no token of ours": {map[string]string{"FELIX_CONTROLPLANE_URL": "http://" + p.Addr(), "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN": "x"}, "", "401"},
		"away": {map[string]string{"FELIX_CONTROLPLANE_URL": "http://127.0.0.1:1", "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN_FILE": good,
			"FELIX_BROKERS": "127.0.0.1:1"}, "no token to authenticate with", "unreachable"},
	} {
		ta := newTestApp(t, tc.environ)
		var who struct {
			Brokers      string          `json:"brokers"`
			ControlPlane string          `json:"controlplane"`
			Token        *inspectedToken `json:"controlplane_token"`
		}
		if err := json.Unmarshal([]byte(ta.runs(t, "whoami", "--json")), &who); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(who.Brokers, tc.brokers) || !strings.Contains(who.ControlPlane, tc.control) {
			t.Errorf("%s: %+v", name, who)
		}
		if name == "accepted" && (who.Token == nil || who.Token.Subject != "ann" || len(who.Token.Permissions) != 1) {
			t.Errorf("the token says %+v", who.Token)
		}
		if out := ta.runs(t, "whoami"); !strings.Contains(out, tc.control) {
			t.Errorf("%s: said %q", name, out)
		}
	}
}

// What a token, a display name or a server's answer holds cannot steer a
// terminal, nor break a table.
func TestOutputIsHarmless(t *testing.T) {
	p := startPlane(t, nil)
	ta := p.app(t, administrator()...)
	err := p.Store().CreateNamespace(t.Context(), model.Namespace{TenantID: "acme", Namespace: "default", DisplayName: "a\tb\nc\x1b[31md"})
	if err != nil {
		t.Fatal(err)
	}
	out := ta.runs(t, "namespace", "ls")
	if want := "NAMESPACE  DISPLAY NAME\ndefault    " + `a\tb\nc\x1b[31md` + "\n"; out != want {
		t.Errorf("listed %q, want %q", out, want)
	}
	if out = ta.runs(t, "namespace", "info", "default"); !strings.Contains(out, `a\tb\nc\x1b[31md`) {
		t.Errorf("showed %q", out)
	}
	if out = ta.runs(t, "namespace", "ls", "--json"); !strings.Contains(out, `"display_name":"a\tb\nc\u001b[31md"`) {
		t.Errorf("printed %q", out)
	}
	part := base64.RawURLEncoding.EncodeToString
	ta.Stdin = strings.NewReader(part([]byte(`{"alg":"none","kid":"k"}`)) + "." + part([]byte(`{"sub":"\u001b]0;owned","perms":["x\ny"]}`)) + ".")
	if out = ta.runs(t, "token", "inspect", "-"); strings.ContainsRune(out, '\x1b') || !strings.Contains(out, `x\ny`) {
		t.Errorf("inspected %q", out)
	}
}

// "felix token inspect" asks nobody and renews nothing.
func TestInspectLeavesALoginAlone(t *testing.T) {
	p, file := startLogin(t, -time.Minute)
	address, refreshes := countRefreshes(t, p)
	ta := newTestApp(t, map[string]string{"FELIX_CONTROLPLANE_URL": address, "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN_FILE": file})
	if out := ta.runs(t, "token", "inspect", "--for", "controlplane"); !strings.Contains(out, ", expired") {
		t.Errorf("said %q", out)
	}
	ta.fails(t, ExitUsage, "token", "inspect") // there is none for brokers
	ta.fails(t, ExitUsage, "token", "inspect", "--for", "queue")
	ta.fails(t, ExitUsage, "token", "inspect", "gone")
	if n := refreshes.Load(); n != 0 {
		t.Errorf("%d renewals", n)
	}
}
