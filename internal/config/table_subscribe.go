package config

import "time"

func (s *Subscribe) settings() []Setting {
	return []Setting{
		{Key: "event_batch_max_events", Env: "FELIX_EVENT_BATCH_MAX_EVENTS", Default: "64", value: countValue{&s.BatchMaxEvents, 1, 65535},
			Help: "Most records in one event frame."},
		{Key: "event_batch_max_bytes", Env: "FELIX_EVENT_BATCH_MAX_BYTES", Default: "65536", value: sizeValue{&s.BatchMaxBytes, 1, gib},
			Help: "Most payload bytes in one event frame; a record larger than that goes alone."},
		{Key: "event_batch_max_delay_us", Env: "FELIX_EVENT_BATCH_MAX_DELAY_US", Default: "250", value: durationValue{p: &s.BatchMaxDelay, unit: time.Microsecond, min: time.Microsecond, max: time.Second, off: true},
			Help: "Under load, how long a frame waits for more records. A lone record never waits."},
		{Key: "fanout_batch_size", Env: "FELIX_FANOUT_BATCH", Default: "64", value: countValue{&s.FanoutBatch, 1, 65535},
			Help: "Further cap on the records of a frame; 1 sends every record in a frame of its own, at once."},
		{Key: "subscriber_queue_capacity", Env: "FELIX_SUBSCRIBER_QUEUE_CAPACITY", Aliases: []string{"FELIX_SUB_QUEUE_CAPACITY"}, Default: "512",
			value: countValue{&s.QueueCapacity, 1, 1 << 20},
			Help:  "Batches that may wait for one subscriber."},
		{Key: "subscriber_queue_capacity_max", Env: "FELIX_SUBSCRIBER_QUEUE_CAPACITY_MAX", Default: "4096", value: countValue{&s.QueueCapacityMax, 1, 1 << 20},
			Help: "The most of them a client may ask for."},
		{Key: "subscriber_queue_max_bytes", Env: "FELIX_SUB_QUEUE_MAX_BYTES", Default: "268435456", value: sizeValue{&s.QueueMaxBytes, 64 * kib, maxBudget},
			Help: "Payload bytes that may wait for one subscriber."},
		{Key: "subscriber_queue_policy", Env: "FELIX_SUB_QUEUE_POLICY", Default: "drop_new", value: oneOf[QueuePolicy]{&s.QueuePolicy, []QueuePolicy{DropNew, DropOld, Block}},
			Help: "What a full subscriber queue does. drop_new drops the arriving batch for that subscriber; drop_old acts the same and is counted apart; block makes the publishers of the shard wait."},
		{Key: "subscriber_max_bytes_per_write", Env: "FELIX_SUB_MAX_BYTES_PER_WRITE", Default: "65536", value: sizeValue{&s.MaxBytesPerWrite, kib, 16 * mib},
			Help: "Bytes of frames gathered into one write to a subscriber's stream."},
		{Key: "max_subscriptions_per_conn", Env: "FELIX_MAX_SUBSCRIPTIONS_PER_CONN", Default: "4096", value: countValue{&s.MaxPerIdentity, 1, 1 << 20},
			Help: "Subscriptions and cache watches of one identity on one connection."},
		{Key: "max_subscriptions_per_conn_total", Env: "FELIX_MAX_SUBSCRIPTIONS_PER_CONN_TOTAL", Derived: "4 times max_subscriptions_per_conn",
			value:  countValue{&s.MaxPerConnectionTotal, 1, 1 << 22},
			derive: func(c *Config, _ int) { c.Subscribe.MaxPerConnectionTotal = 4 * c.Subscribe.MaxPerIdentity },
			Help:   "The same for one connection with all its identities."},
	}
}
