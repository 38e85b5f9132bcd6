package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// A groupPeer is a scripted broker with one stream and one group. It keeps no
// time: claims lapse when a test says so. What comes and goes is in its log,
// in words.
type groupPeer struct {
	*peer

	mu      sync.Mutex
	changed *sync.Cond
	shards  []*peerShard
	log     []string
	// refuse answers a request in place of the broker, unless it gives nil.
	refuse func(s *peerStream, m wire.Message) wire.Message
	// granted is the extension granted; zero for what was asked.
	granted time.Duration
}

type peerShard struct {
	records []*peerRecord
	dead    []uint64
	polls   int // waiting
}

type peerRecord struct {
	payload  string
	attempts uint32
	claimed  bool
	done     bool
	delayed  bool // handed back with a delay, which does not end
}

func newGroupPeer(t testing.TB, shards int) *groupPeer {
	t.Helper()
	g := &groupPeer{}
	g.changed = sync.NewCond(&g.mu)
	for range shards {
		g.shards = append(g.shards, &peerShard{})
	}
	g.peer = newPeer(t, g.serve)
	return g
}

// publish appends records to a shard.
func (g *groupPeer) publish(shard int, payloads ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range payloads {
		g.shards[shard].records = append(g.shards[shard].records, &peerRecord{payload: p})
	}
	g.changed.Broadcast()
}

// publishNumbered appends n records named r0, r1, ...
func (g *groupPeer) publishNumbered(shard, n int) {
	for i := range n {
		g.publish(shard, fmt.Sprint("r", i))
	}
}

// lapse ends all claims of a shard.
func (g *groupPeer) lapse(shard int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.shards[shard].records {
		r.claimed, r.delayed = false, false
	}
	g.changed.Broadcast()
}

// note puts a line into the log.
func (g *groupPeer) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.log = append(g.log, fmt.Sprintf(format, args...))
}

// lines are the lines of the log with this prefix.
func (g *groupPeer) lines(prefix string) (out []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, line := range g.log {
		if strings.HasPrefix(line, prefix) {
			out = append(out, line)
		}
	}
	return out
}

// at is the place of a line in the log, -1 when it is not there.
func (g *groupPeer) at(line string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Index(g.log, line)
}

// unfinished counts the records that are neither acknowledged nor dead.
func (g *groupPeer) unfinished() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, sh := range g.shards {
		for _, r := range sh.records {
			if !r.done {
				n++
			}
		}
	}
	return n
}

func (g *groupPeer) setRefuse(f func(*peerStream, wire.Message) wire.Message) {
	g.mu.Lock()
	g.refuse = f
	g.mu.Unlock()
}

func (g *groupPeer) serve(s *peerStream) {
	stop := context.AfterFunc(s.Context(), func() {
		g.mu.Lock()
		g.changed.Broadcast()
		g.mu.Unlock()
	})
	defer stop()
	for {
		m := s.message()
		if m == nil {
			s.CloseWrite()
			return
		}
		g.mu.Lock()
		refuse := g.refuse
		g.mu.Unlock()
		var answer wire.Message
		if refuse != nil {
			answer = refuse(s, m)
		}
		if answer == nil {
			answer = g.answer(s, m)
		}
		if answer == nil {
			return
		}
		s.send(answer)
	}
}

