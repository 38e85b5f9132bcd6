package controlplane

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// BenchmarkStart starts a broker of 10,000 streams: from the control plane, and
// alone from what it knew.
func BenchmarkStart(b *testing.B) {
	const streams = 10_000
	for _, durable := range []bool{false, true} {
		b.Run(fmt.Sprintf("durable=%t", durable), func(b *testing.B) {
			c := newCluster(b, 1)
			for at := 0; at < streams; at += 500 {
				var batch []model.Stream
				for i := range 500 {
					batch = append(batch, model.Stream{
						TenantID: "t1", Namespace: "default", Stream: fmt.Sprintf("s%05d", at+i), Kind: model.KindStream, Shards: 1, ReplicationFactor: 1,
						Consistency: model.Leader, Delivery: model.AtLeastOnce, Durable: durable, UID: fmt.Sprintf("uid-%d", at+i),
					})
				}
				must(b, c.store.CreateResources(b.Context(), defaultNamespace, batch, nil))
			}
			broker := c.broker("", durable)
			var first, applied, ready time.Duration
			for b.Loop() {
				began := time.Now()
				broker.start()
				applied += time.Since(began)
				must(b, broker.node.Core().Ready(b.Context()))
				ready += time.Since(began)
				if first == 0 {
					first = ready
				}
				broker.stop()
			}
			b.ReportMetric(first.Seconds(), "s/first")
			b.ReportMetric(applied.Seconds()/float64(b.N), "s/applied")
			b.ReportMetric(ready.Seconds()/float64(b.N), "s/ready")
		})
	}
}

// BenchmarkChange measures from the answer to a creation until a broker serves
// it.
func BenchmarkChange(b *testing.B) {
	c := newCluster(b, 2)
	broker := c.broker("", false).start()
	of := c.of("t1")
	var all []time.Duration
	n := 0
	for b.Loop() {
		name := fmt.Sprintf("s%d", n)
		n++
		began := time.Now()
		_, err := of.CreateStream(b.Context(), defaultNamespace, streamSpec(name))
		must(b, err)
		for broker.has(name) != nil {
			time.Sleep(100 * time.Microsecond)
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms/median")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms/p99")
}
