package config

import (
	"math"
	"time"
)

func (c *Cluster) settings() []Setting {
	return []Setting{
		{Key: "controlplane_url", Env: "FELIX_CONTROLPLANE_URL", value: textValue{&c.URL, "a URL as in https://host:8443, several separated by commas, or nothing"},
			Help: "Control plane that says which tenants, streams and caches there are, and whose keys verify tokens. Several instances are tried in turn. With it there is no catalog file."},
		{Key: "controlplane_ca", Env: "FELIX_CONTROLPLANE_CA", value: textValue{&c.CAFile, "a path, or nothing"},
			Help: "PEM bundle that is trusted for the control plane besides the system's authorities. It needs an https URL."},
		{Key: "controlplane_sync_interval_ms", Env: "FELIX_CONTROLPLANE_SYNC_INTERVAL_MS", Default: "2000", value: durationValue{p: &c.SyncInterval, unit: time.Millisecond, min: 10 * time.Millisecond, max: time.Hour},
			Help: "Time between two looks at the control plane. Most changes arrive at once, by feeds that wait."},
		{Key: "node_id", Env: "FELIX_NODE_ID", value: textValue{&c.NodeID, "1 to 253 of a-z, 0-9, '-', '.', '_', or nothing"},
			Help: "Who this broker is, for ever. With it the broker joins the cluster and serves the shards it is assigned; without it, it stands alone and serves all."},
		{Key: "node_advertise_addr", Env: "FELIX_NODE_ADVERTISE_ADDR", value: addrPortValue{&c.AdvertiseAddr},
			Help: "Address of this broker for other brokers, unlike that of any other. A member needs it."},
		{Key: "node_client_addr", Env: "FELIX_NODE_CLIENT_ADDR", Aliases: []string{"FELIX_CLIENT_ADVERTISE_ADDR"}, value: addrPortValue{&c.ClientAddr},
			Help: "Address of this broker for clients, to which other brokers refer them. Unset, no client is referred here."},
		{Key: "region_id", Env: "FELIX_REGION_ID", Default: "local", value: textValue{&c.Region, "a name"},
			Help: "Region this broker is in; streams may be bound to one."},
		{Key: "node_zone", Env: "FELIX_NODE_ZONE", value: textValue{&c.Zone, "a name, or nothing"},
			Help: "What fails together with this broker, as a rack or zone: copies are spread over zones."},
		{Key: "node_labels", Env: "FELIX_NODE_LABELS", value: labelsValue{&c.Labels},
			Help: "Labels of this broker, by which brokers can be listed."},
		{Key: "node_max_shards", Env: "FELIX_NODE_MAX_SHARDS", Default: "0", value: countValue{&c.MaxShards, 0, math.MaxInt32},
			Help: "Shards this broker is given at most, to lead or to follow; 0 is no bound."},
		{Key: "node_weight", Env: "FELIX_NODE_WEIGHT", Default: "1", value: countValue{&c.Weight, 0, math.MaxInt32},
			Help: "0 keeps placement from giving this broker anything; other values mean nothing yet."},
		{Key: "node_token", Env: "FELIX_NODE_TOKEN", Secret: true, value: textValue{&c.Token, "a token"},
			Help: "Token with which this broker asks the control plane, of audience felix-controlplane. It needs node.view on cluster:*, and of a member node.manage on node: and its id. One that ends needs node_refresh_token_file."},
		{Key: "node_token_file", Env: "FELIX_NODE_TOKEN_FILE", value: textValue{&c.TokenFile, "a path, or nothing"},
			Help: "File with that token, read again when it changes."},
		{Key: "node_refresh_token_file", Env: "FELIX_NODE_REFRESH_TOKEN_FILE", value: textValue{&c.RefreshTokenFile, "a path, or nothing"},
			Help: "File with a refresh token from the same exchange. It renews the token in time, and is written over with the next one each time, so the directory must be writable."},
	}
}
