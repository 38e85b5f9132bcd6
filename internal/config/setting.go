package config

import "strings"

// A Setting is one row of the table: a value of a [Config] and its names.
type Setting struct {
	Key     string   // YAML key
	Env     string   // environment variable
	Aliases []string // further variables, looked at in turn when Env is not set
	Default string   // as one would write it; empty when Derived
	Derived string   // how the default is computed, when it is
	Help    string   // what it does, in a sentence or two
	Secret  bool     // never printed, in an error neither

	value  value
	derive func(c *Config, cpus int)
}

// Flag is the setting's name on the command line, without dashes.
func (s *Setting) Flag() string { return strings.NewReplacer("_", "-", ".", "-").Replace(s.Key) }

// IsBool says whether the setting is a switch, so that its flag may be given
// without a value.
func (s *Setting) IsBool() bool {
	_, ok := s.value.(boolValue)
	return ok
}

// Allowed is what may be written, as a phrase: "a whole number from 1 to 64".
func (s *Setting) Allowed() string { return s.value.allowed() }

// Text is the setting's value as one would write it.
func (s *Setting) Text() string { return s.value.text() }

// A group is the settings of one heading.
type group struct {
	title    string
	settings []Setting
}

// groups is the table, bound to the fields of c.
func (c *Config) groups() []group {
	return []group{
		{"Listeners and transport", c.Listen.settings()},
		{"TLS", c.TLS.settings()},
		{"Sessions and authentication", c.Sessions.settings()},
		{"Catalog", c.Catalog.settings()},
		{"Control plane", c.Cluster.settings()},
		{"Publishing", c.Publish.settings()},
		{"Tenant quotas", c.Tenants.settings()},
		{"Subscriptions", c.Subscribe.settings()},
		{"Caches", c.Cache.settings()},
		{"Consumer groups", c.Groups.settings()},
		{"Storage", c.Storage.settings()},
		{"Shutdown", c.Shutdown.settings()},
		{"Logs and process", c.Process.settings()},
	}
}

// Settings is the table bound to the fields of c, in the order of the
// reference page.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, g := range c.groups() {
		all = append(all, g.settings...)
	}
	return all
}

// Settings is the table by itself: names, defaults and help, for a command
// line that registers a flag for each.
func Settings() []Setting { return new(Config).Settings() }
