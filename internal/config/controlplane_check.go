package config

import (
	"fmt"
	"net"
	"net/netip"
)

// minPeerToken is how long the secret between members must be (control plane
// 20).
const minPeerToken = 32

// complete computes what depends on other settings.
func (c *ControlPlane) complete(l *loader) {
	if _, given := l.source["storage.backend"]; !given {
		switch {
		case c.Postgres.URL != "":
			c.Backend = BackendPostgres
		case c.Raft.DataDir != "":
			c.Backend = BackendRaft
		default:
			c.Backend = BackendMemory
		}
	}
	if _, given := l.source["node_liveness.regrant_margin_ms"]; !given {
		c.Liveness.Margin = c.Liveness.Expiry / 4
	}
}

// check refuses combinations that cannot work (control plane 6.3, 12.4, 12.5,
// 17, 19).
func (c *ControlPlane) check(l *loader) {
	c.checkStorage(l)
	c.checkBootstrap(l)
	allOrNone(l, map[string]string{"tls_cert": c.TLSCert, "tls_key": c.TLSKey})
	n := &c.Liveness
	if n.Expiry <= n.Heartbeat {
		l.fault(fmt.Errorf("node_liveness.expiry_timeout_ms is %d (%s), not more than heartbeat_interval_ms, %d (%s): every node would expire; raise the first",
			n.Expiry.Milliseconds(), l.origin("node_liveness.expiry_timeout_ms"), n.Heartbeat.Milliseconds(), l.origin("node_liveness.heartbeat_interval_ms")))
	}
	if n.Margin < n.Expiry/4 {
		l.fault(fmt.Errorf("node_liveness.regrant_margin_ms is %d (%s), less than a quarter of expiry_timeout_ms: two leaders could serve one shard; raise it to %d",
			n.Margin.Milliseconds(), l.origin("node_liveness.regrant_margin_ms"), (n.Expiry / 4).Milliseconds()))
	}
	if c.ChangesKept < c.ChangesPage {
		l.fault(fmt.Errorf("change_retention_max_rows is %d (%s), less than changes_limit, %d (%s): raise the first or lower the second",
			c.ChangesKept, l.origin("change_retention_max_rows"), c.ChangesPage, l.origin("changes_limit")))
	}
}

func (c *ControlPlane) checkStorage(l *loader) {
	r := &c.Raft
	switch c.Backend {
	case BackendPostgres:
		if c.Postgres.URL == "" {
			l.fault(fmt.Errorf("storage.backend is postgres (%s) without postgres.url: set it", l.origin("storage.backend")))
		}
		return
	case BackendMemory:
		return
	}
	if r.DataDir == "" {
		l.fault(fmt.Errorf("storage.backend is raft (%s) without raft.data_dir: set it", l.origin("storage.backend")))
	}
	allOrNone(l, map[string]string{"raft.tls_cert": r.TLSCert, "raft.tls_key": r.TLSKey, "raft.tls_ca": r.TLSCA})
	if r.Peers == "" {
		return // a group of one
	}
	for _, need := range []struct{ key, value string }{
		{"raft.node_id", r.NodeID}, {"raft.bind_addr", r.Bind}, {"raft.cluster_id", r.ClusterID},
	} {
		if need.value == "" {
			l.fault(fmt.Errorf("raft.peers is set (%s) without %s: set both", l.origin("raft.peers"), need.key))
		}
	}
	switch {
	case r.PeerToken == "" && !r.Insecure:
		l.fault(fmt.Errorf("raft.peers is set (%s) without raft.peer_token: give all members the same secret of %d characters or more", l.origin("raft.peers"), minPeerToken))
	case r.PeerToken != "" && len(r.PeerToken) < minPeerToken:
		l.fault(fmt.Errorf("raft.peer_token (%s) is shorter than %d characters", l.origin("raft.peer_token"), minPeerToken))
	}
}

func (c *ControlPlane) checkBootstrap(l *loader) {
	b := &c.Bootstrap
	allOrNone(l, map[string]string{"bootstrap.tls_cert": b.TLSCert, "bootstrap.tls_key": b.TLSKey, "bootstrap.tls_client_ca": b.TLSClientCA})
	if b.PreviousToken != "" && b.Token == "" {
		l.fault(fmt.Errorf("bootstrap.previous_token is set (%s) without bootstrap.token: set the new one too", l.origin("bootstrap.previous_token")))
	}
	if b.Enabled && b.Token == "" {
		l.fault(fmt.Errorf("bootstrap.enabled is true (%s) without bootstrap.token: set a secret", l.origin("bootstrap.enabled")))
	}
	if b.DevTokens && !onLoopback(b.Bind) {
		l.fault(fmt.Errorf("bootstrap.dev_tokens is true (%s) and bootstrap.bind_addr is %s (%s): tokens without an identity are given out on a loopback address only",
			l.origin("bootstrap.dev_tokens"), b.Bind, l.origin("bootstrap.bind_addr")))
	}
}

// allOrNone refuses settings of which only some are set.
func allOrNone(l *loader, values map[string]string) {
	var given, missing string
	for _, key := range sortedKeys(values) {
		if values[key] == "" {
			missing = key
		} else if given == "" {
			given = key
		}
	}
	if given != "" && missing != "" {
		l.fault(fmt.Errorf("%s is set (%s) without %s: set all of them or none", given, l.origin(given), missing))
	}
}

// onLoopback says whether an address can be reached from this machine alone.
func onLoopback(bind string) bool {
	host, _, err := net.SplitHostPort(bind)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// ofControlPlane says whether a variable is one that the control plane would
// know if it were spelled right.
func ofControlPlane(name string) bool {
	for _, prefix := range foreignPrefixes {
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}
