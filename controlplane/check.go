package controlplane

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/felixlog/felix/controlplane/api"
)

// check says which settings do not fit, all at once and by their names.
func (o Options) check() error {
	return errors.Join(
		need(o.Store != nil, "a control plane needs a store"),
		need(o.ValidateName != nil, "a control plane needs a check of names"),
		need(o.Clock != nil && o.Random != nil && o.Logger != nil, "a control plane needs a clock, randomness and a logger"),
		need(strings.TrimSpace(o.RegionID) != "", "FELIX_REGION_ID is blank"),
		need(len(o.OIDCAllowedAlgorithms) > 0, "FELIX_CONTROLPLANE_OIDC_ALLOWED_ALGORITHMS is empty: no upstream token could be accepted"),
		need((o.TLSCert == "") == (o.TLSKey == ""), "FELIX_CONTROLPLANE_TLS_CERT and FELIX_CONTROLPLANE_TLS_KEY go together: set both or neither"),
		o.checkTimes(), o.checkBridges(), o.Bootstrap.check(),
		need(o.ShardMovesMaxConcurrent >= 0 && o.ShardMovesMaxPerNode >= 0, "a limit of shard moves is negative"),
		need(o.TokenRate > 0 && o.TokenBurst > 0, "the rate of token requests is not above 0"),
	)
}

func (o Options) checkTimes() error {
	positive := func(name string, d time.Duration) error {
		return need(d > 0, fmt.Sprintf("%s is not above 0", name))
	}
	notNegative := func(name string, d time.Duration) error {
		return need(d >= 0, fmt.Sprintf("%s is below 0", name))
	}
	return errors.Join(
		positive("FELIX_EXCHANGE_TOKEN_TTL_SECONDS", o.ExchangeTokenTTL),
		positive("FELIX_REFRESH_TOKEN_TTL_SECONDS", o.RefreshTokenTTL),
		positive("FELIX_NODE_HEARTBEAT_INTERVAL_MS", o.NodeHeartbeatInterval),
		need(o.NodeExpiryTimeout > o.NodeHeartbeatInterval,
			"FELIX_NODE_EXPIRY_TIMEOUT_MS is not above FELIX_NODE_HEARTBEAT_INTERVAL_MS: brokers would be taken for dead between two heartbeats"),
		need(o.NodeRegrantMargin >= o.NodeExpiryTimeout/4,
			"FELIX_NODE_REGRANT_MARGIN_MS is below a quarter of FELIX_NODE_EXPIRY_TIMEOUT_MS: clocks that drift could give a shard two leaders"),
		positive("FELIX_NODE_EXPIRY_SWEEP_INTERVAL_MS", o.NodeExpirySweepInterval),
		positive("FELIX_SHARD_RECONCILE_INTERVAL_MS", o.ShardReconcileInterval),
		notNegative("FELIX_SHARD_MOVE_TIMEOUT_MS", o.ShardMoveTimeout),
		notNegative("FELIX_SHARD_RESTORE_AFTER_MS", o.ShardRestoreAfter),
		notNegative("FELIX_PLACEMENT_SETTLE_MS", o.PlacementSettle),
		positive("FELIX_READINESS_TIMEOUT_MS", o.ReadinessTimeout),
		notNegative("FELIX_READINESS_CACHE_TTL_MS", o.ReadinessCacheTTL),
		notNegative("FELIX_SHUTDOWN_PREDRAIN_MS", o.ShutdownPredrain),
		notNegative("FELIX_SHUTDOWN_DRAIN_TIMEOUT_MS", o.ShutdownDrainTimeout),
	)
}

func (o Options) checkBridges() error {
	for _, b := range o.RegionBridges {
		if err := api.CheckBridge(b); err != nil {
			return fmt.Errorf("FELIX_REGION_BRIDGES: %q to %q is no bridge: %w", b.Source, b.Destination, err)
		}
	}
	return nil
}

func (b BootstrapOptions) check() error {
	if !b.Enabled {
		return errors.Join(
			need(b.TokenPrevious == "" || b.Token != "", "FELIX_BOOTSTRAP_TOKEN_PREVIOUS is set without FELIX_BOOTSTRAP_TOKEN"),
			need(!b.DevTokens, "FELIX_BOOTSTRAP_DEV_TOKENS needs FELIX_BOOTSTRAP_ENABLED"),
		)
	}
	set := 0
	for _, file := range []string{b.TLSCert, b.TLSKey, b.TLSClientCA} {
		if file != "" {
			set++
		}
	}
	return errors.Join(
		need(b.Token != "", "FELIX_BOOTSTRAP_ENABLED is set without FELIX_BOOTSTRAP_TOKEN: set the secret, or switch bootstrap off"),
		need(set == 0 || set == 3, "FELIX_BOOTSTRAP_TLS_CERT, FELIX_BOOTSTRAP_TLS_KEY and FELIX_BOOTSTRAP_TLS_CLIENT_CA go together: set all three or none"),
		need(!b.DevTokens || onLoopback(b.BindAddr), "FELIX_BOOTSTRAP_DEV_TOKENS gives tokens without an identity provider: bind FELIX_BOOTSTRAP_BIND_ADDR to a loopback address"),
	)
}

func onLoopback(bind string) bool {
	host, _, err := net.SplitHostPort(bind)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func need(fits bool, otherwise string) error {
	if fits {
		return nil
	}
	return errors.New(otherwise)
}
