package session_test

import (
	"strings"
	"testing"

	"github.com/felixlog/felix/wire"
)

// A batch of acks is one request with one answer, which names what failed and
// why; the node says how many offsets it takes.
func TestGroupAckBatch(t *testing.T) {
	n := startGroups(t)
	p := dial(t, n)
	p.produce(letters(5)...)
	l := p.login(modern(), n.Token())
	g := p.group("g")
	l.polled(p.poll(1, 4, 0), "0:a:1", "1:b:1", "2:c:1", "3:d:1")
	m := l.ask(&wire.GroupAckBatch{GroupRef: g, Offsets: []uint64{1, 0, 4, 3}, RequestID: 2})
	acked, is := m.(*wire.GroupAcked)
	if !is || acked.RequestID != 2 || len(acked.Failed) != 1 || acked.Failed[0].Offset != 4 ||
		acked.Failed[0].Code.Value != "invalid_request" || acked.Failed[0].Retry.Value != "fatal" || acked.Failed[0].Message == "" {
		t.Fatalf("answer %+v", m)
	}
	if info := l.describe(p); info.Committed != wire.Some[uint64](2) || info.InFlight != 1 {
		t.Fatalf("%+v", info)
	}
	for _, offsets := range [][]uint64{{}, make([]uint64, wire.MaxAckBatch+1)} {
		m := l.ask(&wire.GroupAckBatch{GroupRef: g, Offsets: offsets, RequestID: 3})
		if e, is := m.(*wire.Error); !is || e.Code.Value != "invalid_request" || !strings.Contains(e.Message, "1 to 1000") {
			t.Fatalf("%d offsets: %+v", len(offsets), m)
		}
	}
	m = l.ask(&wire.GroupAckBatch{GroupRef: g, Offsets: []uint64{2, 2}, RequestID: 4})
	if acked, is := m.(*wire.GroupAcked); !is || acked.RequestID != 4 || len(acked.Failed) != 0 {
		t.Fatalf("answer %+v", m)
	}
	if info := l.describe(p); info.Committed != wire.Some[uint64](4) || info.InFlight != 0 {
		t.Fatalf("%+v", info)
	}
}
