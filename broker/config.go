package broker

import (
	"time"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
)

// Defaults of a [Config] that no other package has.
const (
	DefaultQueueWait         = 2 * time.Second
	DefaultInflightBytes     = 64 << 20
	DefaultConnInflightBytes = 16 << 20
	DefaultQuotaBurst        = time.Second
)

// Config sizes a broker. A number of zero or less means its default.
type Config struct {
	// Schedule sizes the publish queue and its executors. OnPanic also hears
	// of a panic of a [Completion].
	Schedule schedule.Config
	// QueueWait is how long a publish under [Wait] waits for bytes and slot
	// together.
	QueueWait time.Duration

	// ConnInflightBytes bounds the payload bytes on their way for one
	// identity on one connection, ConnTotalInflightBytes for one connection
	// (default: the lesser of four times that and InflightBytes),
	// InflightBytes for the broker.
	ConnInflightBytes, ConnTotalInflightBytes, InflightBytes int64

	// Quota is what a tenant may publish per second where Quotas does not
	// name it; its zero value is no limit. QuotaBurst is how much of it may
	// come at once, as time.
	Quota      admission.Quota
	Quotas     map[string]admission.Quota
	QuotaBurst time.Duration

	// Storage keeps durable streams and caches; nil where there is none. It
	// outlives the broker: close it after.
	Storage *storage.Store
	// Random gives the bits of producer ids; nil derives them from the clock
	// at the start, which is enough where no two brokers start at once.
	Random func() uint64

	// Streams configures rings, subscriptions, event frames and the retention
	// of streams that have none of their own. Its Logs are Storage's.
	Streams stream.Config
	// Caches bounds the caches. Its Storage is Storage.
	Caches cache.Config
	// Groups bounds the consumer groups. Its Storage is Storage.
	Groups queue.Config
}

func (c Config) withDefaults() Config {
	if c.QueueWait <= 0 {
		c.QueueWait = DefaultQueueWait
	}
	if c.ConnInflightBytes <= 0 {
		c.ConnInflightBytes = DefaultConnInflightBytes
	}
	if c.InflightBytes <= 0 {
		c.InflightBytes = DefaultInflightBytes
	}
	if c.ConnTotalInflightBytes <= 0 {
		c.ConnTotalInflightBytes = min(4*c.ConnInflightBytes, c.InflightBytes)
	}
	if c.QuotaBurst <= 0 {
		c.QuotaBurst = DefaultQuotaBurst
	}
	return c
}

func (c *Config) quotaOf(tenant string) admission.Quota {
	if q, ok := c.Quotas[tenant]; ok {
		return q
	}
	return c.Quota
}
