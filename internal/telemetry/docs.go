package telemetry

import (
	"fmt"
	"io"
	"strings"
)

const docsIntro = `# Broker metrics

<!-- Written from the metrics of internal/telemetry; do not edit. To rewrite it: go test ./internal/telemetry -run TestReferencePage -update -->

` + "`GET /metrics`" + ` on the HTTP listener answers in the Prometheus text format. Beside these there are the usual ` + "`go_*` and `process_*`" + ` metrics.
Latency histograms are always on and record every event; their buckets end at 16 us and then at every power of two and the middle
to the next, up to 17 s. Labels take few values: no metric names a shard, a connection or a subscriber. The first
` + "`tenant_metrics_max`" + ` tenants have series of their own, the others share the tenant ` + "`_overflow`" + `.

| Metric | Type | Labels | Meaning |
| --- | --- | --- | --- |
`

// WriteDocs writes the reference page of the metrics in Markdown.
func (m *Metrics) WriteDocs(w io.Writer) error {
	var b strings.Builder
	b.WriteString(docsIntro)
	for _, d := range m.defs {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, strings.Join(d.Labels, ", "), d.Help)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
