package felixtest

import (
	"log/slog"
	"maps"

	"github.com/felixlog/felix/internal/node"
)

// An Option changes how a test's node is started.
type Option func(*options)

type options struct {
	settings map[string]string
	hosts    []string
	clock    node.Clock
	logger   *slog.Logger
	durable  bool
	data     string // empty: a directory of the test
	files    node.FileSystem
}

// WithSetting sets a broker setting by its flag name, as on the command line
// of felix broker: WithSetting("publish-window", "64").
func WithSetting(flag, value string) Option {
	return func(o *options) {
		o.settings = maps.Clone(o.settings)
		if o.settings == nil {
			o.settings = make(map[string]string)
		}
		o.settings[flag] = value
	}
}

// WithHosts adds names to the node's certificate, beside localhost and the
// loopback addresses.
func WithHosts(hosts ...string) Option {
	return func(o *options) { o.hosts = append(o.hosts, hosts...) }
}

// WithClock gives the node another clock for expiry and quotas.
func WithClock(c node.Clock) Option {
	return func(o *options) { o.clock = c }
}

// Durable gives the node storage in a directory of the test: streams and
// caches, also those that appear on first use, are on the log and there again
// after a restart.
func Durable() Option {
	return func(o *options) { o.durable = true }
}

// WithStorage is Durable with the data in a directory of the caller's.
func WithStorage(dir string) Option {
	return func(o *options) { o.durable, o.data = true, dir }
}

// WithFileSystem is Durable on another file system than the machine's, such as
// one that fails on demand.
func WithFileSystem(files node.FileSystem) Option {
	return func(o *options) { o.durable, o.files = true, files }
}

// WithLogger shows the node's log.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.logger = l }
}
