// Package contexts keeps the named connections of the command line: which
// brokers to reach, as whom, trusting which authority.
//
// They live in one YAML file, felix/config.yaml under the user's
// configuration directory, readable by its owner alone because it may hold
// tokens:
//
//	current: dev
//	contexts:
//	  dev:
//	    brokers: [127.0.0.1:5000]
//	    tenant: dev
//	    token_file: /home/u/.local/state/felix/dev/token
//	    ca_file: /home/u/.local/state/felix/dev/ca.pem
//
// A key that is not known is an error, never ignored.
package contexts

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// A Connection is what a command needs to reach and trust a cluster. An empty
// field says nothing about it. File names are absolute once saved.
type Connection struct {
	// Brokers are the seed addresses, host:port.
	Brokers []string `yaml:"brokers,omitempty,flow" json:"brokers,omitempty"`
	// ControlPlaneURL is the base of the metadata service's REST API.
	ControlPlaneURL string `yaml:"controlplane_url,omitempty" json:"controlplane_url,omitempty"`
	Tenant          string `yaml:"tenant,omitempty" json:"tenant,omitempty"`
	Namespace       string `yaml:"namespace,omitempty" json:"namespace,omitempty"`
	// Token or TokenFile is the credential shown to brokers.
	Token     string `yaml:"token,omitempty" json:"token,omitempty"`
	TokenFile string `yaml:"token_file,omitempty" json:"token_file,omitempty"`
	// ControlPlaneToken or ControlPlaneTokenFile is the credential shown to
	// the metadata service.
	ControlPlaneToken     string `yaml:"controlplane_token,omitempty" json:"controlplane_token,omitempty"`
	ControlPlaneTokenFile string `yaml:"controlplane_token_file,omitempty" json:"controlplane_token_file,omitempty"`
	// CAFile holds the authorities trusted for brokers, in PEM; the system's
	// are trusted when it is empty.
	CAFile             string `yaml:"ca_file,omitempty" json:"ca_file,omitempty"`
	ControlPlaneCAFile string `yaml:"controlplane_ca_file,omitempty" json:"controlplane_ca_file,omitempty"`
	// ClientCertFile and ClientKeyFile are shown to brokers that ask for a
	// client certificate.
	ClientCertFile string `yaml:"client_cert_file,omitempty" json:"client_cert_file,omitempty"`
	ClientKeyFile  string `yaml:"client_key_file,omitempty" json:"client_key_file,omitempty"`
	// ServerName is the name the broker's certificate must carry.
	ServerName string `yaml:"server_name,omitempty" json:"server_name,omitempty"`
	// ALPN offers the application protocol felix/1.
	ALPN bool `yaml:"alpn,omitempty" json:"alpn,omitempty"`
}

// files are the fields of c that name files.
func (c *Connection) files() []*string {
	return []*string{
		&c.TokenFile, &c.ControlPlaneTokenFile, &c.CAFile,
		&c.ControlPlaneCAFile, &c.ClientCertFile, &c.ClientKeyFile,
	}
}

// resolve makes the file names of c absolute, taking relative ones from dir.
func (c *Connection) resolve(dir string) {
	for _, name := range c.files() {
		if *name != "" && !filepath.IsAbs(*name) {
			*name = filepath.Join(dir, *name)
		}
	}
}

// HoldsSecret says whether a token itself, not the name of its file, is in c.
func (c *Connection) HoldsSecret() bool { return c.Token != "" || c.ControlPlaneToken != "" }

// A File is the content of the context file.
type File struct {
	// Current names the context used when no other is asked for.
	Current  string                `yaml:"current,omitempty"`
	Contexts map[string]Connection `yaml:"contexts,omitempty"`
}

// Errors a caller may tell apart; each is wrapped with the name it is about.
var (
	ErrNotFound = errors.New("no such context")
	ErrExists   = errors.New("context exists already")
)

// Names lists the contexts in alphabetical order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// Get returns the context called name, or [ErrNotFound].
func (f *File) Get(name string) (Connection, error) {
	c, ok := f.Contexts[name]
	if !ok {
		return Connection{}, fmt.Errorf("context %q: %w", name, ErrNotFound)
	}
	return c, nil
}

// Add saves c under name with its file names made absolute from dir. The
// first context of a file becomes the current one. An existing name is
// [ErrExists] unless replace is set.
func (f *File) Add(name string, c Connection, dir string, replace bool) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if _, ok := f.Contexts[name]; ok && !replace {
		return fmt.Errorf("context %q: %w", name, ErrExists)
	}
	if f.Contexts == nil {
		f.Contexts = make(map[string]Connection)
	}
	c.resolve(dir)
	f.Contexts[name] = c
	if f.Current == "" {
		f.Current = name
	}
	return nil
}

// Use makes name the current context, or is [ErrNotFound].
func (f *File) Use(name string) error {
	if _, err := f.Get(name); err != nil {
		return err
	}
	f.Current = name
	return nil
}

// Remove forgets name, or is [ErrNotFound]. Removing the current context
// leaves none current.
func (f *File) Remove(name string) error {
	if _, err := f.Get(name); err != nil {
		return err
	}
	delete(f.Contexts, name)
	if f.Current == name {
		f.Current = ""
	}
	return nil
}

// maxName is the longest name of a context, in bytes.
const maxName = 64

// CheckName says whether name can be a context's: 1 to 64 letters, digits,
// dots, dashes and underscores, and not . or .., since directories are named
// after contexts.
func CheckName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("context name must have 1 to %d characters, not %d", maxName, len(name))
	}
	if name == "." || name == ".." {
		return fmt.Errorf("context name %q: choose another, that is a directory's", name)
	}
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
		default:
			return fmt.Errorf("context name %q: only letters, digits, dot, dash and underscore may be in it", name)
		}
	}
	return nil
}
