package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"github.com/felixlog/felix/internal/cli/contexts"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/dev"
	"github.com/felixlog/felix/storage/fs"
)

// devContext is the context that "felix dev" writes.
const devContext = "dev"

type devFlags struct {
	data      string
	memory    bool
	port      uint16
	http      uint16
	api       uint16
	noContext bool
}

func (a *App) devCommand() *cobra.Command {
	f := devFlags{}
	cmd := &cobra.Command{
		Use:     "dev",
		GroupID: groupStart,
		Short:   "Run Felix for development, with nothing to prepare",
		Long: `Run a broker and its control plane on this machine until Ctrl-C. There is
nothing to prepare: it makes its own certificate authority and tokens that do
not expire, for the tenant dev and its namespace default, and streams and caches
appear when they are first used, or are made with "felix stream create" and
"felix cache create". Only this machine can reach it.

It writes the context dev and selects it, so that "felix pub" and "felix sub"
work in the next terminal with no flags, and prints lines to copy for other
clients.

Authority, token, messages and cache entries are kept in --data and found
again after a restart (default felix/dev under $XDG_STATE_HOME, else
~/.local/state). A publish and a cache write are acknowledged once they are on
disk. To begin anew, end it and remove the directory.

With --memory nothing is kept: it all ends with the broker, and so does the
context. A stream then has a bounded run of recent messages for late readers.

Broker settings can be given by environment variables, as for "felix broker".
With --json the first line on standard output is one object with "addr",
"ca_file", "token_file", "tenant", "namespace", "admin_url", "controlplane_url",
"controlplane_token_file", "data_dir" and "pid", printed when it is ready.`,
		Example: `  felix dev

  # beside another one, on free ports, keeping nothing
  felix dev --memory --port 0 --http 0

  # from a script: wait for the first line
  felix dev --json | head -1 | jq -r .addr`,
		Args: positional(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.memory && f.data != "" {
				return usageError("--memory and --data contradict each other")
			}
			if f.port == 0 && !cmd.Flags().Changed("api") {
				f.api = 0 // one beside another wants no fixed ports
			}
			return a.runDev(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "keep authority, token and data in `DIR` (default felix/dev under the user's state directory)")
	flags.BoolVar(&f.memory, "memory", false, "keep nothing")
	flags.Uint16Var(&f.port, "port", dev.DefaultPort, "`PORT` for clients (UDP), 0 for a free one")
	flags.Uint16Var(&f.http, "http", dev.DefaultHTTPPort, "`PORT` for /live, /ready and /metrics (TCP), 0 for a free one")
	flags.Uint16Var(&f.api, "api", dev.DefaultAPIPort, "`PORT` for the control plane (TCP), 0 for a free one, as with --port 0")
	flags.BoolVar(&f.noContext, "no-context", false, "do not write and select the context dev")
	return cmd
}

// devReady is what a script needs to know of a development broker.
type devReady struct {
	Status    string `json:"status"`
	Addr      string `json:"addr"`
	CAFile    string `json:"ca_file"`
	TokenFile string `json:"token_file"`
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	AdminURL  string `json:"admin_url"`
	// ControlPlaneURL is the base of the control plane's API, and
	// ControlTokenFile holds the token for it.
	ControlPlaneURL  string `json:"controlplane_url"`
	ControlTokenFile string `json:"controlplane_token_file"`
	// DataDir is where the data is and Fsync when a write is there; both are
	// empty in memory.
	DataDir string `json:"data_dir,omitempty"`
	Fsync   string `json:"fsync,omitempty"`
	// Context is the context that was selected, empty with --no-context.
	Context string `json:"context,omitempty"`
	PID     int    `json:"pid"`
}

func (a *App) runDev(ctx context.Context, f *devFlags) error {
	dir, cleanUp, err := a.devDir(f)
	if err != nil {
		return err
	}
	defer cleanUp()
	data := ""
	if !f.memory {
		data = dev.DataDir(dir)
	}
	server, err := dev.Start(ctx, dev.Options{
		Dir: dir, Data: data, Port: int(f.port), HTTPPort: int(f.http), APIPort: int(f.api),
		Environ: a.Environ(), Log: a.Stderr, Version: thisBuild().Version,
	})
	if err != nil {
		return a.explainDev(err, f)
	}
	tuneProcess(server.Process())
	ready := devReady{
		Status: "ready", Addr: server.Addr(), CAFile: server.CAFile(), TokenFile: server.TokenFile(),
		Tenant: dev.Tenant, Namespace: dev.Namespace, AdminURL: server.AdminURL(), PID: os.Getpid(),
		DataDir: server.DataDir(), Fsync: string(server.Fsync()),
		ControlPlaneURL: server.ControlPlaneURL(), ControlTokenFile: server.ControlPlaneTokenFile(),
	}
	restore := func() {}
	if !f.noContext {
		if restore, err = a.selectDev(&ready, f.memory); err != nil {
			return errors.Join(err, server.Shutdown(context.WithoutCancel(ctx)))
		}
	}
	defer restore()
	if a.flags.json {
		err = printJSON(a.Stdout, ready)
	} else if !a.flags.quiet {
		err = printDev(a.styled(), &ready)
	}
	if err != nil {
		return errors.Join(err, server.Shutdown(context.WithoutCancel(ctx)))
	}
	return a.serve(ctx, server)
}

// devDir is the directory of all that is kept; cleanUp removes it where it is
// to end with the broker.
func (a *App) devDir(f *devFlags) (dir string, cleanUp func(), err error) {
	switch {
	case f.memory:
		dir, err = os.MkdirTemp("", "felix-dev-")
		if err != nil {
			return "", nil, err
		}
		return dir, func() { os.RemoveAll(dir) }, nil
	case f.data != "":
		return a.abs(f.data), func() {}, nil
	}
	dir, err = dev.DefaultDir(a.Getenv)
	if err != nil {
		return "", nil, &Error{Exit: ExitUsage, Err: err, Hint: "say where with --data DIR, or keep nothing with --memory"}
	}
	return dir, func() {}, nil
}

// selectDev writes the context of the broker and selects it. With passing
// set, restore takes the context away again and selects the one before.
func (a *App) selectDev(ready *devReady, passing bool) (restore func(), err error) {
	store, err := a.contextStore()
	if err != nil {
		return nil, err
	}
	connection := contexts.Connection{
		Brokers: []string{ready.Addr}, Tenant: ready.Tenant, Namespace: ready.Namespace,
		TokenFile: ready.TokenFile, CAFile: ready.CAFile, ServerName: "localhost",
		ControlPlaneURL: ready.ControlPlaneURL, ControlPlaneTokenFile: ready.ControlTokenFile,
	}
	var before string
	var replaced *contexts.Connection
	err = store.Update(func(file *contexts.File) error {
		before = file.Current
		if old, err := file.Get(devContext); err == nil {
			replaced = &old
		}
		if err := file.Add(devContext, connection, filepath.Dir(store.Path), true); err != nil {
			return err
		}
		return file.Use(devContext)
	})
	if err != nil {
		return nil, (&Error{Exit: ExitUsage, Err: err}).hinting("--no-context leaves the contexts alone")
	}
	ready.Context = devContext
	if before != "" && before != devContext {
		a.remark("the current context was %q and is now %q; \"felix context use %s\" goes back", before, devContext, before)
	}
	if !passing {
		return func() {}, nil
	}
	return func() {
		err := store.Update(func(file *contexts.File) error {
			now, err := file.Get(devContext)
			if err != nil || now.TokenFile != connection.TokenFile {
				return nil // somebody else's by now
			}
			wasCurrent := file.Current == devContext
			if err := file.Remove(devContext); err != nil {
				return err
			}
			if replaced != nil {
				if err := file.Add(devContext, *replaced, filepath.Dir(store.Path), true); err != nil {
					return err
				}
			}
			if _, err := file.Get(before); err == nil && wasCurrent {
				return file.Use(before)
			}
			return nil
		})
		if err != nil {
			a.remark("the context dev stays behind: %v", err)
		}
	}, nil
}

// explainDev says what to do about a failed start.
func (a *App) explainDev(err error, f *devFlags) error {
	taken, ok := errors.AsType[*dev.PortTakenError](err)
	var locked *fs.LockedError
	switch {
	case errors.Is(err, dev.ErrSettings):
		return &Error{Exit: ExitUsage, Err: err}
	case errors.As(err, &locked):
		return explainLocked(locked, "--data")
	case !ok:
		return err
	}
	flag := "--port"
	switch {
	case taken.Network == dev.TCP && taken.Port == int(f.api):
		flag = "--api"
	case taken.Network == dev.TCP:
		flag = "--http"
	}
	out := &Error{Exit: ExitOther, Err: taken}
	if taken.Holder != nil && strings.HasPrefix(taken.Holder.Command, "felix dev") {
		return out.hinting("use that one, stop it (kill %d), or let this one choose a free port: felix dev %s 0", taken.Holder.PID, flag)
	}
	if taken.Holder == nil {
		return out.hinting("choose another port, or let it choose a free one: felix dev %s 0", flag)
	}
	return out.hinting("stop it (kill %d), or let this one choose a free port: felix dev %s 0", taken.Holder.PID, flag)
}

// explainLocked says what to do about data that another broker has open.
func explainLocked(locked *fs.LockedError, flag string) error {
	out := &Error{Exit: ExitOther, Err: fmt.Errorf("the data is in use: %w", locked)}
	if locked.PID == 0 {
		return out.hinting("stop the broker that has it, or give this one another directory with %s", flag)
	}
	return out.hinting("stop the broker that has it (kill %d), or give this one another directory with %s", locked.PID, flag)
}

// printDev tells a person what runs and how to use it.
func printDev(out io.Writer, r *devReady) error {
	var b strings.Builder
	heading := func(text string) string { return lipgloss.NewStyle().Bold(true).Render(text) }
	data := "in memory, gone when it ends; nothing is kept, the authority and the token neither"
	if r.DataDir != "" {
		data = r.DataDir + ", there again after a restart; " + fsyncWords(r.Fsync)
	}
	fmt.Fprintf(&b, "%s\n", heading("Felix is ready for development"))
	fmt.Fprintf(&b, "  clients  %s (QUIC)\n", r.Addr)
	fmt.Fprintf(&b, "  admin    %s/metrics, /ready, /live\n", r.AdminURL)
	fmt.Fprintf(&b, "  control  %s/docs\n", r.ControlPlaneURL)
	fmt.Fprintf(&b, "  tenant   %s, namespace %s; streams and caches appear on first use\n", r.Tenant, r.Namespace)
	fmt.Fprintf(&b, "  data     %s\n", data)
	use := ""
	if r.Context == "" {
		use = fmt.Sprintf(" --brokers %s --tenant %s --token-file %s --ca-file %s", r.Addr, r.Tenant, shellQuote(r.TokenFile), shellQuote(r.CAFile))
	}
	fmt.Fprintf(&b, "\n%s, in another terminal\n", heading("Command line"))
	fmt.Fprintf(&b, "  felix sub orders%s\n", use)
	fmt.Fprintf(&b, "  felix pub orders hello%s\n", use)
	if use == "" {
		fmt.Fprintf(&b, "  felix stream create clicks --shards 4 --retention-secs 3600\n")
	}
	fmt.Fprintf(&b, "\n%s: go get github.com/felixlog/felix/client\n", heading("Go"))
	fmt.Fprintf(&b, "  token, _ := os.ReadFile(%s)\n", strconv.Quote(r.TokenFile))
	fmt.Fprintf(&b, "  c, err := client.Dial(ctx, []string{%s}, client.WithTenant(%s),\n", strconv.Quote(r.Addr), strconv.Quote(r.Tenant))
	fmt.Fprintf(&b, "      client.WithToken(strings.TrimSpace(string(token))), client.WithCAFile(%s))\n", strconv.Quote(r.CAFile))
	fmt.Fprintf(&b, "  _, err = c.Publish(ctx, \"orders\", []byte(\"hello\"))\n")
	fmt.Fprintf(&b, "\n%s: pip install felix-client\n", heading("Python"))
	fmt.Fprintf(&b, "  import felix\n")
	fmt.Fprintf(&b, "  c = felix.Client(%s, tenant_id=%s, token=open(%s).read().strip(), ca_file=%s)\n",
		strconv.Quote(r.Addr), strconv.Quote(r.Tenant), strconv.Quote(r.TokenFile), strconv.Quote(r.CAFile))
	fmt.Fprintf(&b, "  c.publish(%s, %s, \"orders\", b\"hello\")\n", strconv.Quote(r.Tenant), strconv.Quote(r.Namespace))
	fmt.Fprintf(&b, "\nCtrl-C ends it.\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// fsyncWords says what a mode means to whoever publishes.
func fsyncWords(mode string) string {
	switch config.FsyncMode(mode) {
	case config.FsyncOnCommit:
		return "fsync on_commit: acknowledged means on disk"
	case config.FsyncPeriodic:
		return "fsync periodic: a power cut loses the last moments"
	default:
		return "fsync none: a power cut loses what the system had not written"
	}
}

// shellQuote makes one word of text for a shell.
func shellQuote(text string) string {
	plain := strings.IndexFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%", r))
	}) < 0
	if plain && text != "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
