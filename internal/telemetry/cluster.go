package telemetry

// A ClusterSnapshot is what a broker knows of its control plane, all zero for one
// that follows none.
type ClusterSnapshot struct {
	Live      bool // the control plane has this node as live
	LeaseHeld bool // what heartbeats renew has not ended
	Synced    bool // every feed has been read since the start
	Missing   int  // streams and caches that are served and not listed any more
	Undone    int  // orders that could not be carried out and are tried again

	Heartbeats, MembershipFailures uint64
	Registrations                  uint64
	SyncPasses, SyncFailures       uint64
	KeyFetches, KeyFailures        uint64
}

var clusterGauges = []coreNumber{
	{"felix_broker_membership_live", "1 while the control plane has this node as live, 0 otherwise and on a broker that stands alone.", func(s *Snapshot) float64 { return oneIf(s.Cluster.Live) }},
	{"felix_broker_lease_held", "1 while the lease that heartbeats renew holds.", func(s *Snapshot) float64 { return oneIf(s.Cluster.LeaseHeld) }},
	{"felix_broker_controlplane_synced", "1 once every feed of the control plane was read since the start.", func(s *Snapshot) float64 { return oneIf(s.Cluster.Synced) }},
	{"felix_broker_controlplane_missing", "Streams and caches that are served although the control plane does not list them any more.", func(s *Snapshot) float64 { return float64(s.Cluster.Missing) }},
	{"felix_broker_controlplane_undone", "Things the control plane says that could not be done and are tried again.", func(s *Snapshot) float64 { return float64(s.Cluster.Undone) }},
}

var clusterCounters = []coreNumber{
	{"felix_broker_heartbeats_total", "Heartbeats that the control plane accepted.", func(s *Snapshot) float64 { return float64(s.Cluster.Heartbeats) }},
	{"felix_broker_registrations_total", "Registrations that the control plane accepted.", func(s *Snapshot) float64 { return float64(s.Cluster.Registrations) }},
	{"felix_broker_membership_failures_total", "Heartbeats and registrations that failed.", func(s *Snapshot) float64 { return float64(s.Cluster.MembershipFailures) }},
	{"felix_broker_controlplane_passes_total", "Passes over the control plane's feeds.", func(s *Snapshot) float64 { return float64(s.Cluster.SyncPasses) }},
	{"felix_broker_controlplane_failures_total", "Reads of a feed that failed.", func(s *Snapshot) float64 { return float64(s.Cluster.SyncFailures) }},
	{"felix_broker_key_fetches_total", "Fetches of tenants' signing keys.", func(s *Snapshot) float64 { return float64(s.Cluster.KeyFetches) }},
	{"felix_broker_key_fetch_failures_total", "Fetches of signing keys that failed.", func(s *Snapshot) float64 { return float64(s.Cluster.KeyFailures) }},
}
