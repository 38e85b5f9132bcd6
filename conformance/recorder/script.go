package recorder

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/conformance/raw"
)

// All a broker of the level of wire 0.2 can advertise.
const (
	AllFlags    = 0x7FFF
	AllFeatures = 0xFFFF_FFFF
)

// A Script answers what a client asks. The zero value is a small honest broker
// in memory: it acknowledges publishes without offsets, opens event streams on
// which nothing happens until [Script.Events] is used, and keeps caches in a
// map.
type Script struct {
	// AuthOK is the answer to every auth that offers flags; nil is an
	// auth_ok with Flags and Features.
	AuthOK func(s *Stream, auth raw.Frame)
	// Flags and Features go into the default auth_ok.
	Flags    uint16
	Features uint32
	// Handle sees every frame after auth first; true means it has answered.
	Handle func(s *Stream, f raw.Frame) bool

	nextID atomic.Uint64
	mu     sync.Mutex
	cache  map[string]string
	events []*Stream
}

// Events are the event streams opened by the default answer to subscribe, in
// order.
func (sc *Script) Events() []*Stream {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return append([]*Stream(nil), sc.events...)
}

// NextID is a fresh subscription id.
func (sc *Script) NextID() uint64 { return sc.nextID.Add(1) }

func (sc *Script) answer(s *Stream, f raw.Frame) {
	if s.served == 1 {
		sc.auth(s, f)
		return
	}
	if sc.Handle != nil && sc.Handle(s, f) {
		return
	}
	if f.Flags != 0 {
		sc.binary(s, f)
		return
	}
	sc.json(s, f)
}

func (sc *Script) auth(s *Stream, f raw.Frame) {
	if s.Uni() {
		return
	}
	if sc.AuthOK != nil {
		sc.AuthOK(s, f)
		return
	}
	if _, offers := f.Uint("client_flags"); !offers {
		s.Send(raw.JSON(`{"type":"ok"}`))
		return
	}
	s.Send(raw.JSON(fmt.Sprintf(`{"type":"auth_ok","server_flags":%d,"server_features":%d}`, sc.Flags, sc.Features)))
}

func (sc *Script) binary(s *Stream, f raw.Frame) {
	p, err := raw.ParsePublish(f)
	if err != nil {
		s.Send(raw.JSON(`{"type":"error","message":"malformed publish batch"}`))
		s.FIN()
		return
	}
	switch {
	case f.Flags&raw.FlagPublishIdempotent != 0:
		s.Send(raw.JSON(fmt.Sprintf(`{"type":"publish_ok","request_id":%d}`, p.RequestID)))
	case f.Flags&raw.FlagPublishAcked != 0:
		s.Send(raw.Ack{RequestID: p.RequestID}.Frame())
	}
}

func (sc *Script) json(s *Stream, f raw.Frame) {
	id, _ := f.Uint("request_id")
	reply := func(format string, args ...any) { s.Send(raw.JSON(fmt.Sprintf(format, args...))) }
	switch f.Type() {
	case "publish", "publish_batch":
		if f.String("ack") != "none" {
			reply(`{"type":"publish_ok","request_id":%d}`, id)
		}
	case "producer_init":
		reply(`{"type":"producer_init_ok","request_id":%d,"producer_id":%d}`, id, uint64(1)<<63|id)
	case "publish_idempotent":
		reply(`{"type":"publish_ok","request_id":%d}`, id)
	case "subscribe":
		sub := sc.NextID()
		ev, err := s.Conn.OpenEvents(sub)
		if err != nil {
			reply(`{"type":"error","message":%q}`, err)
			return
		}
		sc.mu.Lock()
		sc.events = append(sc.events, ev)
		sc.mu.Unlock()
		reply(`{"type":"subscribed","subscription_id":%d}`, sub)
		s.FIN()
	case "topology":
		reply(`{"type":"topology_view","brokers":[]}`)
	case "stream_shards":
		reply(`{"type":"stream_shards_view","shards":1,"request_id":%d}`, id)
	case "cache_shards":
		reply(`{"type":"cache_shards_view","shards":1,"request_id":%d}`, id)
	case "shard_owners":
		reply(`{"type":"shard_owners_view","owners":[{"shard":0,"generation":0}],"request_id":%d}`, id)
	case "cache_put", "cache_get", "cache_delete":
		sc.cacheOp(s, f, id)
	default:
		reply(`{"type":"unsupported","request_type":%q,"request_id":%d}`, f.Type(), id)
	}
}

func (sc *Script) cacheOp(s *Stream, f raw.Frame, id uint64) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.cache == nil {
		sc.cache = make(map[string]string)
	}
	key := f.String("cache") + "/" + f.String("key")
	if f.Type() == "cache_put" {
		sc.cache[key] = f.String("value")
		s.Send(raw.JSON(fmt.Sprintf(`{"type":"cache_ok","request_id":%d}`, id)))
		return
	}
	var value any
	if v, ok := sc.cache[key]; ok {
		value = v
	}
	if f.Type() == "cache_delete" {
		delete(sc.cache, key)
	}
	b, err := json.Marshal(map[string]any{
		"type": "cache_value", "tenant_id": f.String("tenant_id"), "namespace": f.String("namespace"),
		"cache": f.String("cache"), "key": f.String("key"), "value": value, "request_id": id,
	})
	if err != nil {
		panic("cache value does not encode: " + err.Error())
	}
	s.Send(raw.Frame{Payload: b})
}
