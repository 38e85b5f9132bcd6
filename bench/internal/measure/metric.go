package measure

import "time"

// A Metric is one figure of a result.
type Metric int

const (
	// MBPerSec is payload megabytes (10^6) a second.
	MBPerSec Metric = iota
	// RecordsPerSec is completed records a second.
	RecordsPerSec
	// OpsPerSec is answered requests a second.
	OpsPerSec
	// P50Micros and P99Micros are latency quantiles in microseconds.
	P50Micros
	P99Micros
	// FlushesPerThousand is flushes of the server to its device for 1,000
	// records.
	FlushesPerThousand
	// RSSMiB is a resident set in MiB, and is compared with its bound.
	RSSMiB
)

// Of reads the metric from a result.
func (m Metric) Of(r Result) float64 {
	switch m {
	case MBPerSec:
		return perSecond(r.Bytes, r.Elapsed) / 1e6
	case RecordsPerSec, OpsPerSec:
		return perSecond(r.Records, r.Elapsed)
	case P50Micros:
		return micros(r.P50)
	case P99Micros:
		return micros(r.P99)
	case FlushesPerThousand:
		return 1000 * float64(r.Flushes) / float64(max(r.Records, 1))
	default:
		return float64(r.RSS) / (1 << 20)
	}
}

// Unit is the metric's unit as a table shows it.
func (m Metric) Unit() string {
	switch m {
	case MBPerSec:
		return "MB/s"
	case RecordsPerSec:
		return "rec/s"
	case OpsPerSec:
		return "op/s"
	case P50Micros, P99Micros:
		return "us"
	case FlushesPerThousand:
		return "flush/k"
	default:
		return "MiB"
	}
}

// LowerIsBetter says which way the metric improves.
func (m Metric) LowerIsBetter() bool {
	return m == P50Micros || m == P99Micros || m == FlushesPerThousand || m == RSSMiB
}

func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
