package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/controlplane"
	"github.com/felixlog/felix/internal/telemetry"
)

func (a *App) controlPlaneCommand() *cobra.Command {
	var file string
	var printConfig bool
	cmd := &cobra.Command{
		Use:     "controlplane",
		GroupID: groupServe,
		Short:   "Run an instance of the control plane",
		Long: `Run an instance of the control plane until it is told to end. It keeps who
exists, who may do what, and which broker serves which shard, and never sees a
message. Brokers go on serving while all its instances are away.

It keeps its metadata in Postgres (--postgres-url), in a Raft group of its
instances (--raft-data-dir, --raft-peers), or with --raft-data-dir alone in a
group of one, which needs nothing else. Without any of them it is in memory, and
gone when the process ends.

Each setting is taken from the first of flag, environment, YAML file and
default; docs/controlplane-configuration.md is their reference.

When it serves it prints one line on standard output (one object with --json);
logs go to standard error. SIGTERM and Ctrl-C end it gracefully, a second signal
at once.`,
		Example: `  # one instance that keeps everything in a directory
  felix controlplane --raft-data-dir /var/lib/felix/controlplane

  # one of several on a database
  felix controlplane --config controlplane.yml

  # what would it run with?
  felix controlplane --config controlplane.yml --print-config`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			cfg, warnings, err := a.controlPlaneConfig(cmd, file)
			if err != nil {
				return err
			}
			if printConfig {
				return a.printSettings(cfg.Settings(), func() error { return config.PrintControlPlane(a.Stdout, cfg) })
			}
			return a.runControlPlane(cmd.Context(), cfg, warnings)
		},
	}
	addControlPlaneSettings(cmd, &file, config.ControlPlaneSettings())
	cmd.Flags().BoolVar(&printConfig, "print-config", false, "print the settings that would be used, as YAML, and exit")
	cmd.AddCommand(a.migrateCommand())
	return cmd
}

// addControlPlaneSettings adds the flags of settings and of their file.
func addControlPlaneSettings(cmd *cobra.Command, file *string, settings []config.Setting) {
	flags := cmd.Flags()
	flags.SortFlags = false
	// A server reads no contexts, so its --config is the file of its settings.
	flags.StringVar(file, "config", "", "YAML `FILE` of settings (env FELIX_CONTROLPLANE_CONFIG)")
	addSettings(flags, settings)
}

// controlPlaneConfig loads the settings from all their sources.
func (a *App) controlPlaneConfig(cmd *cobra.Command, file string) (*config.ControlPlane, []string, error) {
	if file != "" {
		file = a.abs(file)
	}
	given := givenSettings(cmd.Flags(), config.ControlPlaneSettings())
	cfg, warnings, err := config.LoadControlPlane(config.Sources{Flags: given, Environ: a.Environ(), File: file})
	if err != nil {
		return nil, nil, &Error{Exit: ExitUsage, Err: fmt.Errorf("settings: %w", err)}
	}
	if cfg.Raft.DataDir != "" {
		cfg.Raft.DataDir = a.abs(cfg.Raft.DataDir)
	}
	return cfg, warnings, nil
}

// controlPlaneReady is the line a script waits for.
type controlPlaneReady struct {
	Status    string `json:"status"`
	URL       string `json:"url"`
	Admin     string `json:"admin_url"`
	Bootstrap string `json:"bootstrap_url,omitempty"`
	Backend   string `json:"backend"`
	PID       int    `json:"pid"`
}

// runControlPlane serves until ctx ends.
func (a *App) runControlPlane(ctx context.Context, cfg *config.ControlPlane, warnings []string) error {
	logger, err := telemetry.NewLogger(a.Stderr, cfg.Log, string(cfg.LogFormat))
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		logger.Warn(warning)
	}
	if cfg.Backend == config.BackendMemory {
		logger.Warn("the metadata is in memory and gone when this process ends; --raft-data-dir keeps it in a directory")
	}
	instance, err := controlplane.Start(ctx, cfg, logger)
	if err != nil {
		return explainStore(err)
	}
	ready := controlPlaneReady{
		Status: "ready", URL: scheme(cfg.TLSCert) + instance.Addr(), Admin: "http://" + instance.MetricsAddr(),
		Backend: string(cfg.Backend), PID: os.Getpid(),
	}
	if addr := instance.BootstrapAddr(); addr != "" {
		ready.Bootstrap = scheme(cfg.Bootstrap.TLSCert) + addr
	}
	if a.flags.json {
		err = printJSON(a.Stdout, ready)
	} else {
		text := fmt.Sprintf("felix controlplane ready: API %s, admin %s, metadata in %s", ready.URL, ready.Admin, ready.Backend)
		if ready.Bootstrap != "" {
			text += ", bootstrap " + ready.Bootstrap
		}
		_, err = fmt.Fprintln(a.Stdout, text)
	}
	if err != nil {
		logger.Warn("the ready line could not be printed", "error", err)
	}
	return a.serve(ctx, instance)
}

// explainStore gives a store that cannot be opened its exit code.
func explainStore(err error) error {
	if isType[*controlplane.SettingsError](err) {
		return &Error{Exit: ExitUsage, Err: err}
	}
	return err
}

// scheme is how a listener is spoken to, by whether it has a certificate.
func scheme(certificate string) string {
	if certificate == "" {
		return "http://"
	}
	return "https://"
}
