package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// TestGroupDescribe: group_info, with what the protocol has and with what we
// add, which others pass over.
func TestGroupDescribe(t *testing.T) {
	c := newGolden(t, standing)
	g := c.session().talk("g")
	describe := func(members string, want map[string]string) {
		t.Helper()
		g.frames(raw.JSON(g.request("describe", members)))
		f := g.frame()
		if f.Type() != "group_info" {
			t.Fatalf("answer to describe: %s", f.Describe())
		}
		got := f.Object()
		for name, value := range want {
			have, there := got[name]
			if value == "" && there || value != "" && (!there || canonical(t, raw.JSON(have).Payload) != canonical(t, []byte(value))) {
				t.Errorf("%s is %v (there: %v), not %s, in %s", name, have, there, value, f.Describe())
			}
		}
	}
	describe("", map[string]string{"committed": "", "tail": "0", "in_flight": "0", "owed": "0", "dead_letters": "0", "held": "", "held_next": ""})
	g.publish(6)
	describe("", map[string]string{"committed": "", "tail": "6", "in_flight": "0", "owed": "0", "dead_letters": "0"})
	g.poll(5, "0 1 2 3 4")
	g.want("ack", ofOffset(0), cacheOK)
	g.want("nack", ofOffset(2), cacheOK)
	g.want("nack", ofOffset(3)+`,"delay_ms":60000`, cacheOK)
	g.want("dead_letter", ofOffset(4), cacheOK)
	describe("", map[string]string{"committed": "1", "tail": "6", "in_flight": "2", "owed": "1", "dead_letters": "1",
		"high_water": "5", "max_attempts": "5", "held": "", "held_next": ""})
	describe(`"held":true,"held_limit":2`, map[string]string{"in_flight": "2", "held_next": "3"})
	describe(`"held":true,"held_from":3`, map[string]string{"held_next": ""})
	g.frames(raw.JSON(g.request("describe", `"held":true`)))
	var states []string
	list, _ := g.frame().Object()["held"].([]any)
	for _, h := range list {
		m := h.(map[string]any)
		states = append(states, fmt.Sprintf("%v %v %v", m["offset"], m["state"], m["principal"]))
	}
	// Of the one that waits for anybody nobody is the holder.
	if len(states) != 3 || states[0] != "1 claimed tester" || !strings.HasPrefix(states[1], "2 owed") || !strings.HasPrefix(states[2], "3 delayed") {
		t.Errorf("held: %q", states)
	}
}

// TestGroupRecordFields: what a record tells is what the client offered to
// read, and nothing else, byte for byte (wire 5.2).
func TestGroupRecordFields(t *testing.T) {
	c := newGolden(t, standing, felixtest.WithSetting("record-publishers", "true"))
	c.session().publish(1)
	const timestamp = `,"timestamp_micros":1700000000000000`
	for i, tc := range []struct {
		offer  uint32
		fields string
	}{
		{0, ""},
		{featureGroupSkipped, ""}, // nothing was skipped
		{featureGroupPublisher, `,"publisher":"tester"`},
		{featureRecordTimestamps, timestamp},
		{featureGroupPublisher | featureRecordTimestamps | featureGroupSkipped, `,"publisher":"tester"` + timestamp},
		{clientFeatures, ""},
	} {
		g := c.offering(tc.offer).talk(fmt.Sprintf("g%d", i))
		g.want("poll", `"max_records":1`, `{"type":"group_records","records":[{"offset":0,"payload":"eA==","attempts":1`+tc.fields+`}],"request_id":ID}`)
	}
	// An old client gets records too; a refusal has no code for it.
	old := c.legacy().talk("old")
	old.want("poll", `"max_records":1`, `{"type":"group_records","records":[{"offset":0,"payload":"eA==","attempts":1}],"request_id":ID}`)
	old.want("ack", ofOffset(7), `{"type":"error","message":"TEXT"}`)
	old.want("ack", ofOffset(0), cacheOK)
}

// offering opens a stream authenticated with these features of the first word.
func (c *rawConn) offering(features uint32) *rawStream {
	c.t.Helper()
	s := c.open()
	s.frames(raw.JSON(map[string]any{"type": "auth", "tenant_id": "t1", "token": c.node.Token(), "client_flags": clientFlags, "client_features": features}))
	if f := s.frame(); f.Type() != "auth_ok" {
		c.t.Fatalf("answer to auth: %s", f.Describe())
	}
	return s
}

// TestGroupSkipped: offsets that retention took are skipped in silence, and
// told to who offered to hear of them.
func TestGroupSkipped(t *testing.T) {
	c := newGolden(t, standing, felixtest.WithSetting("durable-segment-bytes", "4096"),
		felixtest.WithSetting("durable-retention-bytes", "16384"), felixtest.WithSetting("durable-retention-interval-seconds", "1"))
	s := c.session()
	until(t, "retention took the first record", func() error {
		s.publish(400)
		s.frames(raw.JSON(`{"type":"stream_read",` + inStream + `"shard":0,"from":0,"max_records":1,"request_id":1}`))
		if f := s.frame(); f.Type() != "subscribe_cursor_error" || f.String("reason") != "too_old" {
			return fmt.Errorf("read %s", f.Type())
		}
		return nil
	})
	first := func(s *rawStream, group string) map[string]any {
		t.Helper()
		g := s.talk(group)
		g.frames(raw.JSON(g.request("poll", `"max_records":1`)))
		list, _ := g.frame().Object()["records"].([]any)
		if len(list) != 1 {
			t.Fatal("no record")
		}
		return list[0].(map[string]any)
	}
	if r := first(c.session(), "told"); r["offset"] == nil || fmt.Sprint(r["offset"]) == "0" || fmt.Sprint(r["skipped_before"]) != fmt.Sprint(r["offset"]) {
		t.Errorf("first record %v", r)
	}
	if r := first(c.offering(clientFeatures&^featureGroupSkipped), "untold"); r["skipped_before"] != nil {
		t.Errorf("told without having offered: %v", r)
	}
}
