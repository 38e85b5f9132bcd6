package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/controlplane"
	"github.com/felixlog/felix/internal/ownfile"
)

func (a *App) migrateCommand() *cobra.Command {
	return family(&cobra.Command{
		Use:   "migrate",
		Short: "Move metadata between backends",
		Long: `Move the metadata of a control plane from one backend to another, while it is
stopped: export to a file, import from it. "schema" brings the schema of a
database up to date, which starting an instance does as well.

The file holds the signing keys of all tenants in plain text, so keep it as you
keep them, and remove it afterwards. Refresh tokens are not in it: logins end.
Brokers that were up to date notice nothing; others take a snapshot.`,
		Example: `  felix controlplane migrate export --postgres-url "$DATABASE_URL" metadata.json
  felix controlplane migrate import --raft-data-dir /var/lib/felix/controlplane metadata.json`,
	}, a.migrateExportCommand(), a.migrateImportCommand(), a.migrateSchemaCommand())
}

// storeSettings are those that say where the metadata is. The others may still
// come from the file and the environment.
func storeSettings() []config.Setting {
	return keep(config.ControlPlaneSettings(), func(s config.Setting) bool {
		return strings.HasPrefix(s.Key, "storage.") || strings.HasPrefix(s.Key, "postgres.") || strings.HasPrefix(s.Key, "raft.")
	})
}

// maxDump bounds what an import reads.
const maxDump = 1 << 30

func (a *App) migrateExportCommand() *cobra.Command {
	var settingsFile string
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write all metadata to a file",
		Long: `Write all metadata of the backend that the settings name to FILE, readable by
its owner alone. Stop the instances first: what is written while it runs may be
missing. The numbers of what was written are printed, to compare.`,
		Example:           `  felix controlplane migrate export --postgres-url "$DATABASE_URL" metadata.json`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := a.controlPlaneConfig(cmd, settingsFile)
			if err != nil {
				return err
			}
			d, err := exportDump(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			data, err := json.Marshal(d)
			if err != nil {
				return err
			}
			if err := ownfile.Replace(a.abs(args[0]), append(data, '\n')); err != nil {
				return err
			}
			return a.tellDump(d)
		},
	}
	addControlPlaneSettings(cmd, &settingsFile, storeSettings())
	return cmd
}

func exportDump(ctx context.Context, cfg *config.ControlPlane) (*model.Dump, error) {
	s, err := controlplane.OpenStore(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	d, err := s.Export(ctx)
	return d, errors.Join(err, s.Close())
}

func (a *App) migrateImportCommand() *cobra.Command {
	var settingsFile string
	var overwrite bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Read all metadata from a file",
		Long: `Read FILE into the backend that the settings name. One that ever held anything
is left alone unless --overwrite says otherwise. Import into a stopped group of
one, or into one member of a running group that was just formed.`,
		Example:           `  felix controlplane migrate import --raft-data-dir /var/lib/felix/controlplane metadata.json`,
		Args:              positional(1, 1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := a.controlPlaneConfig(cmd, settingsFile)
			if err != nil {
				return err
			}
			d, err := readDump(a.abs(args[0]))
			if err != nil {
				return err
			}
			s, err := controlplane.OpenStore(cmd.Context(), cfg, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			if err := errors.Join(s.Import(cmd.Context(), d, overwrite), s.Close()); err != nil {
				return &Error{Exit: ExitRefused, Err: err}
			}
			return a.tellDump(d)
		},
	}
	addControlPlaneSettings(cmd, &settingsFile, storeSettings())
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace what is there")
	return cmd
}

func readDump(name string) (*model.Dump, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usageError("read the export: %w", err)
	}
	defer f.Close()
	decoder := json.NewDecoder(io.LimitReader(f, maxDump))
	decoder.DisallowUnknownFields()
	d := new(model.Dump)
	if err := decoder.Decode(d); err != nil {
		return nil, usageError("%s is not an export of this version: %w", name, err)
	}
	if d.Version != model.DumpVersion {
		return nil, usageError("%s is of version %d, and this program reads version %d", name, d.Version, model.DumpVersion)
	}
	return d, nil
}

// dumpCounts are the numbers of what was moved.
type dumpCounts struct {
	Tenants, Namespaces, Streams, Caches, Nodes, Assignments, Bridges, Issuers, Policies, Groupings, Keys int
}

func (a *App) tellDump(d *model.Dump) error {
	c := dumpCounts{
		Tenants: len(d.Tenants), Namespaces: len(d.Namespaces), Streams: len(d.Streams), Caches: len(d.Caches),
		Nodes: len(d.Nodes), Assignments: len(d.Assignments), Bridges: len(d.Bridges),
	}
	for _, t := range d.Auth {
		c.Issuers += len(t.Issuers)
		c.Policies += len(t.Policies)
		c.Groupings += len(t.Groupings)
		c.Keys += len(t.Keys)
	}
	number := strconv.Itoa
	return a.facts(map[string]int{
		"tenants": c.Tenants, "namespaces": c.Namespaces, "streams": c.Streams, "caches": c.Caches, "nodes": c.Nodes, "assignments": c.Assignments,
		"bridges": c.Bridges, "issuers": c.Issuers, "policies": c.Policies, "groupings": c.Groupings, "signing_keys": c.Keys,
	}, [][2]string{
		{"tenants", number(c.Tenants)}, {"namespaces", number(c.Namespaces)}, {"streams", number(c.Streams)}, {"caches", number(c.Caches)},
		{"nodes", number(c.Nodes)}, {"assignments", number(c.Assignments)}, {"bridges", number(c.Bridges)}, {"issuers", number(c.Issuers)},
		{"policies", number(c.Policies)}, {"groupings", number(c.Groupings)}, {"signing keys", number(c.Keys)},
	})
}

func (a *App) migrateSchemaCommand() *cobra.Command {
	var settingsFile string
	cmd := &cobra.Command{
		Use:               "schema",
		Short:             "Bring the schema of a database up to date",
		Long:              "Bring the schema of the database of --postgres-url up to date, and say from\nwhich version to which. Instances that migrate at the same time wait for each\nother.",
		Example:           `  felix controlplane migrate schema --postgres-url "$DATABASE_URL"`,
		Args:              positional(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := a.controlPlaneConfig(cmd, settingsFile)
			if err != nil {
				return err
			}
			if cfg.Backend != config.BackendPostgres {
				return usageError("no database").hinting("give --postgres-url")
			}
			from, to, err := postgres.Migrate(cmd.Context(), cfg.Postgres.URL)
			if err != nil {
				return err
			}
			if from == to {
				return a.done(map[string]int64{"from": from, "to": to}, "the schema is up to date, at version %d", to)
			}
			return a.done(map[string]int64{"from": from, "to": to}, "the schema went from version %d to %d", from, to)
		},
	}
	addControlPlaneSettings(cmd, &settingsFile, storeSettings())
	return cmd
}
