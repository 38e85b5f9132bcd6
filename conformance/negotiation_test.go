package conformance

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// Feature bits of wire 5.2 that these tests name.
const (
	featureTopology            = 0x0000_0001
	featureRedirect            = 0x0000_0002
	featureCacheDelete         = 0x0000_0004
	featureConsumerGroup       = 0x0000_0008
	featureGroupDeadLetters    = 0x0000_0010
	featureStreamShards        = 0x0000_0020
	featureCacheWatch          = 0x0000_0040
	featureCacheWatchRetained  = 0x0000_0080
	featureCounters            = 0x0000_0100
	featureIdempotentProducer  = 0x0000_0200
	featureCacheShards         = 0x0000_0400
	featureErrorCodes          = 0x0000_0800
	featureShardMoved          = 0x0000_1000
	featureUnsupported         = 0x0000_2000
	featureSequenceReused      = 0x0000_4000
	featurePublishPipeline     = 0x0000_8000
	featureAtomicCommit        = 0x0001_0000
	featureStreamPublishWindow = 0x0002_0000
	featureShardOwners         = 0x0004_0000
	featureAckOnCommit         = 0x0008_0000
	featureGroupConsumer       = 0x0010_0000
	featureSubscriptionLagged  = 0x0020_0000
	featureGroupSkipped        = 0x0040_0000
	featureGroupPublisher      = 0x0080_0000
	featureGroupAdmin          = 0x0100_0000
	featureCacheConditional    = 0x0200_0000
	featureRecordTimestamps    = 0x0400_0000
	featureGroupClaimControl   = 0x0800_0000
	featurePublishConditional  = 0x1000_0000
	featureStreamRead          = 0x2000_0000
	featureSubscribeQueue      = 0x4000_0000
	featureExtended            = 0x8000_0000
)

// inspectFeature is the only bit of the second word that is specified (wire
// 5.3). The published client offers three more.
const inspectFeature = 0x1

// What a node outside a cluster serves (wire 5.4): with storage, what needs a
// log as well. Inspection is not served yet.
const (
	servedInMemory = featureCacheDelete | featureStreamShards | featureCacheShards | featureShardOwners |
		featureErrorCodes | featureShardMoved | featureUnsupported | featureCacheConditional | featureSubscribeQueue | featureAckOnCommit |
		featureIdempotentProducer | featureSequenceReused | featurePublishPipeline | featureStreamPublishWindow
	servedOnLog = featureCounters | featureCacheWatch | featureCacheWatchRetained | featureAtomicCommit |
		featurePublishConditional | featureStreamRead | featureRecordTimestamps | featureSubscriptionLagged |
		featureConsumerGroup | featureGroupDeadLetters | featureGroupConsumer | featureGroupSkipped | featureGroupPublisher |
		featureGroupAdmin | featureGroupClaimControl
)

// offerTo is a node's answer to an auth with these members.
func offerTo(t *testing.T, c *rawConn, fields map[string]any) raw.Frame {
	t.Helper()
	m := map[string]any{"type": "auth", "tenant_id": "t1", "token": c.node.Token()}
	for k, v := range fields {
		m[k] = v
	}
	s := c.in(t).open()
	s.frames(raw.JSON(m))
	f := s.frame()
	if f.Type() != "auth_ok" {
		t.Fatalf("answer to %v: %s", fields, f.Describe())
	}
	return f
}