func (g *groupPeer) answer(s *peerStream, m wire.Message) wire.Message {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch m := m.(type) {
	case *wire.StreamShards:
		return &wire.StreamShardsView{Shards: uint32(len(g.shards)), RequestID: m.RequestID}
	case *wire.GroupPoll:
		return g.poll(s, m)
	case *wire.GroupAck:
		g.log = append(g.log, fmt.Sprintf("ack %d:%d", m.Shard, m.Offset))
		r := g.record(m.GroupRef, m.Offset)
		r.done, r.claimed, r.delayed = true, false, false
		return &wire.CacheOK{RequestID: m.RequestID}
	case *wire.GroupAckBatch:
		answer := &wire.GroupAcked{RequestID: m.RequestID}
		for _, offset := range m.Offsets {
			single := &wire.GroupAck{GroupRef: m.GroupRef, Offset: offset, RequestID: m.RequestID}
			if g.refuse != nil {
				if e, ok := g.refuse(s, single).(*wire.Error); ok {
					answer.Failed = append(answer.Failed, wire.GroupAckFailure{Offset: offset, Error: *e})
					continue
				}
			}
			g.log = append(g.log, fmt.Sprintf("ack %d:%d", m.Shard, offset))
			g.record(m.GroupRef, offset).done = true
		}
		g.log = append(g.log, fmt.Sprintf("batch of %d acks", len(m.Offsets)))
		return answer
	case *wire.GroupNack:
		r := g.record(m.GroupRef, m.Offset)
		if m.Attempts != 0 && (!r.claimed || r.attempts != m.Attempts) {
			return stale("fatal")
		}
		g.log = append(g.log, fmt.Sprintf("nack %d:%d:%d %dms", m.Shard, m.Offset, m.Attempts, m.DelayMS))
		r.claimed, r.delayed = false, m.DelayMS > 0
		g.changed.Broadcast()
		return &wire.CacheOK{RequestID: m.RequestID}
	case *wire.GroupExtend:
		r := g.record(m.GroupRef, m.Offset)
		if !r.claimed || r.attempts != m.Attempts {
			return stale("fatal")
		}
		g.log = append(g.log, fmt.Sprintf("extend %d:%d:%d %dms", m.Shard, m.Offset, m.Attempts, m.ExtendMS))
		visible := m.ExtendMS
		if g.granted > 0 {
			visible = uint64(g.granted.Milliseconds())
		}
		return &wire.GroupExtended{VisibleMS: visible, RequestID: m.RequestID}
	case *wire.GroupDeadLetter:
		g.log = append(g.log, fmt.Sprintf("dead letter %d:%d", m.Shard, m.Offset))
		g.record(m.GroupRef, m.Offset).done = true
		g.shards[m.Shard].dead = append(g.shards[m.Shard].dead, m.Offset)
		return &wire.CacheOK{RequestID: m.RequestID}
	default:
		g.t.Errorf("group peer got %s", m.MessageType())
		return &wire.Error{Message: "unexpected " + m.MessageType()}
	}
}

func (g *groupPeer) record(ref wire.GroupRef, offset uint64) *peerRecord {
	return g.shards[ref.Shard].records[offset]
}

// poll claims records, waiting for the first if the poll may wait. mu is held.
func (g *groupPeer) poll(s *peerStream, m *wire.GroupPoll) wire.Message {
	g.log = append(g.log, fmt.Sprintf("poll %d max %d", m.Shard, m.MaxRecords))
	sh := g.shards[m.Shard]
	answer := &wire.GroupRecords{RequestID: m.RequestID}
	sh.polls++
	defer func() { sh.polls-- }()
	for {
		for offset, r := range sh.records {
			if r.claimed || r.done || r.delayed || len(answer.Records) == int(m.MaxRecords) {
				continue
			}
			r.claimed = true
			r.attempts++
			answer.Records = append(answer.Records, wire.GroupRecord{
				Offset: uint64(offset), Payload: []byte(r.payload), Attempts: r.attempts,
			})
		}
		if len(answer.Records) > 0 || m.WaitMS == 0 {
			return answer
		}
		if s.Context().Err() != nil {
			return nil
		}
		g.changed.Wait()
	}
}

func stale(class string) *wire.Error {
	return &wire.Error{Message: "the claim does not stand", ErrorInfo: wire.ErrorInfo{Code: wire.Some("stale_claim"), Retry: wire.Some(class)}}
}

func refusal(code, class string) *wire.Error {
	return &wire.Error{Message: code, ErrorInfo: wire.ErrorInfo{Code: wire.Some(code), Retry: wire.Some(class)}}
}
