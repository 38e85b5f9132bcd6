package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/felixlog/felix/internal/cli/contexts"
)

// globalFlags are the flags every command takes.
type globalFlags struct {
	json    bool
	quiet   bool
	context string
	config  string
	// connection holds the connection flags as they were given.
	connection contexts.Connection
}

// A setting is one part of a connection: the flag and the variable that give
// it, and where it goes. This one table makes the flags, reads the
// environment, and writes the reference.
type setting struct {
	flag, short string
	env         string
	usage       string
	// field points at a string of the connection; list and toggle stand in
	// for it where the part is a list or a switch.
	field  func(*contexts.Connection) *string
	list   func(*contexts.Connection) *[]string
	toggle func(*contexts.Connection) *bool
	// path marks the name of a file.
	path bool
	// rival is the setting that says the same in another way: giving this
	// one in a nearer place (flag before environment before context) sets
	// the rival of a farther place aside.
	rival string
}

// settings lists the parts of a connection in the order of the reference.
func settings() []setting {
	type conn = contexts.Connection
	return []setting{
		{flag: "brokers", env: "FELIX_BROKERS", usage: "broker addresses to begin with, `HOST:PORT,...`", list: func(c *conn) *[]string { return &c.Brokers }},
		{flag: "tenant", env: "FELIX_AUTH_TENANT", usage: "`TENANT` to act in", field: func(c *conn) *string { return &c.Tenant }},
		{flag: "namespace", short: "n", env: "FELIX_NAMESPACE", usage: "`NAMESPACE` of streams and caches (default \"default\")", field: func(c *conn) *string { return &c.Namespace }},
		{flag: "token", env: "FELIX_AUTH_TOKEN", usage: "broker `TOKEN`; other users of the machine can see it, so prefer --token-file", field: func(c *conn) *string { return &c.Token }, rival: "token-file"},
		{flag: "token-file", env: "FELIX_AUTH_TOKEN_FILE", usage: "`FILE` that holds the broker token", field: func(c *conn) *string { return &c.TokenFile }, path: true, rival: "token"},
		{flag: "ca-file", env: "FELIX_CA_FILE", usage: "PEM `FILE` of the authorities trusted for brokers (default the system's)", field: func(c *conn) *string { return &c.CAFile }, path: true},
		{flag: "server-name", env: "FELIX_SERVER_NAME", usage: "`NAME` the broker's certificate must carry (default the first broker's host, or localhost for an IP address)", field: func(c *conn) *string { return &c.ServerName }},
		{flag: "client-cert-file", env: "FELIX_CLIENT_CERT_FILE", usage: "PEM `FILE` of the client certificate", field: func(c *conn) *string { return &c.ClientCertFile }, path: true},
		{flag: "client-key-file", env: "FELIX_CLIENT_KEY_FILE", usage: "PEM `FILE` of the client certificate's key", field: func(c *conn) *string { return &c.ClientKeyFile }, path: true},
		{flag: "alpn", usage: "offer the application protocol felix/1, for brokers that demand it", toggle: func(c *conn) *bool { return &c.ALPN }},
		{flag: "controlplane-url", env: "FELIX_CONTROLPLANE_URL", usage: "base `URL` of the control plane's API", field: func(c *conn) *string { return &c.ControlPlaneURL }},
		{flag: "controlplane-token", env: "FELIX_CONTROLPLANE_TOKEN", usage: "control plane `TOKEN`", field: func(c *conn) *string { return &c.ControlPlaneToken }, rival: "controlplane-token-file"},
		{flag: "controlplane-token-file", env: "FELIX_CONTROLPLANE_TOKEN_FILE", usage: "`FILE` that holds the control plane token", field: func(c *conn) *string { return &c.ControlPlaneTokenFile }, path: true, rival: "controlplane-token"},
		{flag: "controlplane-ca-file", env: "FELIX_CONTROLPLANE_CA", usage: "PEM `FILE` of the authorities trusted for an https control plane", field: func(c *conn) *string { return &c.ControlPlaneCAFile }, path: true},
	}
}

// get is the setting's value in c as text, "" when it is not set.
func (s *setting) get(c *contexts.Connection) string {
	switch {
	case s.list != nil:
		return strings.Join(*s.list(c), ",")
	case s.toggle != nil:
		if *s.toggle(c) {
			return "true"
		}
		return ""
	default:
		return *s.field(c)
	}
}

// set puts the text of a variable into c.
func (s *setting) set(c *contexts.Connection, text string) error {
	switch {
	case s.list != nil:
		*s.list(c) = splitList(text)
	case s.toggle != nil:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return err
		}
		*s.toggle(c) = on
	default:
		*s.field(c) = text
	}
	return nil
}

