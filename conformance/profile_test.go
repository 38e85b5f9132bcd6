package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// TestClientProfile holds the published client to what docs/interop.md says
// of it and the broker is built on. A release that behaves otherwise fails
// here first, before anything strange is seen of the node.
func TestClientProfile(t *testing.T) {
	t.Parallel()
	env := pythonClient(t)
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory})

	t.Run("auth", func(t *testing.T) {
		want := fmt.Sprintf(`{"type":"auth","tenant_id":"t1","token":"token","client_flags":%d,"client_features":%d,"client_features_hi":15}`,
			clientFlags, uint32(clientFeatures))
		for _, got := range l.requests("auth") {
			if got != want {
				t.Errorf("%s %s sends %s, not %s", clientPackage, env.version, got, want)
			}
		}
	})
	t.Run("handshake", func(t *testing.T) {
		f := l.server.Conns()[0].Facts()
		if f.OfferedALPN != nil || f.ServerName != "localhost" {
			t.Errorf("ALPN %v, server name %q", f.OfferedALPN, f.ServerName)
		}
		want := recorder.Params{MaxIdleTimeout: 6 * time.Second, MaxBidiStreams: 1024, MaxUniStreams: 1024,
			ConnWindow: 256 << 20, BidiLocalWindow: 64 << 20, BidiRemoteWindow: 64 << 20, UniWindow: 64 << 20,
			MaxAckDelay: 25 * time.Millisecond, MaxUDPPayload: f.Params.MaxUDPPayload, MaxDatagram: 65535, ActiveConnectionIDs: 5}
		if f.Params != want {
			t.Errorf("transport parameters\n%+v, not\n%+v", f.Params, want)
		}
	})
	t.Run("ALPN on request", func(t *testing.T) {
		if err := l.connect("alpn", l.server.Addr(), l.ca, map[string]any{"offer_alpn": true}); err != nil {
			t.Fatal(err)
		}
		conns := l.server.Conns()
		if got := conns[len(conns)-1].Facts().OfferedALPN; !slices.Equal(got, []string{"felix/1"}) {
			t.Errorf("ALPN %v", got)
		}
	})
	t.Run("forty streams at once", func(t *testing.T) {
		// 8 for publishing and 32 for caches, authenticated before any use.
		n := len(l.server.Frames(func(e recorder.Entry) bool { return e.Conn == 1 && e.Frame.Type() == "auth" }))
		if n != 40 {
			t.Errorf("%d streams authenticated on connecting", n)
		}
	})
	t.Run("no request is sent that is not advertised", func(t *testing.T) {
		if got := l.requests("topology"); len(got) != 0 {
			t.Errorf("topology asked of a broker that does not serve it: %v", got)
		}
	})
	t.Run("publishes", func(t *testing.T) {
		for _, tc := range []struct {
			kwargs map[string]any
			flags  uint16
			mode   uint8
		}{
			{nil, 0x0009, 1},
			{map[string]any{"ack": "per_batch"}, 0x0009, 2},
			{map[string]any{"ack": "none"}, 0x0001, 0},
			{map[string]any{"at_least_once": true}, 0x0009, 1},
			{map[string]any{"key": pyBytes("k")}, 0x0049, 1},
			{map[string]any{"key": pyBytes(""), "ack": "per_batch"}, 0x0049, 2},
			{map[string]any{"key": pyBytes("k"), "ack": "none"}, 0x0041, 0},
		} {
			before := len(l.server.Log())
			if err := l.publish(tc.kwargs); err != nil {
				t.Fatalf("%v: %v", tc.kwargs, err)
			}
			e := l.waitFrom(t, before, "publish", func(e recorder.Entry) bool {
				return e.Kind == recorder.KindIn && kindOf(e.Frame) == "binary publish"
			})
			p, err := raw.ParsePublish(e.Frame)
			if err != nil || e.Frame.Flags != tc.flags || p.AckMode != tc.mode || e.Uni {
				t.Errorf("%v: %s (%v)", tc.kwargs, e.Frame.Describe(), err)
			}
		}
	})
	t.Run("subscribe has a stream of its own and ends it", func(t *testing.T) {
		if err := l.subscribe(map[string]any{"start": 17}); err != nil {
			t.Fatal(err)
		}
		e := l.wait(t, "subscribe", func(e recorder.Entry) bool { return e.Frame.Type() == "subscribe" })
		if want := `{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s","start":{"offset":17}}`; string(e.Frame.Payload) != want {
			t.Errorf("%s, not %s", e.Frame.Payload, want)
		}
		l.wait(t, "the end of the subscribe stream", func(end recorder.Entry) bool {
			return end.Kind == recorder.KindFIN && end.Conn == e.Conn && end.Stream == e.Stream
		})
	})
	t.Run("cache requests", func(t *testing.T) {
		for _, c := range []struct {
			method string
			args   []any
			kwargs map[string]any
			want   string
		}{
			{"cache_put", []any{"t1", "default", "c", "k", pyBytes("v")}, nil, `"key":"k","value":"dg==","request_id":ID,"ttl_ms":null}`},
			{"cache_put", []any{"t1", "default", "c", "k", pyBytes("")}, map[string]any{"ttl": 0.25}, `"key":"k","value":"","request_id":ID,"ttl_ms":250}`},
			{"cache_put", []any{"t1", "default", "c", "k", pyBytes("")}, map[string]any{"ttl": 0}, `"key":"k","value":"","request_id":ID,"ttl_ms":0}`},
			{"cache_get", []any{"t1", "default", "c", "k"}, nil, `"key":"k","request_id":ID}`},
			{"cache_delete", []any{"t1", "default", "c", "k"}, nil, `"key":"k","request_id":ID}`},
		} {
			if err := l.call(nil, "c", c.method, c.args, c.kwargs); err != nil {
				t.Fatalf("%s: %v", c.method, err)
			}
			sent := l.requests(c.method)
			got := sent[len(sent)-1]
			id, _ := raw.JSON(got).Uint("request_id")
			want := fmt.Sprintf(`{"type":%q,"tenant_id":"t1","namespace":"default","cache":"c",`, c.method) +
				strings.ReplaceAll(c.want, "ID", fmt.Sprint(id))
			if got != want {
				t.Errorf("%s, not %s", got, want)
			}
		}
	})
	t.Run("one connection for everything", func(t *testing.T) {
		for _, e := range l.server.Frames(nil) {
			if e.Conn > 2 { // the second is the one that offered ALPN
				t.Fatalf("a further connection: %s", e)
			}
		}
	})
	t.Run("no unidirectional streams", func(t *testing.T) {
		if got := l.server.Frames(func(e recorder.Entry) bool { return e.Uni }); len(got) != 0 {
			t.Errorf("%d frames on streams of the client's that go one way", len(got))
		}
	})
	t.Run("keep-alive", func(t *testing.T) {
		// Two seconds apart; every other wait of this test is a bound only.
		conn := l.server.Conns()[0]
		until(t, "two pings", func() error {
			if n := len(conn.Facts().Pings); n < 2 {
				return fmt.Errorf("%d pings", n)
			}
			return nil
		})
	})
}

