package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// environmentVariables lists every variable WithEnvironment knows.
var environmentVariables = []struct {
	name  string
	apply func(c *config, value string) error
}{
	{"FELIX_AUTH_TENANT", text(func(c *config, v string) { c.tenant = v })},
	{"FELIX_NAMESPACE", text(func(c *config, v string) { c.namespace = v })},
	{"FELIX_AUTH_TOKEN", text(func(c *config, v string) { _ = WithToken(v).applyClient(c) })},
	{"FELIX_AUTH_TOKEN_FILE", text(func(c *config, v string) { _ = WithTokenFile(v).applyClient(c) })},
	{"FELIX_CA_FILE", text(func(c *config, v string) { c.caFile = v })},
	{"FELIX_CLIENT_CERT_FILE", text(func(c *config, v string) { c.certFile = v })},
	{"FELIX_CLIENT_KEY_FILE", text(func(c *config, v string) { c.keyFile = v })},
	{"FELIX_SERVER_NAME", text(func(c *config, v string) { c.serverName = v })},

	{"FELIX_PUB_CONN_POOL", number(func(c *config, n int) { c.pools.PublishConns = n })},
	{"FELIX_PUB_STREAMS_PER_CONN", number(func(c *config, n int) { c.pools.PublishStreams = n })},
	{"FELIX_PUB_SHARD_STREAMS", number(func(c *config, n int) { c.pools.PublishStreams = n })},
	{"FELIX_PUBLISH_INFLIGHT_BYTES", number(func(c *config, n int) { c.inflightBytes = n })},
	{"FELIX_CACHE_CONN_POOL", number(func(c *config, n int) { c.pools.CacheConns = n })},
	{"FELIX_CACHE_STREAMS_PER_CONN", number(func(c *config, n int) { c.pools.CacheStreams = n })},
	{"FELIX_EVENT_CONN_POOL", number(func(c *config, n int) { c.pools.EventConns = n })},
	{"FELIX_EVENT_ROUTER_MAX_PENDING", number(func(c *config, n int) { c.pools.PendingEventStreams = n })},
	{"FELIX_EVENT_CONN_RECV_WINDOW", number(func(c *config, n int) { c.windows.EventConn = n })},
	{"FELIX_EVENT_STREAM_RECV_WINDOW", number(func(c *config, n int) { c.windows.EventStream = n })},
	{"FELIX_CACHE_CONN_RECV_WINDOW", number(func(c *config, n int) { c.windows.CacheConn = n })},
	{"FELIX_CACHE_STREAM_RECV_WINDOW", number(func(c *config, n int) { c.windows.CacheStream = n })},
	{"FELIX_MAX_FRAME_BYTES", number(func(c *config, n int) { c.maxFrame = n })},
	{"FELIX_KEEPALIVE_MS", number(func(c *config, n int) { c.keepAlive = time.Duration(n) * time.Millisecond })},
	{"FELIX_MAX_IDLE_TIMEOUT_MS", number(func(c *config, n int) { c.idleTimeout = time.Duration(n) * time.Millisecond })},
	{"FELIX_CLIENT_SUB_QUEUE_CAPACITY", number(func(c *config, n int) { c.subBuffer = n })},
	{"FELIX_CLIENT_SUB_QUEUE_POLICY", bufferPolicy},
}

func text(f func(*config, string)) func(*config, string) error {
	return func(c *config, v string) error { f(c, v); return nil }
}

func number(f func(*config, int)) func(*config, string) error {
	return func(c *config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return errors.New("not a whole number")
		}
		f(c, n)
		return nil
	}
}

func bufferPolicy(c *config, v string) error {
	switch v {
	case "block":
		c.subPolicy = Block
	case "drop_new":
		c.subPolicy = DropNew
	case "drop_old":
		c.subPolicy = DropOld
	default:
		return errors.New(`not one of "block", "drop_new", "drop_old"`)
	}
	return nil
}

// applyEnvironment sets what environ holds; empty values count as unset.
func (c *config) applyEnvironment(environ []string) error {
	values := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok {
			values[name] = value
		}
	}
	var errs []error
	for _, v := range environmentVariables {
		value := values[v.name]
		if value == "" {
			continue
		}
		if err := v.apply(c, value); err != nil {
			errs = append(errs, fmt.Errorf("%s=%q: %w", v.name, value, err))
		}
	}
	return errors.Join(errs...)
}

// WithTokenFile reads the token from a file, anew whenever a stream is
// opened, so that whatever renews the file renews the client. See
// [WithTokenProvider].
func WithTokenFile(path string) Option {
	return WithTokenProvider(func(context.Context) (string, error) {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(string(b)), nil
	})
}