// splitList cuts a comma-separated list and drops blanks.
func splitList(text string) []string {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// addGlobalFlags puts the flags of every command on the root.
func (a *App) addGlobalFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.BoolVar(&a.flags.json, "json", false, "print JSON, errors too")
	flags.BoolVarP(&a.flags.quiet, "quiet", "q", false, "no progress, no remarks, no summaries")
	flags.StringVar(&a.flags.context, "context", "", "connect with the context `NAME`")
	flags.StringVar(&a.flags.config, "config", "", "`FILE` of the contexts")
	for _, s := range settings() {
		usage := withVariable(s.usage, s.env)
		switch {
		case s.list != nil:
			flags.StringSliceVarP(s.list(&a.flags.connection), s.flag, s.short, nil, usage)
		case s.toggle != nil:
			flags.BoolVarP(s.toggle(&a.flags.connection), s.flag, s.short, false, usage)
		default:
			flags.StringVarP(s.field(&a.flags.connection), s.flag, s.short, "", usage)
		}
	}
}

// withVariable adds to the help of a flag the variable that stands for it, if
// there is one.
func withVariable(usage, variable string) string {
	switch before, defaulted := strings.CutSuffix(usage, ")"); {
	case variable == "":
		return usage
	case defaulted && strings.Contains(usage, "(default "):
		return before + "; env " + variable + ")"
	}
	return usage + " (env " + variable + ")"
}

// contextStore is the context file this command line works with.
func (a *App) contextStore() (contexts.Store, error) {
	path := a.flags.config
	if path == "" {
		path = a.Getenv("FELIX_CLI_CONFIG")
	}
	if path == "" {
		var err error
		if path, err = contexts.DefaultPath(a.Getenv); err != nil {
			return contexts.Store{}, &Error{Exit: ExitUsage, Err: err, Hint: "say where the contexts are with --config FILE"}
		}
	}
	return contexts.Store{Path: a.abs(path)}, nil
}

// abs makes a path absolute from the working directory.
func (a *App) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.Dir, path)
}

// resolved is a connection put together from all its sources.
type resolved struct {
	contexts.Connection
	// Saved is the connection without what the environment says: what may be
	// kept in a context.
	Saved contexts.Connection
	// ContextName is the context that was consulted, "" when there was none.
	ContextName string
}

// resolve puts the connection together: what a flag says beats the
// environment, which beats the context.
func (a *App) resolve(flags *pflag.FlagSet) (resolved, error) {
	var out resolved
	store, err := a.contextStore()
	if err != nil {
		return out, err
	}
	file, err := store.Load()
	if err != nil {
		return out, &Error{Exit: ExitUsage, Err: err}
	}
	name, asked := a.flags.context, "--context"
	if name == "" {
		name, asked = a.Getenv("FELIX_CONTEXT"), "FELIX_CONTEXT"
	}
	if name == "" {
		name, asked = file.Current, "the current context in "+store.Path
	}
	if name != "" {
		saved, err := file.Get(name)
		if err != nil {
			missing := a.noSuchContext(name, &file)
			missing.Err = fmt.Errorf("%w, asked for by %s", missing.Err, asked)
			return out, missing
		}
		out.Connection, out.Saved, out.ContextName = saved, saved, name
		if saved.HoldsSecret() && store.Exposed() {
			a.remark("%s holds a token and can be read by others; chmod 600 it", store.Path)
		}
	}
	env, err := a.fromEnvironment()
	if err != nil {
		return out, err
	}
	if err := overlay(&out.Connection, &env, func(s *setting) bool { return s.get(&env) != "" }, "the environment"); err != nil {
		return out, err
	}
	given := a.flags.connection
	for _, s := range settings() {
		if s.path && *s.field(&given) != "" {
			*s.field(&given) = a.abs(*s.field(&given))
		}
	}
	for _, under := range []*contexts.Connection{&out.Connection, &out.Saved} {
		if err := overlay(under, &given, func(s *setting) bool { return flags.Changed(s.flag) }, "the command line"); err != nil {
			return out, err
		}
	}
	return out, nil
}

// fromEnvironment reads the variables of [settings].
func (a *App) fromEnvironment() (contexts.Connection, error) {
	var env contexts.Connection
	for _, s := range settings() {
		if s.env == "" {
			continue
		}
		text := a.Getenv(s.env)
		if text == "" {
			continue
		}
		if s.path {
			text = a.abs(text)
		}
		if err := s.set(&env, text); err != nil {
			return env, usageError("%s: %w", s.env, err)
		}
	}
	return env, nil
}

// overlay copies the settings that over has onto under. Two rivals in over
// itself contradict each other.
func overlay(under, over *contexts.Connection, has func(*setting) bool, where string) error {
	all := settings()
	byFlag := make(map[string]*setting, len(all))
	for i := range all {
		byFlag[all[i].flag] = &all[i]
	}
	for i := range all {
		s := &all[i]
		if !has(s) {
			continue
		}
		if rival := byFlag[s.rival]; rival != nil {
			if has(rival) {
				return usageError("%s gives both --%s and --%s; give one", where, s.flag, rival.flag)
			}
			*rival.field(under) = ""
		}
		switch {
		case s.list != nil:
			*s.list(under) = *s.list(over)
		case s.toggle != nil:
			*s.toggle(under) = *s.toggle(over)
		default:
			*s.field(under) = *s.field(over)
		}
	}
	return nil
}

// readToken is the broker token of a connection: the one given, or the
// content of its file without surrounding blanks.
func readToken(c *contexts.Connection) (string, error) {
	if c.Token != "" || c.TokenFile == "" {
		return c.Token, nil
	}
	return readSecret(c.TokenFile, "the token")
}
