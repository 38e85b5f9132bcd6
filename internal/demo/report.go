package demo

import (
	"bytes"
	"slices"
	"time"
)

// A timing is when things happened. It is guarded by the demo's lock.
type timing struct {
	sent        []time.Time
	lastAck     time.Time
	lastArrival time.Time
	delivered   []time.Duration // from sending to arrival
	puts        []time.Duration
	claimed     []time.Duration // from sending to a worker
	// waited is how long the publisher was kept waiting for the kill.
	waited time.Duration
}

func newTiming(n int) *timing { return &timing{sent: make([]time.Time, n)} }

// A Report says what each reading saw and how fast.
type Report struct {
	Published int  `json:"published"`
	Received  int  `json:"received"`
	InOrder   bool `json:"in_order"`
	// CacheNetworks is how many networks the cache holds, CacheExpected how
	// many there are, and CacheCorrect whether each entry is the latest.
	CacheNetworks int  `json:"cache_networks"`
	CacheExpected int  `json:"cache_networks_expected"`
	CacheWrites   int  `json:"cache_writes"`
	CacheCorrect  bool `json:"cache_correct"`
	// Killed says that the broker was killed as kill -9 does, KilledAfter how
	// many records it had acknowledged by then, and RecoveryMS how long it took
	// until it acknowledged the next one.
	Killed      bool    `json:"killed"`
	KilledAfter int     `json:"killed_after"`
	RecoveryMS  float64 `json:"recovery_ms"`
	// Replayed is how many records the log held when it was read again from its
	// beginning, and ReplayCorrect whether each was the one published.
	Replayed      int  `json:"replayed"`
	ReplayCorrect bool `json:"replay_correct"`
	QueueReport
	// Paced says that the publisher was held to a speed, so that the rates
	// are the show's and not the broker's.
	Paced             bool    `json:"paced"`
	PublishRate       float64 `json:"published_per_second"`
	ReceiveRate       float64 `json:"received_per_second"`
	DeliveryMedianUS  float64 `json:"delivery_median_us"`
	CachePutMedianUS  float64 `json:"cache_put_median_us"`
	CacheGetMedianUS  float64 `json:"cache_get_median_us"`
	CacheGetPerSecond float64 `json:"cache_gets_per_second"`
	Seconds           float64 `json:"seconds"`
	OK                bool    `json:"ok"`
	total             int
}

// report compares what was seen with what was published.
func (d *Demo) report(held map[string][]byte, again [][]byte, gets []time.Duration, timing *timing, took time.Duration) *Report {
	d.mu.Lock()
	defer d.mu.Unlock()
	expected := d.expected()
	busyUntil := func(t time.Time) time.Duration { return t.Sub(timing.sent[0]) - timing.waited }
	r := &Report{
		Published: d.published, Received: d.received, InOrder: d.inOrder && d.received == len(d.records),
		CacheNetworks: len(held), CacheExpected: len(expected), CacheWrites: d.cached, CacheCorrect: len(held) == len(expected),
		Killed: d.kill.Done(), KilledAfter: d.kill.After, RecoveryMS: float64(d.kill.Recovery().Microseconds()) / 1e3,
		Replayed: len(again), ReplayCorrect: slices.EqualFunc(again, d.records, bytes.Equal),
		QueueReport:      d.queue.report(len(d.records), timing),
		Paced:            d.speed > 0,
		PublishRate:      perSecond(d.published, busyUntil(timing.lastAck)),
		ReceiveRate:      perSecond(d.received, busyUntil(timing.lastArrival)),
		DeliveryMedianUS: medianUS(timing.delivered),
		CachePutMedianUS: medianUS(timing.puts),
		CacheGetMedianUS: medianUS(gets),
		Seconds:          took.Seconds(),
		total:            len(d.records),
	}
	for network, record := range expected {
		r.CacheCorrect = r.CacheCorrect && bytes.Equal(held[network], record)
	}
	var reading time.Duration
	for _, get := range gets {
		reading += get
	}
	r.CacheGetPerSecond = perSecond(len(gets), reading)
	r.OK = r.StreamOK() && r.CacheOK() && r.LogOK() && r.QueueOK() && r.WorkersOK() && r.PoisonOK()
	return r
}

// LogOK says that the broker was killed and that its log holds every record.
func (r *Report) LogOK() bool { return r.Killed && r.Replayed == r.total && r.ReplayCorrect }

// StreamOK says that every record was published and seen once, in order.
func (r *Report) StreamOK() bool {
	return r.Published == r.total && r.Received == r.total && r.InOrder
}

// CacheOK says that the cache holds exactly the latest of every network.
func (r *Report) CacheOK() bool { return r.CacheCorrect && r.CacheWrites == r.total }

// Total is the number of records there were to publish.
func (r *Report) Total() int { return r.total }

func perSecond(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// medianUS is the median in microseconds, 0 of nothing.
func medianUS(times []time.Duration) float64 {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[len(sorted)/2].Nanoseconds()) / 1e3
}
