package client

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/wire"
)

// watching gives each watch request to serve, in the order they come.
func watching(t *testing.T, shards uint32, serve func(n int, s *peerStream, m *wire.CacheWatch)) *peer {
	t.Helper()
	p := newPeer(t, nil)
	n := 0
	p.setServe(func(s *peerStream) {
		switch m := s.message().(type) {
		case nil:
		case *wire.CacheWatch:
			p.mu.Lock()
			n++
			turn := n
			p.mu.Unlock()
			serve(turn, s, m)
		case *wire.CacheShards:
			s.send(&wire.CacheShardsView{Shards: shards, RequestID: m.RequestID})
			s.CloseWrite()
		default:
			t.Errorf("peer got %s", m.MessageType())
		}
	})
	return p
}

// changes answers a watch: it opens an event stream, names it, and says that
// the watch has started.
func (s *peerStream) changes(answer wire.CacheWatchStarted) *peerEvents {
	s.p.mu.Lock()
	s.p.nextID++
	answer.SubscriptionID = s.p.nextID
	s.p.mu.Unlock()
	st, err := s.conn.OpenUniStream(s.conn.Context())
	if err != nil {
		s.p.t.Errorf("peer open event stream: %v", err)
		return nil
	}
	e := &peerEvents{SendStream: st, p: s.p, id: answer.SubscriptionID}
	e.send(&wire.EventStreamHello{SubscriptionID: e.id})
	s.send(&answer)
	s.CloseWrite()
	return e
}

func (e *peerEvents) put(offset uint64, key, value string) {
	e.send(&wire.CacheEvent{Key: []byte(key), Value: wire.Some([]byte(value)), Offset: offset})
}

// show is a change in one word, such as k=v@3; a star marks the state.
func show(c Change) string {
	switch c.Kind {
	case Put:
		s := fmt.Sprintf("%s=%s@%d", c.Key, c.Value, c.Offset)
		if c.Retained {
			s += "*"
		}
		return s
	case Deleted, Expired:
		return fmt.Sprintf("%s-%s@%d", c.Key, c.Kind, c.Offset)
	default:
		return c.Kind.String()
	}
}

func expectChanges(t *testing.T, w *Watch, want ...string) {
	t.Helper()
	for i, want := range want {
		change, err := w.Next(testContext(t))
		if err != nil {
			t.Fatalf("change %d: %v, want %s", i, err, want)
		}
		if got := show(change); got != want {
			t.Errorf("change %d: %s, want %s", i, got, want)
		}
	}
}

func watch(t *testing.T, c *Client, opts ...WatchOption) *Watch {
	t.Helper()
	w, err := c.Cache("c").Watch(testContext(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// notReady refuses what concerns a shard that is being opened.
func notReady() *wire.Error {
	return &wire.Error{Message: "opening", ErrorInfo: wire.ErrorInfo{Code: wire.Some("shard_unavailable"), Retry: wire.Some("retry")}}
}
