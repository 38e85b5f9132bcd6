package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ConnStats is what a carrier knows about one connection. The counters never
// fall.
type ConnStats struct {
	SmoothedRTT     time.Duration // 0 before the first sample
	MTU             int           // bytes of the largest packet the path carries
	PacketsSent     uint64
	PacketsReceived uint64
	PacketsLost     uint64
	BytesSent       uint64
	BytesReceived   uint64
	GSO             bool // sends are coalesced by the kernel
	GRO             bool // receives are coalesced by the kernel
}

// QUIC aggregates the statistics of connections: nothing is recorded while
// packets flow, and no series names a connection. A scrape reads each open
// connection once; what closed ones had counted is kept in the totals.
type QUIC struct {
	rtt *Latency

	sent, received, lost     *prometheus.Desc
	bytesSent, bytesReceived *prometheus.Desc
	mtu, gso, gro            *prometheus.Desc

	mu     sync.Mutex
	next   uint64
	open   map[uint64]func() ConnStats
	closed ConnStats // counters of connections that are gone
}

func newQUIC(b *builder) *QUIC {
	q := &QUIC{
		rtt:           b.latency("felix_quic_rtt_seconds", "Smoothed round-trip times: each open connection counts once at every scrape."),
		sent:          b.desc("felix_quic_packets_sent_total", "counter", "QUIC packets sent on client connections."),
		received:      b.desc("felix_quic_packets_received_total", "counter", "QUIC packets received on client connections."),
		lost:          b.desc("felix_quic_packets_lost_total", "counter", "QUIC packets declared lost on client connections."),
		bytesSent:     b.desc("felix_quic_sent_bytes_total", "counter", "Bytes of QUIC packets sent."),
		bytesReceived: b.desc("felix_quic_received_bytes_total", "counter", "Bytes of QUIC packets received."),
		mtu:           b.desc("felix_quic_path_mtu_bytes", "gauge", "Packet size that the paths of open connections carry: min and max; 0 without connections.", "bound"),
		gso:           b.desc("felix_quic_gso_connections", "gauge", "Open connections whose sends the kernel coalesces (GSO). Without it throughput halves."),
		gro:           b.desc("felix_quic_gro_connections", "gauge", "Open connections whose receives the kernel coalesces (GRO)."),
		open:          make(map[uint64]func() ConnStats),
	}
	b.registry.MustRegister(q)
	return q
}

// Track includes a connection until done is called, once, when it has ended.
// read must be safe at any time until done returns.
func (q *QUIC) Track(read func() ConnStats) (done func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	id := q.next
	q.next++
	q.open[id] = read
	return func() { q.untrack(id) }
}

// untrack moves a connection's counters to those of the closed ones in the
// step that removes it, so that no scrape sees them twice or not at all.
func (q *QUIC) untrack(id uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	read, tracked := q.open[id]
	if !tracked {
		return
	}
	delete(q.open, id)
	q.closed.add(read())
}

func (s *ConnStats) add(other ConnStats) {
	s.PacketsSent += other.PacketsSent
	s.PacketsReceived += other.PacketsReceived
	s.PacketsLost += other.PacketsLost
	s.BytesSent += other.BytesSent
	s.BytesReceived += other.BytesReceived
}

// Describe implements [prometheus.Collector].
func (q *QUIC) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{q.sent, q.received, q.lost, q.bytesSent, q.bytesReceived, q.mtu, q.gso, q.gro} {
		out <- desc
	}
}

// Collect implements [prometheus.Collector].
func (q *QUIC) Collect(out chan<- prometheus.Metric) {
	total, gso, gro, least, most := q.read()
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, value, labels...)
	}
	send(q.sent, prometheus.CounterValue, float64(total.PacketsSent))
	send(q.received, prometheus.CounterValue, float64(total.PacketsReceived))
	send(q.lost, prometheus.CounterValue, float64(total.PacketsLost))
	send(q.bytesSent, prometheus.CounterValue, float64(total.BytesSent))
	send(q.bytesReceived, prometheus.CounterValue, float64(total.BytesReceived))
	send(q.mtu, prometheus.GaugeValue, float64(least), "min")
	send(q.mtu, prometheus.GaugeValue, float64(most), "max")
	send(q.gso, prometheus.GaugeValue, float64(gso))
	send(q.gro, prometheus.GaugeValue, float64(gro))
}

func (q *QUIC) read() (total ConnStats, gso, gro, leastMTU, mostMTU int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	total = q.closed
	for _, read := range q.open {
		s := read()
		total.add(s)
		if s.SmoothedRTT > 0 {
			q.rtt.Observe(s.SmoothedRTT)
		}
		if s.GSO {
			gso++
		}
		if s.GRO {
			gro++
		}
		if leastMTU == 0 || s.MTU < leastMTU {
			leastMTU = s.MTU
		}
		mostMTU = max(mostMTU, s.MTU)
	}
	return total, gso, gro, leastMTU, mostMTU
}
