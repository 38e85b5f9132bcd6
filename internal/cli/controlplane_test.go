package cli

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/transport/tlsconfig"
)

// An API behind TLS is trusted by the authorities of --controlplane-ca-file.
func TestControlPlaneBehindTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, err := tlsconfig.SelfSigned([]string{"127.0.0.1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, data := range map[string][]byte{cert: tlsconfig.CertificatePEM(certificate), keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := startPlane(t, map[string]string{"tls-cert": cert, "tls-key": keyFile})
	token := p.tokenFile(t, auth.AudienceControlPlane, time.Hour, "ns.manage:namespace:acme/*")
	ta := newTestApp(t, map[string]string{"FELIX_CONTROLPLANE_URL": "https://" + p.Addr(), "FELIX_AUTH_TENANT": "acme", "FELIX_CONTROLPLANE_TOKEN_FILE": token})
	if said := ta.fails(t, ExitUnreachable, "namespace", "ls"); !strings.Contains(said, "--controlplane-ca-file") {
		t.Errorf("said %q", said)
	}
	ta.runs(t, "namespace", "ls", "--controlplane-ca-file", cert)
	ta.fails(t, ExitUsage, "namespace", "ls", "--controlplane-ca-file", cert, "--controlplane-url", "http://"+p.Addr())
	ta.fails(t, ExitUsage, "namespace", "ls", "--controlplane-ca-file", keyFile) // no certificate in it
	ta.fails(t, ExitUsage, "namespace", "ls", "--controlplane-ca-file", filepath.Join(dir, "gone"))
	if said := ta.fails(t, ExitUsage, "namespace", "ls", "--controlplane-url", "https://user:s3cret@127.0.0.1:1"); strings.Contains(said, "s3cret") {
		t.Errorf("the password is told: %q", said)
	}
}

// Whatever way a secret setting comes, neither --print-config nor an error
// shows it.
func TestControlPlaneKeepsSecrets(t *testing.T) {
	const mark = "hunter2hunter2hunter2hunter2hunter2"
	values := make(map[string]string)
	for _, s := range config.ControlPlaneSettings() {
		if s.Secret {
			values[s.Key] = mark + "-" + strings.ReplaceAll(s.Key, ".", "-")
		}
	}
	if len(values) < 4 {
		t.Fatalf("only %d settings are secret", len(values))
	}
	values["postgres.url"] = "postgres://felix:" + mark + "@127.0.0.1:1/felix"
	var flags, environ []string
	yaml := ""
	for _, s := range config.ControlPlaneSettings() {
		value, secret := values[s.Key]
		if !secret {
			continue
		}
		flags = append(flags, "--"+s.Flag(), value)
		environ = append(environ, s.Env+"="+value)
		group, key, nested := strings.Cut(s.Key, ".")
		if nested && !strings.Contains(yaml, group+":\n") {
			yaml += group + ":\n"
		}
		yaml = strings.Replace(yaml, group+":\n", fmt.Sprintf("%s:\n  %s: %q\n", group, key, value), 1)
	}
	file := filepath.Join(t.TempDir(), "controlplane.yml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args    []string
		environ []string
	}{"flags": {flags, nil}, "environment": {nil, environ}, "file": {[]string{"--config", file}, nil}} {
		ta := newTestApp(t, nil)
		ta.Environ = func() []string { return tc.environ }
		for _, more := range [][]string{{"--print-config"}, {"--print-config", "--json"}} {
			out := ta.runs(t, append(append([]string{"controlplane"}, more...), tc.args...)...)
			if strings.Contains(out+ta.errs.String(), mark) || !strings.Contains(out, "postgres") {
				t.Errorf("%s: %s%s", name, out, &ta.errs)
			}
		}
		if said := ta.fails(t, ExitUsage, append([]string{"controlplane", "--changes-limit", "x"}, tc.args...)...); strings.Contains(said, mark) {
			t.Errorf("%s: %s", name, said)
		}
		// Nobody listens on the port of the database.
		if said := ta.fails(t, ExitOther, append([]string{"controlplane", "--postgres-connect-timeout-ms", "200"}, tc.args...)...); strings.Contains(said, mark) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// Settings that cannot be are exit code 2, with what to do.
func TestControlPlaneSettings(t *testing.T) {
	raft := []string{"--raft-data-dir", filepath.Join(t.TempDir(), "m"), "--raft-cluster-id", "c", "--raft-bind-addr", "127.0.0.1:0", "--raft-insecure-peers"}
	ta := newTestApp(t, nil)
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"a peer without an address":  {append(raft, "--raft-node-id", "1", "--raft-peers", "1=127.0.0.1:1,2"), "NUMBER=HOST:PORT"},
		"a peer without a port":      {append(raft, "--raft-node-id", "1", "--raft-peers", "1=127.0.0.1"), "HOST:PORT"},
		"a peer twice":               {append(raft, "--raft-node-id", "1", "--raft-peers", "1=127.0.0.1:1,1=127.0.0.1:2"), "twice"},
		"an address twice":           {append(raft, "--raft-node-id", "1", "--raft-peers", "1=127.0.0.1:1,2=127.0.0.1:1"), "same address"},
		"a number that is no member": {append(raft, "--raft-node-id", "3", "--raft-peers", "1=127.0.0.1:1,2=127.0.0.1:2"), "not in raft.peers"},
		"a name for a number":        {append(raft, "--raft-node-id", "one", "--raft-peers", "1=127.0.0.1:1"), "none of the numbers"},
		"no number":                  {append(raft, "--raft-peers", "1=127.0.0.1:1"), "raft.node_id"},
		"bootstrap without a secret": {[]string{"--bootstrap-enabled"}, "bootstrap.token"},
		"an unknown flag":            {[]string{"--raft-datadir", "x"}, "did you mean --raft-data-dir"},
		"a command":                  {[]string{"start"}, `unknown command "start"`},
	} {
		if said := ta.fails(t, ExitUsage, append([]string{"controlplane"}, tc.args...)...); !strings.Contains(said, tc.says) {
			t.Errorf("%s: said %q", name, said)
		}
	}
}
