package conformance

import (
	"testing"

	"github.com/felixlog/felix/conformance/raw"
)

// TestUnidirectional: on a stream only the client writes, every irregularity
// ends that stream without a word (wire 2.3, 19).
func TestUnidirectional(t *testing.T) {
	h := newHostile(t)
	token := h.node.Token()
	good := publish(0, "s", "x").Frame()
	for name, frames := range map[string][]raw.Frame{
		"refused auth":           {authFrame("garbage")},
		"no auth":                {good},
		"second auth":            {authFrame(token), authFrame(token)},
		"unknown flag":           {authFrame(token), {Flags: raw.FlagUndefined, Payload: good.Payload}},
		"acked batch":            {authFrame(token), acked(1, "s", "x").Frame()},
		"another request":        {authFrame(token), cacheGet(1)},
		"subscribe":              {authFrame(token), raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`)},
		"unknown type":           {fullAuthFrame(token), raw.JSON(`{"type":"nonesuch"}`)},
		"malformed batch":        {authFrame(token), {Flags: raw.FlagPublishBatch, Payload: []byte{0}}},
		"foreign tenant":         {authFrame(token), raw.Publish{Flags: 1, Tenant: "t2", Namespace: "default", Stream: "s"}.Frame()},
		"forbidden":              {authFrame(h.node.Token("cache.read:cache:t1/*")), good},
		"not JSON":               {authFrame(token), raw.JSON(`nonsense`)},
		"broker's message":       {authFrame(token), raw.JSON(`{"type":"ok"}`)},
		"batch for other tenant": {authFrame(token), raw.JSON(`{"type":"publish","tenant_id":"t2","namespace":"default","stream":"s","payload":""}`)},
	} {
		h.run(t, name, func(c *rawConn) {
			s := c.openUni()
			s.frames(frames...)
			s.wantStopped()
		})
	}
	h.run(t, "publishes are taken", func(c *rawConn) {
		sub := c.session()
		sub.frames(raw.JSON(`{"type":"subscribe","tenant_id":"t1","namespace":"default","stream":"s"}`))
		sub.frame()
		events := c.acceptEvents()
		events.frame()
		s := c.openUni()
		s.frames(authFrame(token), good,
			raw.JSON(`{"type":"publish","tenant_id":"t1","namespace":"default","stream":"s","payload":"eA==","ack":"none"}`),
			raw.JSON(`{"type":"publish_batch","tenant_id":"t1","namespace":"default","stream":"s","payloads":["eA==","eA=="],"ack":"none"}`))
		s.fin()
		for got := 0; got < 4; {
			e, err := raw.ParseEvents(events.frame())
			if err != nil {
				c.t.Fatal(err)
			}
			got += len(e.Records)
		}
	})
}
