package client

import (
	"fmt"
	"sync"
	"testing"

	"github.com/felixlog/felix/wire"
)

// A shardModel is what a broker remembers of producers, in a test's memory:
// batches in the order they were stored.
type shardModel struct {
	mu     sync.Mutex
	stored []string // "number:payload", in order
	next   map[uint64]uint64
	seen   int // frames
}

// offer is the broker's rule of wire 9.6.
func (b *shardModel) offer(id, number uint64, payload string) wire.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen++
	switch next := b.next[id]; {
	case number == next:
		b.next[id]++
		b.stored = append(b.stored, fmt.Sprintf("%d:%s", number, payload))
		return &wire.PublishOK{Offset: wire.Some(number)}
	case number < next:
		return &wire.PublishOK{Offset: wire.Some(number)}
	case next == 0:
		return &wire.PublishRefused{Reason: wire.RefusedReason{Kind: wire.RefusedUnknownProducer}}
	default:
		return &wire.PublishRefused{Reason: wire.RefusedReason{Kind: wire.RefusedSequenceGap, Expected: next}}
	}
}

func (b *shardModel) batches() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.stored...)
}

// producing is a peer with the model behind it. script decides about each
// idempotent batch before the model sees it: what it returns is the answer,
// nil asks the model, and cut ends the connection without an answer (after
// the model took the batch when store is set).
func producing(t *testing.T, model *shardModel, script func(n int, p *wire.Publish) (answer wire.Message, cut, store bool)) *peer {
	t.Helper()
	n := 0
	p := newPeer(t, nil)
	p.setServe(func(s *peerStream) {
		for {
			h, payload, ok := s.next()
			if !ok {
				s.CloseWrite()
				return
			}
			if h.Flags == 0 {
				m, err := wire.ParseMessage(payload)
				if err != nil {
					t.Error(err)
					return
				}
				switch m := m.(type) {
				case *wire.ProducerInit:
					s.send(&wire.ProducerInitOK{RequestID: m.RequestID, ProducerID: 77})
				case *wire.StreamShards:
					s.send(&wire.StreamShardsView{Shards: 4, RequestID: m.RequestID})
				default:
					t.Errorf("peer got %s", m.MessageType())
				}
				s.CloseWrite()
				return
			}
			var b wire.Publish
			if err := wire.ParsePublish(h.Flags, payload, &b); err != nil {
				t.Error(err)
				return
			}
			if !b.Idempotent || b.ProducerID != 77 || b.AckMode != wire.AckPerBatch {
				t.Errorf("publish %+v is no batch of the producer", b)
			}
			model.mu.Lock()
			turn := n
			n++
			model.mu.Unlock()
			answer, cut, store := script(turn, &b)
			if answer == nil && (!cut || store) {
				answer = model.offer(b.ProducerID, b.Sequence, string(b.Block[8:]))
			}
			if cut {
				s.conn.Close(7, "cut")
				return
			}
			switch m := answer.(type) {
			case *wire.PublishOK:
				m.RequestID = b.RequestID
			case *wire.PublishRefused:
				m.RequestID = b.RequestID
			case *wire.PublishError:
				m.RequestID = b.RequestID
			}
			s.send(answer)
		}
	})
	return p
}

func newModel() *shardModel { return &shardModel{next: make(map[uint64]uint64)} }

func publishError(code wire.Code, class wire.RetryClass) wire.Message {
	return &wire.PublishError{Message: "no", ErrorInfo: wire.ErrorInfo{Code: wire.Some(code.String()), Retry: wire.Some(class.String())}}
}
