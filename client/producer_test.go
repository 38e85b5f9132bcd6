package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

func newProducer(t *testing.T, c *Client, opts ...ProducerOption) *Producer {
	t.Helper()
	p, err := c.NewProducer(testContext(t), "s", opts...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func plain(int, *wire.Publish) (wire.Message, bool, bool) { return nil, false, false }

func TestProducerNumbersBatches(t *testing.T) {
	model := newModel()
	c := dial(t, []string{producing(t, model, plain).addr()})
	p := newProducer(t, c)
	ctx := testContext(t)
	if p.ID() != 77 {
		t.Errorf("id %d", p.ID())
	}
	for i := range uint64(5) {
		ack, err := p.Publish(ctx, fmt.Append(nil, i))
		if err != nil || !ack.HasOffset || ack.Offset != i {
			t.Fatalf("batch %d: %+v, %v", i, ack, err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(ctx, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	if got := fmt.Sprint(model.batches()); got != "[0:0 1:1 2:2 3:3 4:4]" {
		t.Errorf("stored %v", got)
	}
}

// TestProducerStoresOnce: whatever happens to connections and answers in the
// middle of a pipeline, the broker ends up with each batch once, in order.
func TestProducerStoresOnce(t *testing.T) {
	const batches = 200
	cuts := map[int]bool{0: true, 16: true, 17: true, 70: true, 150: true}
	cases := map[string]func(n int, p *wire.Publish) (wire.Message, bool, bool){
		"cut before the write": func(n int, _ *wire.Publish) (wire.Message, bool, bool) { return nil, cuts[n], false },
		"cut after the write":  func(n int, _ *wire.Publish) (wire.Message, bool, bool) { return nil, cuts[n], true },
		"overloaded": func(n int, _ *wire.Publish) (wire.Message, bool, bool) {
			if n == 0 || n < 150 && n%13 == 5 {
				return publishError(wire.CodeOverloaded, wire.RetryAfter), false, false
			}
			return nil, false, false
		},
		"unacknowledged": func(n int, _ *wire.Publish) (wire.Message, bool, bool) {
			if n < 150 && n%19 == 5 {
				return publishError(wire.CodeUnacknowledged, wire.OutcomeUnknown), false, false
			}
			return nil, false, false
		},
	}
	for name, script := range cases {
		t.Run(name, func(t *testing.T) {
			model := newModel()
			c := dial(t, []string{producing(t, model, script).addr()})
			p := newProducer(t, c)
			ctx := testContext(t)
			var pending []*Pending
			for i := range batches {
				f, err := p.Send(ctx, fmt.Append(nil, i))
				if err != nil {
					t.Fatal(err)
				}
				pending = append(pending, f)
			}
			for i, f := range pending {
				if ack, err := f.Wait(ctx); err != nil || ack.Offset != uint64(i) {
					t.Fatalf("batch %d: %+v, %v", i, ack, err)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			got := model.batches()
			if len(got) != batches {
				t.Fatalf("%d batches stored, want %d", len(got), batches)
			}
			for i, b := range got {
				if want := fmt.Sprintf("%d:%d", i, i); b != want {
					t.Fatalf("place %d holds %s, want %s", i, b, want)
				}
			}
			if model.seen == batches {
				t.Error("nothing was sent twice: the script did not bite")
			}
		})
	}
}

// TestProducerKeepsWithinTheBrokersMemory: no batch is sent that would make
// the broker forget one not answered yet.
func TestProducerKeepsWithinTheBrokersMemory(t *testing.T) {
	model := newModel()
	hold := make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(hold) }) }
	t.Cleanup(release)
	p := producing(t, model, func(n int, _ *wire.Publish) (wire.Message, bool, bool) {
		if n == 0 {
			<-hold
		}
		return nil, false, false
	})
	c := dial(t, []string{p.addr()})
	producer := newProducer(t, c)
	ctx := testContext(t)
	for i := range wire.MaxProducerBatches {
		if _, err := producer.Send(ctx, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := producer.Send(short, []byte("one too many")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("batch %d was sent: %v", wire.MaxProducerBatches, err)
	}
	release()
	// Giving up cost no number: the next batch follows without a hole.
	if _, err := producer.Publish(ctx, []byte("next")); err != nil {
		t.Error(err)
	}
	if err := producer.Close(); err != nil {
		t.Error(err)
	}
	if got := model.batches(); len(got) != wire.MaxProducerBatches+1 || got[len(got)-1] != "64:next" {
		t.Errorf("stored %v", got)
	}
}

// TestFlushReturnsAfterEverybodyWasTold: what a callback notes is there when
// Flush is over.
func TestFlushReturnsAfterEverybodyWasTold(t *testing.T) {
	p := producing(t, newModel(), plain)
	producer := newProducer(t, dial(t, []string{p.addr()}))
	ctx := testContext(t)
	called, release := make(chan struct{}), make(chan struct{})
	err := producer.SendFunc(ctx, func(Ack, error) {
		close(called)
		<-release // a callback must not block; here it shows who waits for it
	}, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	<-called
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := producer.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush in the middle of a callback: %v", err)
	}
	close(release)
	if err := producer.Flush(ctx); err != nil {
		t.Error(err)
	}
}

// TestACancelledCallDoesNotStopTheProducer: its batch is delivered all the
// same.
func TestACancelledCallDoesNotStopTheProducer(t *testing.T) {
	model := newModel()
	held, hold := make(chan struct{}), make(chan struct{})
	p := producing(t, model, func(n int, _ *wire.Publish) (wire.Message, bool, bool) {
		if n == 0 {
			close(held)
			<-hold
		}
		return nil, false, false
	})
	c := dial(t, []string{p.addr()})
	producer := newProducer(t, c)
	ctx, cancel := context.WithCancel(testContext(t))
	go func() {
		<-held
		cancel()
	}()
	if _, err := producer.Publish(ctx, []byte("a")); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("cancelled: %v", err)
	}
	close(hold)
	if ack, err := producer.Publish(testContext(t), []byte("b")); err != nil || ack.Offset != 1 {
		t.Errorf("after a cancelled call: %+v, %v", ack, err)
	}
	if err := producer.Close(); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(model.batches()); got != "[0:a 1:b]" {
		t.Errorf("stored %v", got)
	}
}

func TestAFailedBatchStopsTheProducer(t *testing.T) {
	cases := map[string]struct {
		answer  wire.Message
		reason  RefusalReason
		code    Code
		unknown bool
	}{
		"reused":  {answer: &wire.PublishRefused{Reason: wire.RefusedReason{Kind: wire.RefusedSequenceReused}}, reason: SequenceReused},
		"expired": {answer: &wire.PublishRefused{Reason: wire.RefusedReason{Kind: wire.RefusedSequenceExpired}}, reason: SequenceExpired},
		"unknown": {answer: &wire.PublishRefused{Reason: wire.RefusedReason{Kind: wire.RefusedUnknownProducer}}, reason: UnknownProducer},
		"gap":     {answer: &wire.PublishRefused{Reason: wire.RefusedReason{Kind: wire.RefusedSequenceGap, Expected: 1}}, reason: SequenceGap},
		"fatal":   {answer: publishError(wire.CodeForbidden, wire.Fatal), code: CodeForbidden},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			model := newModel()
			c := dial(t, []string{producing(t, model, func(n int, b *wire.Publish) (wire.Message, bool, bool) {
				if b.Sequence == 2 {
					return tc.answer, false, false
				}
				return nil, false, false
			}).addr()})
			p := newProducer(t, c)
			ctx := testContext(t)
			for range 2 {
				if _, err := p.Publish(ctx, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			_, err := p.Publish(ctx, []byte("x"))
			var e *Error
			if !errors.As(err, &e) || e.Code != tc.code || IsOutcomeUnknown(err) || IsRetryable(err) {
				t.Errorf("refused: %v", err)
			}
			var refusal *RefusedError
			if errors.As(err, &refusal) != (tc.reason != "") || tc.reason != "" && (refusal.Reason != tc.reason || refusal.Sequence != 2) {
				t.Errorf("refusal %+v, want %s of batch 2", refusal, tc.reason)
			}
			_, err = p.Publish(ctx, []byte("x"))
			var stopped *ProducerError
			if !errors.As(err, &stopped) || p.Err() == nil {
				t.Errorf("after that: %v", err)
			}
			if err := p.Flush(ctx); err == nil {
				t.Error("flush does not report the failure")
			}
			if n := len(model.batches()); n != 2 {
				t.Errorf("%d batches stored, want 2", n)
			}
		})
	}
}

// TestNothingIsStoredBehindAFailedBatch: the ones in flight behind it fail
// too.
func TestNothingIsStoredBehindAFailedBatch(t *testing.T) {
	model := newModel()
	c := dial(t, []string{producing(t, model, func(n int, b *wire.Publish) (wire.Message, bool, bool) {
		if b.Sequence == 3 {
			return publishError(wire.CodeShardUnavailable, wire.Retry), false, false
		}
		return nil, false, false
	}).addr()})
	p := newProducer(t, c, WithDeliveryTimeout(50*time.Millisecond))
	ctx := testContext(t)
	var pending []*Pending
	for i := range 20 {
		f, err := p.Send(ctx, fmt.Append(nil, i))
		if err != nil {
			if !errors.As(err, new(*ProducerError)) {
				t.Fatal(err)
			}
			break
		}
		pending = append(pending, f)
	}
	for i, f := range pending {
		_, err := f.Wait(ctx)
		if (i < 3) != (err == nil) {
			t.Errorf("batch %d: %v", i, err)
		}
		if i == 3 && !errors.Is(err, ErrShardUnavailable) {
			t.Errorf("batch %d: %v", i, err)
		}
	}
	if got := fmt.Sprint(model.batches()); got != "[0:0 1:1 2:2]" {
		t.Errorf("stored %v", got)
	}
	if err := p.Close(); !errors.Is(err, ErrShardUnavailable) {
		t.Errorf("close: %v", err)
	}
}

// TestALaterRefusalDoesNotUndoAnUnknownOutcome: a batch that may have been
// stored at the first attempt is unknown whatever the second was told.
func TestALaterRefusalDoesNotUndoAnUnknownOutcome(t *testing.T) {
	c := dial(t, []string{producing(t, newModel(), func(n int, b *wire.Publish) (wire.Message, bool, bool) {
		if n == 0 {
			return nil, true, true
		}
		return publishError(wire.CodeForbidden, wire.Fatal), false, false
	}).addr()})
	_, err := newProducer(t, c).Publish(testContext(t), []byte("x"))
	if !errors.Is(err, ErrForbidden) || !IsOutcomeUnknown(err) {
		t.Errorf("error %v, want forbidden with an unknown outcome", err)
	}
}

func TestProducerFollowsTheLeader(t *testing.T) {
	model := newModel()
	leader := producing(t, model, plain)
	entry := producing(t, newModel(), func(int, *wire.Publish) (wire.Message, bool, bool) {
		return &wire.PublishRefused{Reason: wire.RefusedReason{Kind: wire.RefusedNotLeader, NodeID: "b2", Addr: wire.Some(leader.addr())}}, false, false
	})
	c := dial(t, []string{entry.addr()})
	p := newProducer(t, c)
	ctx := testContext(t)
	for i := range 50 {
		if _, err := p.Send(ctx, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(model.batches()); n != 50 {
		t.Errorf("%d batches at the leader", n)
	}
}

func TestProducerNumbersEachShard(t *testing.T) {
	model := newModel()
	shardOf := func(p *wire.Publish) uint64 { return uint64(wire.ShardOf(p.Key, p.Keyed, 4, wire.Modulo)) }
	var mu sync.Mutex
	next := map[uint64]uint64{}
	c := dial(t, []string{producing(t, model, func(_ int, p *wire.Publish) (wire.Message, bool, bool) {
		mu.Lock()
		defer mu.Unlock()
		shard := shardOf(p)
		if p.Sequence != next[shard] {
			t.Errorf("shard %d got batch %d, expected %d", shard, p.Sequence, next[shard])
		}
		next[shard]++
		return &wire.PublishOK{}, false, false
	}).addr()})
	p := newProducer(t, c)
	ctx := testContext(t)
	for i := range 100 {
		ack, err := p.PublishKeyed(ctx, fmt.Append(nil, i%10), []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		if want := wire.ShardOf(fmt.Append(nil, i%10), true, 4, wire.Modulo); ack.Shard != want {
			t.Errorf("shard %d, want %d", ack.Shard, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(next) < 3 {
		t.Errorf("%d shards used", len(next))
	}
}

func TestProducerFallsBackToJSON(t *testing.T) {
	seen := make(chan *wire.PublishIdempotent, 1)
	p := newPeer(t, nil)
	p.setServe(func(s *peerStream) {
		for {
			switch m := s.message().(type) {
			case *wire.ProducerInit:
				s.send(&wire.ProducerInitOK{RequestID: m.RequestID, ProducerID: 5})
				s.CloseWrite()
				return
			case *wire.PublishIdempotent:
				seen <- m
				s.send(&wire.PublishOK{RequestID: m.RequestID})
			default:
				return
			}
		}
	})
	p.setAnswer(offering(wire.OriginalFlags|wire.FlagPublishAcked, wire.FeatureIdempotentProducer))
	c := dial(t, []string{p.addr()})
	if _, err := newProducer(t, c).Publish(testContext(t), []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	if m := <-seen; m.ProducerID != 5 || m.Sequence != 0 || m.Payloads.Count() != 2 || m.Stream != "s" {
		t.Errorf("sent %+v", m)
	}
}

func TestProducerNeedsTheFeature(t *testing.T) {
	p := newPeer(t, func(s *peerStream) { s.next() })
	p.setAnswer(offering(wire.KnownFlags, 0))
	c := dial(t, []string{p.addr()})
	if _, err := c.NewProducer(testContext(t), "s"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	if _, err := c.NewProducer(testContext(t), "a/b"); !errors.As(err, new(*NameError)) {
		t.Errorf("bad name: %v", err)
	}
}
