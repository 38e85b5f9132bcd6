package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/felixlog/felix/internal/config/suggest"
)

// DefaultFile is read when no file is named; it alone may be missing.
const DefaultFile = "/usr/local/felix/config.yml"

// fileEnv names the file in the environment.
const fileEnv = "FELIX_BROKER_CONFIG"

// FileSystem reads configuration files.
type FileSystem interface {
	ReadFile(name string) ([]byte, error)
}

// OSFiles is the operating system's file system.
type OSFiles struct{}

// ReadFile implements [FileSystem].
func (OSFiles) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// Sources is everything a configuration may come from.
type Sources struct {
	// Flags holds the flags given on the command line, by [Setting.Flag].
	Flags map[string]string
	// Environ is the environment in the form of os.Environ. A variable that is
	// set to nothing counts as not set.
	Environ []string
	// File is the path given by a flag. Empty: the one in FELIX_BROKER_CONFIG,
	// else [DefaultFile]; of a control plane, the one in
	// FELIX_CONTROLPLANE_CONFIG.
	File string
	// FileSystem is read for the file; nil is [OSFiles].
	FileSystem FileSystem
	// CPUs is what defaults are derived from; 0 is the machine's.
	CPUs int
}

// A ValueError is a value that is not allowed.
type ValueError struct {
	Key     string // the setting
	Source  string // where the value was given
	Text    string // the value; empty for a secret
	Allowed string // what may be written
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("%s is %q (%s): want %s", e.Key, e.Text, e.Source, e.Allowed)
}

// An UnknownError is a name that no setting has.
type UnknownError struct {
	Name   string
	Source string
	Like   string // the setting probably meant, if any
}

func (e *UnknownError) Error() string {
	text := fmt.Sprintf("%s: unknown setting %s", e.Source, e.Name)
	if e.Like != "" {
		text += " (did you mean " + e.Like + "?)"
	}
	return text
}

// Load resolves every setting from the sources and checks the whole. The
// warnings are lines for the log: settings accepted without effect, values
// adjusted. The error joins every fault found, not only the first: a
// [*ValueError], an [*UnknownError], a file that cannot be read or parsed, or
// a combination that cannot work.
func Load(s Sources) (cfg *Config, warnings []string, err error) {
	if s.CPUs == 0 {
		s.CPUs = runtime.NumCPU()
	}
	l := newLoader(new(Config))
	l.gather(s)
	if len(l.faults) == 0 {
		l.derive(s.CPUs)
		l.check()
	}
	if len(l.faults) > 0 {
		return nil, l.warnings, errors.Join(l.faults...)
	}
	return l.cfg, l.warnings, nil
}

// A loader fills a table of settings, source by source, later ones winning.
type loader struct {
	dialect
	cfg      *Config // of a broker; nil for other servers
	settings []Setting
	byKey    map[string]*Setting
	source   map[string]string // key -> where its value was given; absent for defaults
	warnings []string
	faults   []error
}

func newLoader(cfg *Config) *loader {
	l := tableLoader(cfg.Settings(), brokerDialect())
	l.cfg = cfg
	return l
}

func tableLoader(settings []Setting, d dialect) *loader {
	l := &loader{dialect: d, settings: settings, byKey: make(map[string]*Setting), source: make(map[string]string)}
	for i := range l.settings {
		l.byKey[l.settings[i].Key] = &l.settings[i]
	}
	return l
}

// gather takes what the sources say, in the order in which they win.
func (l *loader) gather(s Sources) {
	if s.FileSystem == nil {
		s.FileSystem = OSFiles{}
	}
	l.defaults()
	environ := splitEnviron(s.Environ)
	l.file(s, environ)
	l.environ(environ)
	l.flags(s.Flags)
}

func (l *loader) fault(err error) { l.faults = append(l.faults, err) }

func (l *loader) warn(format string, args ...any) {
	l.warnings = append(l.warnings, fmt.Sprintf(format, args...))
}

// defaults sets every setting that has a fixed default. A default that its
// own setting refuses is a fault of the table, caught by its tests.
func (l *loader) defaults() {
	for _, s := range l.settings {
		if s.Default == "" {
			continue
		}
		if err := s.value.set(s.Default); err != nil {
			l.fault(&ValueError{Key: s.Key, Source: "default", Text: s.Default, Allowed: s.Allowed()})
		}
	}
}

func (l *loader) set(s *Setting, text, source string) {
	l.source[s.Key] = source
	if err := s.value.set(strings.TrimSpace(text)); err != nil {
		if s.Secret {
			text = ""
		}
		l.fault(&ValueError{Key: s.Key, Source: source, Text: text, Allowed: s.Allowed()})
	}
}

func (l *loader) flags(flags map[string]string) {
	byFlag := make(map[string]*Setting, len(l.settings))
	for i := range l.settings {
		byFlag[l.settings[i].Flag()] = &l.settings[i]
	}
	for _, name := range sortedKeys(flags) {
		s := byFlag[name]
		if s == nil {
			l.fault(&UnknownError{Name: "--" + name, Source: "command line", Like: l.likeFlag(name)})
			continue
		}
		l.set(s, flags[name], "flag --"+name)
	}
}

func (l *loader) likeFlag(name string) string {
	known := make([]string, len(l.settings))
	for i := range l.settings {
		known[i] = l.settings[i].Flag()
	}
	if like := suggest.Closest(name, known); like != "" {
		return "--" + like
	}
	return ""
}

// derive computes the defaults that depend on other settings, in table order
// after everything given is known.
func (l *loader) derive(cpus int) {
	for _, s := range l.settings {
		if _, given := l.source[s.Key]; s.derive != nil && !given {
			s.derive(l.cfg, cpus)
		}
	}
}

// origin says where the value of a setting comes from.
func (l *loader) origin(key string) string {
	if source, given := l.source[key]; given {
		return source
	}
	return "default"
}

// file reads the YAML file, if there is one.
func (l *loader) file(s Sources, environ map[string]string) {
	path, named := s.File, s.File != ""
	if !named {
		path, named = environ[l.fileEnv], environ[l.fileEnv] != ""
	}
	if !named {
		path = l.defaultFile
	}
	if path == "" {
		return
	}
	data, err := s.FileSystem.ReadFile(path)
	if !named && errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		l.fault(fmt.Errorf("read configuration file: %w", err))
		return
	}
	l.yaml(path, data)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
