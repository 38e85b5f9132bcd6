package session

import (
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/internal/telemetry"
)

// A form is how an answer looks.
type form uint8

const (
	formAck       form = iota // binary ack (wire 4.4)
	formPublish               // publish_ok, publish_error or publish_refused
	formPublishIf             // publish_ok, publish_refused or error
	formCommit                // commit_ok, publish_refused or error
	formPut                   // cache_ok, or ok without an id
	formValue                 // cache_value
	formCondition             // cache_condition_result
	formCounter               // counter_value
	formSettled               // cache_ok, of a group
	formExtended              // group_extended
	formAcked                 // group_acked
	formRefusal               // error
)

// overdue is the refusal of a request that was not settled in time.
func (f form) overdue() error {
	if f < formPut {
		return errUnacknowledged
	}
	return errUnconfirmed
}

// publishes says that the request was a publish, for the metrics.
func (f form) publishes() bool { return f < formPut }

// settles says that the request was about a record of a group.
func (f form) settles() bool { return f == formSettled || f == formExtended || f == formAcked }

// An owed is one answer owed. It is the completion that the core settles,
// whatever was asked; it is reused once answered.
type owed struct {
	ledger    *ledger
	form      form
	hasID     bool // of cache requests: publishes always have one
	requestID uint64
	started   time.Time // when its frame had been read
	since     time.Time // when it was handed over; zero before

	err       error
	offset    uint64 // of a publish
	hasOffset bool
	numbered  bool // a batch of an idempotent producer

	names    cacheNames // of formValue
	item     cache.Item
	hit      bool // the item is there
	versions bool // tell the item's version
	result   cache.Result
	sum      int64
	hasSum   bool
	granted  time.Duration   // of formExtended
	failed   []queue.Failure // of formAcked

	key      uint64 // hash of the key it writes
	hasKey   bool
	held     int  // bytes held until the answer
	bytes    int  // payload bytes of a publish, for the metrics
	settled  bool // the core is done with it
	answered bool // its answer left, perhaps as unknown; free once settled
}

// cacheNames is what a cache_value repeats of its request.
type cacheNames struct {
	tenant, namespace, cache string
	key                      []byte
}

// reset makes p ready for another request. The ledger stays: a late Flush may
// be reading it.
func (p *owed) reset() {
	key := p.names.key[:0]
	if cap(key) > keepKey {
		key = nil
	}
	p.form, p.hasID, p.requestID = 0, false, 0
	p.started, p.since = time.Time{}, time.Time{}
	p.err, p.offset, p.hasOffset, p.numbered = nil, 0, false, false
	p.names = cacheNames{key: key}
	p.item, p.hit, p.versions = cache.Item{}, false, false
	p.result, p.sum, p.hasSum, p.granted, p.failed = cache.Result{}, 0, false, 0, nil
	p.key, p.hasKey, p.held, p.bytes = 0, false, 0, 0
	p.settled, p.answered = false, false
}

// keepKey is the longest key buffer kept with an owed.
const keepKey = 1 << 10

var (
	_ broker.Completion = (*owed)(nil)
	_ cache.WriteDone   = (*owed)(nil)
	_ cache.CounterDone = (*owed)(nil)
	_ queue.Done        = (*owed)(nil)
	_ queue.BatchDone   = (*owed)(nil)
)

// Complete settles a publish: it implements [broker.Completion].
func (p *owed) Complete(res broker.Result) {
	p.ledger.answers.count(p, res.Err)
	p.ledger.out.mu.Lock()
	p.err, p.offset, p.hasOffset = res.Err, res.Offset, res.HasOffset
	p.ledger.settleLocked(p)
	p.ledger.out.mu.Unlock()
}

// Written settles a cache write: it implements [cache.WriteDone].
func (p *owed) Written(res cache.Result, err error) {
	p.ledger.answers.count(p, err)
	p.ledger.out.mu.Lock()
	p.result, p.err = res, err
	if res.HasRemoved && p.form == formValue {
		p.item, p.hit = res.Removed, true
		p.holdLocked(len(p.item.Value))
	}
	p.ledger.settleLocked(p)
	p.ledger.out.mu.Unlock()
}

// Added settles an addition to a counter: it implements [cache.CounterDone].
func (p *owed) Added(sum int64, err error) {
	p.ledger.answers.count(p, err)
	p.ledger.out.mu.Lock()
	p.sum, p.hasSum, p.err = sum, true, err
	p.ledger.settleLocked(p)
	p.ledger.out.mu.Unlock()
}

// fail settles a request that the core did not take.
func (p *owed) fail(err error) { p.Complete(broker.Result{Err: err}) }

// accept settles a publish that is answered on acceptance; its caller keeps
// the figures.
func (p *owed) accept(err error) {
	p.ledger.out.mu.Lock()
	p.err = err
	p.ledger.settleLocked(p)
	p.ledger.out.mu.Unlock()
}

func (p *owed) holdLocked(n int) {
	p.held += n
	p.ledger.held += n
}

// Flusher is who sends the answers of a round of commits, the same for all
// requests of a stream: it is told once behind all that were settled away from
// the stream's reader ([broker.Flusher]).
func (p *owed) Flusher() broker.Flusher { return p.ledger.out }

// Flush does the same for whoever does not ask ([cache.Flusher]).
func (p *owed) Flush() { p.ledger.out.Flush() }

// count keeps the figures of a settled request.
func (a *answers) count(p *owed, err error) {
	if p.form.publishes() {
		a.countPublish(a.metrics.Publish, p, err)
		return
	}
	errs, latency := a.metrics.Cache.Errors, a.metrics.Cache.Latency
	if p.form.settles() {
		errs, latency = a.metrics.Groups.Errors, a.metrics.Groups.Latency
	}
	if err != nil {
		errs.Inc()
	}
	latency.Observe(a.clock.Now().Sub(p.started))
}

func (a *answers) countPublish(m *telemetry.PublishMetrics, p *owed, err error) {
	if err != nil {
		m.Error.Inc()
		return
	}
	m.OK.Inc()
	m.Bytes.Add(float64(p.bytes))
	m.Latency.Observe(a.clock.Now().Sub(p.started))
}
