package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
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
	if cfg.Backend == config.BackendRaft {
		// Opening would make an empty group where there is none.
		if entries, err := os.ReadDir(cfg.Raft.DataDir); err != nil || len(entries) == 0 {
			return nil, &Error{Exit: ExitNotFound, Err: fmt.Errorf("there is no metadata in %s", cfg.Raft.DataDir)}
		}
	}
	s, err := openMetadata(ctx, cfg)
	if err != nil {
		return nil, err
	}
	d, err := s.Export(ctx)
	return d, errors.Join(err, s.Close())
}

// openMetadata opens the store that the settings name.
func openMetadata(ctx context.Context, cfg *config.ControlPlane) (store.Store, error) {
	if cfg.Backend == config.BackendMemory {
		return nil, usageError("no backend").hinting("give --raft-data-dir or --postgres-url")
	}
	s, err := controlplane.OpenStore(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, explainStore(err)
	}
	return s, nil
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
			s, err := openMetadata(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			err = errors.Join(s.Import(cmd.Context(), d, overwrite), s.Close())
			if isType[*store.ConflictError](err) {
				return (&Error{Exit: ExitRefused, Err: err}).hinting("--overwrite replaces what is there")
			}
			if err != nil {
				return err
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
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, usageError("%s goes on behind the export, or is larger than %s", name, exactSize(maxDump))
	}
	if d.Version != model.DumpVersion {
		return nil, usageError("%s is of version %d, and this program reads version %d", name, d.Version, model.DumpVersion)
	}
	return d, nil
}

// tellDump prints the numbers of what was moved.
func (a *App) tellDump(d *model.Dump) error {
	var issuers, policies, groupings, keys int
	for _, t := range d.Auth {
		issuers += len(t.Issuers)
		policies += len(t.Policies)
		groupings += len(t.Groupings)
		keys += len(t.Keys)
	}
	object := make(map[string]int)
	var pairs [][2]string
	for _, of := range []struct {
		name string
		n    int
	}{
		{"tenants", len(d.Tenants)}, {"namespaces", len(d.Namespaces)}, {"streams", len(d.Streams)}, {"caches", len(d.Caches)},
		{"nodes", len(d.Nodes)}, {"assignments", len(d.Assignments)}, {"bridges", len(d.Bridges)}, {"issuers", issuers},
		{"policies", policies}, {"groupings", groupings}, {"signing_keys", keys},
	} {
		object[of.name] = of.n
		pairs = append(pairs, [2]string{strings.ReplaceAll(of.name, "_", " "), strconv.Itoa(of.n)})
	}
	return a.facts(object, pairs)
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
