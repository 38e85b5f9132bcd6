package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/brokerservice"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/storage/fs"
)

// A settingValue is a broker setting as a flag: the text is kept as given,
// and the configuration judges it together with its other sources.
type settingValue struct {
	text   string
	toggle bool
}

func (v *settingValue) String() string { return v.text }

func (v *settingValue) Set(text string) error {
	v.text = text
	return nil
}

func (v *settingValue) Type() string {
	if v.toggle {
		return "bool"
	}
	return "VALUE"
}

func (a *App) brokerCommand() *cobra.Command {
	var file, data string
	var printConfig bool
	cmd := &cobra.Command{
		Use:     "broker",
		GroupID: groupServe,
		Short:   "Run a broker",
		Long: `Run a broker until it is told to end. Each setting is taken from the first of
flag, environment, YAML file and default; the flags below are the settings, and
docs/configuration.md is their reference.

--data names the directory of the logs; without one, streams and caches are in
memory and gone when the broker ends.

--controlplane-url names the control plane that says who exists and who may do
what; with --node-id the broker joins its cluster and serves the shards it is
given. Without a control plane, --catalog names a YAML file of the tenants with
their keys, and of their namespaces, streams and caches. It is watched: a change
takes effect while the broker runs, and a file that does not parse changes
nothing.

When it accepts clients it prints one line on standard output (one object with
--json); logs go to standard error. SIGTERM and Ctrl-C end it gracefully: it
stops accepting, answers what is under way, and exits. A second signal ends it
at once.`,
		Example: `  # a broker that follows a control plane
  felix broker --data /var/lib/felix --controlplane-url https://felix.example:8443 --node-token-file token

  # a broker with the streams of a catalog
  felix broker --data /var/lib/felix --catalog catalog.yml --tls-cert cert.pem --tls-key key.pem

  # what would it run with?
  felix broker --config broker.yml --publish-window 512 --print-config`,
		Args: positional(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, warnings, err := a.brokerConfig(cmd, file, data)
			if err != nil {
				return err
			}
			if printConfig {
				return a.printSettings(cfg.Settings(), func() error { return config.Print(a.Stdout, cfg) })
			}
			return a.runBroker(cmd.Context(), cfg, warnings)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	// A broker reads no contexts, so its --config is the file of its settings.
	flags.StringVar(&file, "config", "", "YAML `FILE` of settings (env FELIX_BROKER_CONFIG; default "+config.DefaultFile+" where it exists)")
	flags.StringVar(&data, "data", "", "keep the logs in `DIR`: short for --durable-storage-dir")
	flags.BoolVar(&printConfig, "print-config", false, "print the settings that would be used, as YAML, and exit")
	addSettings(flags, config.Settings())
	return cmd
}

// addSettings adds a flag for each setting of a server.
func addSettings(flags *pflag.FlagSet, settings []config.Setting) {
	for _, s := range settings {
		flag := flags.VarPF(&settingValue{toggle: s.IsBool()}, s.Flag(), "", settingUsage(&s))
		if s.IsBool() {
			flag.NoOptDefVal = "true"
		}
	}
}

// givenSettings are those of the settings that were given as flags.
func givenSettings(flags *pflag.FlagSet, settings []config.Setting) map[string]string {
	given := make(map[string]string)
	for _, s := range settings {
		if f := flags.Lookup(s.Flag()); f != nil && f.Changed {
			given[s.Flag()] = f.Value.String()
		}
	}
	return given
}

// settingUsage is one line of help for a setting.
func settingUsage(s *config.Setting) string {
	first, _, _ := strings.Cut(s.Help, ". ")
	usage := strings.TrimSuffix(first, ".")
	switch {
	case s.Derived != "":
		usage += " (default " + s.Derived + ")"
	case s.Default != "" && s.Default != "false":
		usage += " (default " + s.Default + ")"
	}
	return withVariable(usage, s.Env)
}

// storageDir is the flag of the setting that --data is short for.
const storageDir = "durable-storage-dir"

// brokerConfig loads the settings from all their sources.
func (a *App) brokerConfig(cmd *cobra.Command, file, data string) (*config.Config, []string, error) {
	given := givenSettings(cmd.Flags(), config.Settings())
	if data != "" {
		if other, twice := given[storageDir]; twice && other != data {
			return nil, nil, usageError("--data and --%s name different directories", storageDir)
		}
		given[storageDir] = data
	}
	if file != "" {
		file = a.abs(file)
	}
	cfg, warnings, err := config.Load(config.Sources{Flags: given, Environ: a.Environ(), File: file})
	if err != nil {
		return nil, nil, &Error{Exit: ExitUsage, Err: fmt.Errorf("settings: %w", err)}
	}
	return cfg, warnings, nil
}

// printSettings prints settings as a YAML file that can be loaded again, which
// asYAML does, or as one object, without the secrets.
func (a *App) printSettings(settings []config.Setting, asYAML func() error) error {
	if !a.flags.json {
		return asYAML()
	}
	values := make(map[string]string)
	for _, s := range settings {
		if !s.Secret {
			values[s.Key] = s.Text()
		}
	}
	return printJSON(a.Stdout, values)
}

// brokerReady is the line a script waits for.
type brokerReady struct {
	Status string   `json:"status"`
	Addrs  []string `json:"addrs"`
	Admin  string   `json:"admin_url"`
	PID    int      `json:"pid"`
}

// runBroker serves until ctx ends or the broker fails.
func (a *App) runBroker(ctx context.Context, cfg *config.Config, warnings []string) error {
	logger, err := telemetry.NewLogger(a.Stderr, cfg.Process.Log, string(cfg.Process.LogFormat))
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		logger.Warn(warning)
	}
	tuneProcess(cfg.Process)
	if cfg.Storage.Dir != "" {
		cfg.Storage.Dir = a.abs(cfg.Storage.Dir)
	}
	running, err := a.startBroker(ctx, cfg, logger)
	if locked, ok := errors.AsType[*fs.LockedError](err); ok {
		return explainLocked(locked, "--data")
	}
	if err != nil {
		return err
	}
	n := running.node
	ready := brokerReady{Status: "ready", Addrs: n.ClientAddrs(), Admin: "http://" + n.AdminAddr(), PID: os.Getpid()}
	if a.flags.json {
		err = printJSON(a.Stdout, ready)
	} else {
		_, err = fmt.Fprintf(a.Stdout, "felix broker ready: clients %s, admin %s\n", strings.Join(ready.Addrs, " "), ready.Admin)
	}
	if err != nil {
		logger.Warn("the ready line could not be printed", "error", err)
	}
	return a.serve(ctx, running.server)
}

// A runningBroker is a node, and what ends it with all that belongs to it.
type runningBroker struct {
	node   *node.Node
	server server
}

// startBroker starts a node that follows a control plane, or a catalog file.
func (a *App) startBroker(ctx context.Context, cfg *config.Config, logger *slog.Logger) (*runningBroker, error) {
	options := node.Options{Config: cfg, Logger: logger, Version: thisBuild().Version}
	if brokerservice.Follows(cfg) {
		s, err := brokerservice.Start(ctx, options)
		if err != nil {
			return nil, err
		}
		return &runningBroker{s.Node, s}, nil
	}
	keys := auth.NewStaticKeys()
	options.Keys = keys
	n, err := node.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	if cfg.Catalog.File == "" {
		logger.Warn("neither a control plane nor a catalog is set: there is no tenant, and every client will be refused")
	} else if err := n.FollowCatalog(ctx, a.abs(cfg.Catalog.File), keys); err != nil {
		return nil, errors.Join(&Error{Exit: ExitUsage, Err: err}, n.Shutdown(context.WithoutCancel(ctx)))
	}
	n.Ready()
	return &runningBroker{n, n}, nil
}

// A server is what [App.serve] waits for.
type server interface {
	Done() <-chan struct{}
	// Shutdown stops the server; on one that has stopped it returns why.
	Shutdown(ctx context.Context) error
}

// serve waits until ctx ends (then the server is shut down, and at once when
// the user insists) or the server ends by itself, which is a failure.
func (a *App) serve(ctx context.Context, s server) error {
	select {
	case <-s.Done():
		return s.Shutdown(ctx)
	case <-ctx.Done():
	}
	stop, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		select {
		case <-a.Force:
			cancel()
		case <-stop.Done():
		}
	}()
	return s.Shutdown(stop)
}
