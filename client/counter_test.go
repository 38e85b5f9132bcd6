package client

import (
	"errors"
	"testing"

	"github.com/felixlog/felix/wire"
)

// counting is a peer with counters; script decides about each add before it
// is counted: an answer of its own, or an end of the connection.
func counting(t *testing.T, script func(n int) (answer wire.Message, cut bool)) (p *peer, adds func() int) {
	t.Helper()
	n := 0
	sums := map[string]int64{}
	p = newPeer(t, nil)
	p.setServe(func(s *peerStream) {
		for {
			m := s.message()
			p.mu.Lock()
			switch m := m.(type) {
			case nil:
				p.mu.Unlock()
				s.CloseWrite()
				return
			case *wire.CounterAdd:
				answer, cut := script(n)
				n++
				if cut {
					p.mu.Unlock()
					s.conn.Close(7, "cut")
					return
				}
				if answer == nil {
					sums[string(m.Key)] += m.Delta
					answer = &wire.CounterValue{RequestID: m.RequestID, Value: wire.Some(sums[string(m.Key)])}
				}
				s.send(answer)
			case *wire.CounterGet:
				v, ok := sums[string(m.Key)]
				s.send(&wire.CounterValue{RequestID: m.RequestID, Value: wire.Optional[int64]{Value: v, Set: ok}})
			default:
				t.Errorf("peer got %s", m.MessageType())
			}
			p.mu.Unlock()
		}
	})
	return p, func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return n
	}
}

func TestCounters(t *testing.T) {
	p, _ := counting(t, func(int) (wire.Message, bool) { return nil, false })
	k := dial(t, []string{p.addr()}).Cache("c")
	ctx := testContext(t)
	if _, ok, err := k.CounterGet(ctx, "n"); ok || err != nil {
		t.Errorf("never written: %v, %v", ok, err)
	}
	for _, step := range []struct{ delta, want int64 }{{5, 5}, {-7, -2}, {0, -2}, {2, 0}} {
		if sum, err := k.CounterAdd(ctx, "n", step.delta); err != nil || sum != step.want {
			t.Errorf("add %d: %d, %v, want %d", step.delta, sum, err, step.want)
		}
	}
	if v, ok, err := k.CounterGet(ctx, "n"); v != 0 || !ok || err != nil {
		t.Errorf("get: %d %v, %v", v, ok, err)
	}
	if _, err := k.CounterAdd(ctx, "", 1); !errors.As(err, new(*NameError)) {
		t.Errorf("empty key: %v", err)
	}
}

// TestAnAddIsSentOnce: neither a lost answer nor a refusal that applied
// nothing makes another.
func TestAnAddIsSentOnce(t *testing.T) {
	refusal := &wire.Error{Message: "no", ErrorInfo: wire.ErrorInfo{Code: wire.Some("shard_unavailable"), Retry: wire.Some("retry")}}
	cases := map[string]struct {
		script func(int) (wire.Message, bool)
		check  func(error) bool
	}{
		"lost":    {func(int) (wire.Message, bool) { return nil, true }, IsOutcomeUnknown},
		"refused": {func(int) (wire.Message, bool) { return refusal, false }, func(err error) bool { return errors.Is(err, ErrShardUnavailable) && IsRetryable(err) }},
	}
	for name, tc := range cases {
		p, adds := counting(t, tc.script)
		k := dial(t, []string{p.addr()}).Cache("c")
		if _, err := k.CounterAdd(testContext(t), "n", 1); !tc.check(err) {
			t.Errorf("%s: %v", name, err)
		}
		if n := adds(); n != 1 {
			t.Errorf("%s: sent %d times", name, n)
		}
	}
}
