package client

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/wire"
)

// takesBatches offers everything, and batches of acks.
func takesBatches(most uint32) func(*wire.Auth) wire.Message {
	return func(a *wire.Auth) wire.Message {
		ok := fullOffer(a).(*wire.AuthOK)
		ok.GroupAckBatch = most
		return ok
	}
}

// failedOffsets are the claims that an Ack's error names.
func failedOffsets(t *testing.T, err error) (failed []uint64) {
	t.Helper()
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		claim, ok := errors.AsType[*ClaimError](err)
		if !ok {
			t.Fatalf("no claim error: %v", err)
		}
		failed = append(failed, claim.Claim.Offset)
	}
	return failed
}

// TestAcksGoTogether: acks of a shard share requests, as full as the broker
// takes them, and each claim has an outcome of its own; what may succeed is
// sent again.
func TestAcksGoTogether(t *testing.T) {
	g := newGroupPeer(t, 2)
	g.setAnswer(takesBatches(400))
	g.publishNumbered(0, 1000)
	g.publishNumbered(1, 2)
	busy := map[uint64]bool{3: true}
	g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
		switch m, ok := m.(*wire.GroupAck); {
		case !ok || m.Shard != 0:
		case m.Offset == 500:
			return stale("fatal")
		case busy[m.Offset]:
			delete(busy, m.Offset)
			return refusal("overloaded", "retry")
		}
		return nil
	})
	all := claims(1, 0, 1)
	for i := range uint64(1000) {
		all = append(all, Claim{Offset: i})
	}
	err := dial(t, []string{g.addr()}).Group("s", "g").Ack(testContext(t), all...)
	if !errors.Is(err, ErrStaleClaim) || !slices.Equal(failedOffsets(t, err), []uint64{500}) {
		t.Fatal(err)
	}
	// The second attempt is of one record alone, and an ack of its own.
	want := []string{"batch of 2 acks", "batch of 400 acks", "batch of 400 acks", "batch of 200 acks"}
	if got := g.lines("batch"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if n := len(g.lines("ack")); n != 1001 {
		t.Errorf("%d acks", n)
	}
}

// TestAcksGoTogetherOverLostConnections: a batch whose answer is lost is sent
// again, whole.
func TestAcksGoTogetherOverLostConnections(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.setAnswer(takesBatches(1000))
	g.publishNumbered(0, 50)
	var lost atomic.Bool
	var all []Claim
	for i := range uint64(50) {
		all = append(all, Claim{Offset: i})
	}
	serve := g.serve
	g.setServe(func(s *peerStream) {
		if lost.CompareAndSwap(false, true) {
			s.message()
			s.CancelWrite(0)
			s.CancelRead(0)
			return
		}
		serve(s)
	})
	if err := dial(t, []string{g.addr()}).Group("s", "g").Ack(testContext(t), all...); err != nil {
		t.Fatal(err)
	}
	if got := g.lines("batch"); !slices.Equal(got, []string{"batch of 50 acks"}) {
		t.Error(got)
	}
}