// TestClientStreamsPerShard: keyed publishes to a stream of several shards
// take a stream of the connection for each shard, up to four (wire 20.2).
func TestClientStreamsPerShard(t *testing.T) {
	shards := &sequence{kind: "stream_shards", answers: []func(*recorder.Stream, raw.Frame){func(s *recorder.Stream, f raw.Frame) {
		id, _ := f.Uint("request_id")
		s.Send(raw.JSON(fmt.Sprintf(`{"type":"stream_shards_view","shards":8,"request_id":%d}`, id)))
	}}}
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: shards.handle})
	for n := range 24 {
		if err := l.publish(map[string]any{"key": pyBytes(fmt.Sprintf("customer-%d", n))}); err != nil {
			t.Fatal(err)
		}
	}
	opened, dedicated := make(map[int64]bool), make(map[int64]bool)
	for _, e := range l.server.Frames(nil) {
		if e.Frame.Type() == "auth" && len(opened) < 40 {
			opened[e.Stream] = true
		}
		if kindOf(e.Frame) == "binary publish" && !opened[e.Stream] {
			dedicated[e.Stream] = true
		}
	}
	if len(dedicated) != 4 {
		t.Errorf("%d streams opened for shards", len(dedicated))
	}
}

// TestClientOfLegacyBroker: to a broker that answers ok the client sends its
// binary publishes all the same, and nothing that needs a feature.
func TestClientOfLegacyBroker(t *testing.T) {
	l := newLab(t, &recorder.Script{AuthOK: func(s *recorder.Stream, _ raw.Frame) { s.Send(raw.JSON(`{"type":"ok"}`)) }})
	if err := l.publish(nil); err != nil {
		t.Fatal(err)
	}
	e := l.wait(t, "publish", func(e recorder.Entry) bool {
		return e.Kind == recorder.KindIn && kindOf(e.Frame) == "binary publish"
	})
	if e.Frame.Flags != 0x0009 {
		t.Errorf("publish frame %s", e.Frame.Describe())
	}
	if err := l.call(nil, "c", "stream_shards", []any{"t1", "default", "s"}, nil); raised(err) != "FelixError" ||
		!strings.Contains(err.Error(), "broker does not report stream shard counts") {
		t.Errorf("stream_shards of a broker that does not serve it: %v", err)
	}
}

// TestClientAsksWhatIsAdvertised: each bit makes the client send requests a
// broker must then answer.
func TestClientAsksWhatIsAdvertised(t *testing.T) {
	for name, tc := range map[string]struct {
		features uint32
		hi       uint32
		request  string
		members  []string
	}{
		"topology":      {featureTopology, 0, "topology", []string{"type"}},
		"shard owners":  {featureShardOwners, 0, "shard_owners", []string{"kind", "name", "namespace", "request_id", "tenant_id", "type"}},
		"stream shards": {featureStreamShards, 0, "stream_shards", []string{"namespace", "request_id", "stream", "tenant_id", "type"}},
		// Bit 0x4 of the second word is in no list of wire 5.3: a broker that
		// returns the client's own word gets a request it does not know.
		"second word": {featureStreamShards | featureExtended, 4, "publish_width", []string{"namespace", "shards", "stream", "tenant_id", "type"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, &recorder.Script{AuthOK: func(s *recorder.Stream, _ raw.Frame) {
				hi := ""
				if tc.hi != 0 {
					hi = fmt.Sprintf(`,"server_features_hi":%d`, tc.hi)
				}
				s.Send(raw.JSON(fmt.Sprintf(`{"type":"auth_ok","server_flags":%d,"server_features":%d%s}`, recorder.AllFlags, tc.features, hi)))
			}})
			// Answered or not, it is what the client sends that counts here.
			_ = l.publish(map[string]any{"key": pyBytes("k")})
			e := l.wait(t, tc.request, func(e recorder.Entry) bool { return e.Kind == recorder.KindIn && e.Frame.Type() == tc.request })
			if got := memberNames(e.Frame); !slices.Equal(got, tc.members) {
				t.Errorf("members %v, not %v", got, tc.members)
			}
		})
	}
}