// TestAuthOK checks what the node answers to offers (wire 5).
func TestAuthOK(t *testing.T) {
	n := felixtest.Start(t)
	c := dialRaw(t, n)
	offer := func(t *testing.T, fields map[string]any) raw.Frame {
		t.Helper()
		return offerTo(t, c, fields)
	}
	full := offer(t, map[string]any{"client_flags": clientFlags, "client_features": clientFeatures, "client_features_hi": 15})
	features, _ := full.Uint("server_features")
	t.Run("every flag is advertised", func(t *testing.T) {
		if flags, _ := full.Uint("server_flags"); flags != 0x7FFF {
			t.Errorf("server_flags %#x", flags)
		}
	})
	t.Run("only what is served is advertised", func(t *testing.T) {
		if features != servedInMemory {
			t.Errorf("a node in memory advertises %#x, not %#x", features, servedInMemory)
		}
		onDisk := offerTo(t, dialRaw(t, felixtest.Start(t, felixtest.Durable())),
			map[string]any{"client_flags": clientFlags, "client_features": clientFeatures, "client_features_hi": 15})
		if got, _ := onDisk.Uint("server_features"); got != servedInMemory|servedOnLog {
			t.Errorf("a node with storage advertises %#x, not %#x", got, servedInMemory|servedOnLog)
		}
		unwindowed := offerTo(t, dialRaw(t, felixtest.Start(t, felixtest.WithSetting("publish-window", "0"))),
			map[string]any{"client_flags": clientFlags, "client_features": clientFeatures})
		if got, _ := unwindowed.Uint("server_features"); got != servedInMemory&^(featurePublishPipeline|featureStreamPublishWindow) {
			t.Errorf("a node without a publish window advertises %#x", got)
		}
	})
	// With a bit it does not know the client would send requests the node
	// does not: publish_width for 0x4, for one.
	t.Run("the second word is known bits, behind the marker", func(t *testing.T) {
		hi, ok := full.Uint("server_features_hi")
		if ok != (features&featureExtended != 0) || ok && hi&^inspectFeature != 0 || ok && hi == 0 {
			t.Errorf("server_features %#x, server_features_hi %#x (present: %v)", features, hi, ok)
		}
	})
	t.Run("no second word without the marker", func(t *testing.T) {
		f := offer(t, map[string]any{"client_flags": clientFlags, "client_features": clientFeatures &^ featureExtended, "client_features_hi": 15})
		if got, _ := f.Uint("server_features"); got&featureExtended != 0 {
			t.Errorf("marker in server_features %#x", got)
		}
		if _, ok := f.Object()["server_features_hi"]; ok {
			t.Errorf("second word in %s", f.Describe())
		}
	})
	t.Run("window if and only if pipelining", func(t *testing.T) {
		window, ok := full.Uint("publish_window")
		if ok != (features&featurePublishPipeline != 0) || ok && window == 0 {
			t.Errorf("server_features %#x, publish_window %d (present: %v)", features, window, ok)
		}
		f := offer(t, map[string]any{"client_flags": clientFlags, "client_features": clientFeatures &^ featurePublishPipeline})
		if _, ok := f.Object()["publish_window"]; ok {
			t.Errorf("window for a client without pipelining: %s", f.Describe())
		}
	})
	t.Run("flags alone", func(t *testing.T) {
		f := offer(t, map[string]any{"client_flags": 0})
		if _, ok := f.Object()["listener_ports"]; ok {
			t.Errorf("ports of a node with one listener: %s", f.Describe())
		}
	})
	t.Run("null and unknown members", func(t *testing.T) {
		c := c.in(t)
		s := c.open()
		s.frames(raw.JSON(fmt.Sprintf(`{"client_flags":null,"token":%q,"future":{"a":[1.5e300]},"tenant_id":"t1","client_features":null,"type":"auth"}`, n.Token())))
		s.wantText(`{"type":"ok"}`)
	})
}

// TestRefusedAuth checks refusals of auth: the code goes to whoever offered
// to read it, even in a refused auth (wire 5.1).
func TestRefusedAuth(t *testing.T) {
	n := felixtest.Start(t)
	c := dialRaw(t, n)
	for name, token := range map[string]string{"garbage": "garbage", "empty": "", "unsigned": "eyJhbGciOiJub25lIn0.e30."} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			s := c.open()
			s.frames(fullAuthFrame(token))
			s.wantJSON(`{"type":"error","message":"auth failed","code":"unauthenticated","retry":"fatal"}`)
			s.wantEnd()
			s = c.open()
			s.frames(authFrame(token))
			s.wantText(`{"type":"error","message":"auth failed"}`)
			s.wantEnd()
		})
	}
	t.Run("foreign tenant", func(t *testing.T) {
		c := c.in(t)
		s := c.open()
		s.frames(raw.JSON(map[string]any{"type": "auth", "tenant_id": "t2", "token": n.Token()}))
		s.wantText(`{"type":"error","message":"auth failed"}`)
		s.wantEnd()
	})
	c.legacy().wantAlive()
}
