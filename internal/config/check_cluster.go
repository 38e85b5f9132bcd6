package config

import (
	"errors"
	"fmt"
	"strings"
)

// checkCluster refuses what could not join or would not be noticed (control
// plane 6.6).
func (l *loader) checkCluster() {
	c := &l.cfg.Cluster
	if c.URL == "" {
		l.checkAlone(c)
		return
	}
	if l.cfg.Catalog.File != "" {
		l.fault(fmt.Errorf("controlplane_url is set (%s) and so is catalog (%s): tenants, streams and caches come from one of them; unset the other",
			l.origin("controlplane_url"), l.origin("catalog")))
	}
	if c.Token == "" && c.TokenFile == "" {
		l.fault(fmt.Errorf("controlplane_url is set (%s) without a credential: set node_token_file or node_token to a token of audience felix-controlplane", l.origin("controlplane_url")))
	}
	if c.Token != "" && c.TokenFile != "" {
		l.fault(fmt.Errorf("node_token (%s) and node_token_file (%s) are both set: set one", l.origin("node_token"), l.origin("node_token_file")))
	}
	if c.CAFile != "" {
		for url := range strings.SplitSeq(c.URL, ",") {
			if url = strings.TrimSpace(url); url != "" && !strings.HasPrefix(url, "https://") {
				l.fault(fmt.Errorf("controlplane_ca is set (%s), but controlplane_url (%s) has a URL that is not https: nothing would be checked", l.origin("controlplane_ca"), l.origin("controlplane_url")))
				break
			}
		}
	}
	if c.NodeID == "" {
		return
	}
	if !validNodeID(c.NodeID) {
		l.fault(fmt.Errorf("node_id is %q (%s): want 1 to 253 of a-z, 0-9, '-', '.', '_'", c.NodeID, l.origin("node_id")))
	}
	if c.AdvertiseAddr == "" {
		l.fault(fmt.Errorf("node_id is set (%s) without node_advertise_addr: other brokers could not reach this one", l.origin("node_id")))
	}
}

// checkAlone judges a broker without a control plane.
func (l *loader) checkAlone(c *Cluster) {
	if c.NodeID != "" {
		l.fault(errors.New("node_id is set (" + l.origin("node_id") + ") without controlplane_url: a member of a cluster needs its control plane"))
	}
	if c.RefreshTokenFile != "" || c.Token != "" || c.TokenFile != "" {
		l.warn("the node credential has no effect without controlplane_url")
	}
}

func validNodeID(id string) bool {
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_' {
			return false
		}
	}
	return len(id) >= 1 && len(id) <= 253
}
