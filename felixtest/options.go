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

// WithLogger shows the node's log.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.logger = l }
}
