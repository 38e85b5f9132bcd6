package config

import (
	"fmt"
	"io"
	"strings"
)

const docsIntro = `# Broker configuration

<!-- Written from the table in internal/config; do not edit. To rewrite it: go test ./internal/config -run TestReferencePage -update -->

A setting is taken from the first of: its flag, its environment variable, the YAML file, its default. The flag is the key with
dashes: ` + "`publish_window` is `--publish-window`" + `. The file is the one given by ` + "`--config`, else by `" + fileEnv + "`, else `" + DefaultFile + "`" + `
(which alone may be missing); it is one flat mapping of keys to values. ` + "`felix broker --print-config`" + ` prints the whole configuration
as a file that can be loaded again.

Nothing is corrected silently. A value that does not parse or is out of bounds, an unknown key, flag or ` + "`FELIX_`" + ` variable, and a
combination that cannot work stop the broker with a sentence that says what was given, where, and what is allowed. An environment
variable set to nothing counts as not set.

Sizes are bytes, plain or with a unit: ` + "`16777216`, `16MiB`, `16MB`" + `. Times are whole numbers in the unit that ends the key, or carry a
unit: ` + "`2000`, `2s`" + `. Switches are ` + "`true`, `yes`, `1`, `false`, `no`, `0`" + `.
`

// WriteDocs writes the reference page of the configuration in Markdown.
func WriteDocs(w io.Writer) error {
	var b strings.Builder
	b.WriteString(docsIntro)
	docsTables(&b, new(Config).groups())
	b.WriteString("\n## Combinations that are refused\n\nThe first may not exceed the second; equal values are fine.\n\n| First | Second |\n| --- | --- |\n")
	for _, pair := range atMost {
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", pair.small, pair.large)
	}
	b.WriteString("\nAlso refused: `tls_cert` without `tls_key` or the reverse; `tls_cert_export` with `tls_cert`; `tls_require_cert` or\n" +
		"`tls_client_cert_bind_subject` without `tls_client_ca`; client ports past 65535; several listeners on port 0.\n")
	b.WriteString("\n## Accepted without effect\n\nSettings of the original broker that do nothing here. Each that is set makes one warning at the start.\n\n" +
		"| Key | Environment | Why |\n| --- | --- | --- |\n")
	for _, old := range inertSettings {
		key := ""
		if old.key != "" {
			key = "`" + old.key + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", key, old.env, old.why)
	}
	b.WriteString("\n## Not supported\n\nVariables whose promise would be broken by ignoring them; set, they stop the broker.\n\n| Environment | Why |\n| --- | --- |\n")
	for _, name := range sortedKeys(refusedVariables) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, refusedVariables[name])
	}
	b.WriteString("\nVariables of clients, of the command line and of the control plane, and those that Kubernetes sets for services, are not the\nbroker's business and may be there.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func docsTables(b *strings.Builder, groups []group) {
	for _, g := range groups {
		fmt.Fprintf(b, "\n## %s\n\n| Key | Environment | Default | Meaning |\n| --- | --- | --- | --- |\n", g.title)
		for _, s := range g.settings {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s Allowed: %s. |\n", s.Key, docsNames(s), docsDefault(s), cell(s.Help), cell(s.Allowed()))
		}
	}
}

const controlPlaneDocsIntro = `# Control plane configuration

<!-- Written from the table in internal/config; do not edit. To rewrite it: go test ./internal/config -run TestControlPlanePage -update -->

A setting of ` + "`felix controlplane`" + ` is taken from the first of: its flag, its environment variable, the YAML file, its default. The
flag is the key with dashes: ` + "`postgres.max_connections` is `--postgres-max-connections`" + `. The file is the one given by ` + "`--config`, else by\n`" + controlPlaneFileEnv + "`" + `. Keys with a dot may be written nested:

` + "```yaml" + `
region_id: eu-west-1
raft:
  data_dir: /var/lib/felix/controlplane
` + "```" + `

` + "`felix controlplane --print-config`" + ` prints the whole configuration as a file that can be loaded again, without its secrets. What is said
of values, sizes, times and errors in [configuration.md](configuration.md) holds here too.
`

// WriteControlPlaneDocs writes the reference page of the control plane's
// configuration in Markdown.
func WriteControlPlaneDocs(w io.Writer) error {
	var b strings.Builder
	b.WriteString(controlPlaneDocsIntro)
	docsTables(&b, new(ControlPlane).groups())
	b.WriteString("\n## Combinations that are refused\n\n" +
		"- some but not all of a certificate, its key and, where there is one, its authority;\n" +
		"- `storage.backend` without what the backend needs; `raft.peers` without `raft.node_id`, `raft.bind_addr`, `raft.cluster_id` and a\n  `raft.peer_token` of 32 characters (or `raft.insecure_peers`);\n" +
		"- `node_liveness.expiry_timeout_ms` not above the heartbeat interval; a margin below a quarter of it;\n" +
		"- `bootstrap.enabled` or `bootstrap.previous_token` without `bootstrap.token`; `bootstrap.dev_tokens` off loopback;\n" +
		"- `change_retention_max_rows` below `changes_limit`.\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func docsNames(s Setting) string {
	names := "`" + s.Env + "`"
	for _, alias := range s.Aliases {
		names += ", `" + alias + "`"
	}
	return names
}

func docsDefault(s Setting) string {
	switch {
	case s.Derived != "":
		return s.Derived
	case s.Default == "":
		return "unset"
	default:
		return "`" + s.Default + "`"
	}
}

// cell keeps a text from breaking a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
