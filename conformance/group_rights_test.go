package conformance

import (
	"strings"
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/conformance/raw"
)

// TestGroupNamesAndShards: what is not there, and what is not durable, for
// each request of a group.
func TestGroupNamesAndShards(t *testing.T) {
	c := newGolden(t)
	c.node.CreateStreamWith("ring", broker.StreamOptions{Shards: 1})
	s := c.session()
	for _, m := range groupRequests {
		for replaced, with := range map[string][2]string{
			`"stream":"s"`: {`"stream":"nowhere"`, `{"type":"error","message":"TEXT","code":"not_found","retry":"retry_after"}`},
			`"shard":0`:    {`"shard":4294967295`, invalid},
			`"group":"g"`:  {`"group":"a/b"`, invalid},
		} {
			s.exchange(exchange{strings.Replace(m, replaced, with[0], 1), with[1]})
		}
		s.exchange(
			exchange{strings.Replace(m, `"stream":"s"`, `"stream":"ring"`, 1), invalid},
			exchange{strings.Replace(m, `"group":"g"`, `"group":""`, 1), invalid},
		)
	}
	s.wantAlive()
}

// TestGroupRights: what each grant allows (wire 12.3, 17.2).
func TestGroupRights(t *testing.T) {
	c := newGolden(t, standing)
	c.session().publish(1)
	manages := map[string]bool{"group_discard": true, "group_redrive": true, "group_seek": true, "group_delete": true}
	for _, tc := range []struct {
		grants          []string
		consume, manage bool
	}{
		{[]string{"group.consume:group:t1/default/s/g"}, true, false},
		{[]string{"group.manage:group:t1/default/s/g"}, false, true},
		{[]string{"group.consume:group:t1/default/s/g", "group.manage:group:t1/default/s/*"}, true, true},
		{[]string{"group.consume:group:t1/*"}, true, false},
		{[]string{"group.consume:group:t1/default/s/other", "group.manage:group:t1/default/wide/g"}, false, false},
		{[]string{"stream.subscribe:stream:t1/default/s"}, true, false},
		{[]string{"stream.manage:stream:t1/default/s"}, false, true},
		{[]string{"stream.subscribe:stream:t1/*", "stream.manage:stream:t1/*"}, true, true},
		{[]string{"stream.publish:stream:t1/*", "cache.read:cache:t1/*", "stream.subscribe:stream:t1/default/wide"}, false, false},
		// A grant on a group scopes: the stream's grant no longer counts.
		{[]string{"stream.subscribe:stream:t1/*", "group.consume:group:t1/default/s/other"}, false, false},
		{[]string{"stream.subscribe:stream:t1/*", "group.consume:group:t1/default/wide/other"}, true, false},
	} {
		t.Run(strings.Join(tc.grants, ","), func(t *testing.T) {
			c := c.in(t)
			for _, m := range groupRequests {
				kind := raw.JSON(m).Type()
				allowed := tc.consume
				if manages[kind] {
					allowed = tc.manage
				}
				s := c.session(tc.grants...)
				s.frames(raw.JSON(m))
				f := s.frame()
				if forbidden := f.String("code") == "forbidden"; forbidden == allowed {
					t.Errorf("%s answered %s", kind, f.Describe())
				}
				if !allowed {
					s.wantEnd()
				}
			}
		})
	}
}
