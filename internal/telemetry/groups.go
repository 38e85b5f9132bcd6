package telemetry

import "github.com/prometheus/client_golang/prometheus"

// GroupMetrics counts what consumer groups themselves do not know.
type GroupMetrics struct {
	Errors    prometheus.Counter // requests refused or failed
	Delivered prometheus.Counter // records handed to consumers, their answers sent
	Latency   *Latency           // from the whole frame read to the answer ready; polls are left out

	requests map[string]prometheus.Counter
}

// groupRequests are the types of requests, each with a series from the start.
var groupRequests = []string{
	"group_poll", "group_ack", "group_nack", "group_extend", "group_dead_letter", "group_dead_letters", "group_discard", "group_redrive",
	"group_seek", "group_describe", "group_delete",
}

func newGroupMetrics(b *builder) *GroupMetrics {
	m := &GroupMetrics{
		Errors:    b.counter("felix_group_errors_total", "Requests of consumer groups refused or failed."),
		Delivered: b.counter("felix_group_delivered_records_total", "Records handed to consumers, each delivery counting."),
		Latency:   b.latency("felix_group_latency_seconds", "Requests of consumer groups other than polls, which wait for records: from the whole frame read to the answer ready to write."),
		requests:  make(map[string]prometheus.Counter, len(groupRequests)),
	}
	requests := b.counters("felix_group_requests_total", "Requests of consumer groups, by the type of the request.", "request")
	for _, kind := range groupRequests {
		m.requests[kind] = requests.WithLabelValues(kind)
	}
	return m
}

// Request counts a request by its type in the protocol; there are no others.
func (m *GroupMetrics) Request(kind string) {
	if c := m.requests[kind]; c != nil {
		c.Inc()
	}
}

// A GroupSnapshot is what consumer groups count, read once a scrape.
type GroupSnapshot struct {
	Groups       int    // in memory
	Waiting      int    // polls
	Claims       int    // that stand
	PollsCapped  uint64 // at the in-flight limit
	Trimmed      uint64 // records that retention took unfinished
	DeadLettered uint64
	Redelivered  uint64 // hand-outs of a record that had been handed out before
	Lapsed       uint64 // claims that nobody settled in time
}

var groupGauges = []coreNumber{
	{"felix_groups", "Consumer groups in memory, one a shard: those with a consumer, and those lately without.", func(s *Snapshot) float64 { return float64(s.Groups.Groups) }},
	{"felix_group_polls_waiting", "Polls that wait for a record.", func(s *Snapshot) float64 { return float64(s.Groups.Waiting) }},
	{"felix_group_claims", "Records handed out whose claim stands.", func(s *Snapshot) float64 { return float64(s.Groups.Claims) }},
}

var groupCounters = []coreNumber{
	{"felix_group_polls_capped_total", "Polls held back because group_max_in_flight records were unfinished.", func(s *Snapshot) float64 { return float64(s.Groups.PollsCapped) }},
	{"felix_group_trimmed_total", "Records that retention took before a group had finished them.", func(s *Snapshot) float64 { return float64(s.Groups.Trimmed) }},
	{"felix_group_dead_lettered_total", "Records that became dead letters.", func(s *Snapshot) float64 { return float64(s.Groups.DeadLettered) }},
	{"felix_group_redelivered_records_total", "Records handed out that had been handed out before.", func(s *Snapshot) float64 { return float64(s.Groups.Redelivered) }},
	{"felix_group_claims_lapsed_total", "Claims that nobody settled or prolonged in time.", func(s *Snapshot) float64 { return float64(s.Groups.Lapsed) }},
}
