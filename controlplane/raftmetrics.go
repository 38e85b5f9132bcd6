package controlplane

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixlog/felix/controlplane/store/raft"
)

// A raftStore is a store that tells how its group fares.
type raftStore interface{ Stats() raft.Stats }

// raftCollector reads the numbers of a Raft member at each scrape (control
// plane 22).
type raftCollector struct {
	store    raftStore
	series   []raftSeries
	rejected *prometheus.Desc
}

// A raftSeries is one number of a member.
type raftSeries struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(raft.Stats) float64
}

func newRaftCollector(s raftStore) *raftCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("felix_meta_raft_"+name, help, labels, nil)
	}
	gauge := func(name, help string, read func(raft.Stats) float64) raftSeries {
		return raftSeries{desc(name, help), prometheus.GaugeValue, read}
	}
	counter := func(name, help string, read func(raft.Stats) float64) raftSeries {
		return raftSeries{desc(name, help), prometheus.CounterValue, read}
	}
	return &raftCollector{
		store:    s,
		rejected: desc("peer_rejected_total", "Connections of peers that were refused.", "reason"),
		series: []raftSeries{
			gauge("term", "Term of the group as this member knows it.", func(s raft.Stats) float64 { return float64(s.Term) }),
			gauge("leader_known", "1 while this member knows a leader.", func(s raft.Stats) float64 { return asNumber(s.LeaderKnown) }),
			gauge("is_leader", "1 while this member leads.", func(s raft.Stats) float64 { return asNumber(s.IsLeader) }),
			gauge("last_log_index", "End of this member's log.", func(s raft.Stats) float64 { return float64(s.LastLogIndex) }),
			gauge("last_applied_index", "What of the log is applied.", func(s raft.Stats) float64 { return float64(s.LastAppliedIndex) }),
			gauge("snapshot_index", "What of the log the last snapshot holds.", func(s raft.Stats) float64 { return float64(s.SnapshotIndex) }),
			counter("forwarded_proposals_total", "Writes sent on to a leader.", func(s raft.Stats) float64 { return float64(s.ForwardedProposals) }),
			counter("write_timeouts_total", "Writes that ended without an answer.", func(s raft.Stats) float64 { return float64(s.WriteTimeouts) }),
			counter("deduplicated_proposals_total", "Repeated writes that were answered with their first result.", func(s raft.Stats) float64 { return float64(s.DeduplicatedProposals) }),
			counter("unsupported_commands_total", "Commands of a later version at which this member stopped.", func(s raft.Stats) float64 { return float64(s.UnsupportedCommands) }),
		},
	}
}

// Describe lists the series.
func (c *raftCollector) Describe(out chan<- *prometheus.Desc) {
	out <- c.rejected
	for _, s := range c.series {
		out <- s.desc
	}
}

// Collect reads them.
func (c *raftCollector) Collect(out chan<- prometheus.Metric) {
	stats := c.store.Stats()
	for _, s := range c.series {
		out <- prometheus.MustNewConstMetric(s.desc, s.kind, s.read(stats))
	}
	for reason, n := range stats.PeersRejected {
		out <- prometheus.MustNewConstMetric(c.rejected, prometheus.CounterValue, float64(n), reason)
	}
}
