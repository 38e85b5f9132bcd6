package conformance

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// standing makes claims that do not lapse in any test.
var standing = felixtest.WithSetting("group-visibility-timeout-ms", "600000")

// A groupTalk is a stream on which one group is talked about.
type groupTalk struct {
	*rawStream
	group string
	id    uint64
}

// inGroup are the members every request of a group begins with.
func inGroup(stream, group string) string {
	return fmt.Sprintf(`"tenant_id":"t1","namespace":"default","stream":%q,"shard":0,"group":%q,`, stream, group)
}

// talk is about a group of stream "s".
func (s *rawStream) talk(group string) *groupTalk { return &groupTalk{rawStream: s, group: group} }

// request is a request of the group under a fresh id.
func (g *groupTalk) request(kind, members string) string {
	g.id++
	if members != "" {
		members += ","
	}
	return fmt.Sprintf(`{"type":"group_%s",%s%s"request_id":%d}`, kind, inGroup("s", g.group), members, g.id)
}

// want sends a request and compares the answer byte for byte; ID stands for the
// request's id and TEXT for the prose of a message.
func (g *groupTalk) want(kind, members, answer string) {
	g.t.Helper()
	m := g.request(kind, members)
	g.exchange(exchange{m, strings.ReplaceAll(answer, "ID", fmt.Sprint(g.id))})
}

// poll takes what there is, at most so many records, and checks which came,
// each as offset or offset x attempts: "0 1x2".
func (g *groupTalk) poll(most int, want string) {
	g.t.Helper()
	g.frames(raw.JSON(g.request("poll", fmt.Sprintf(`"max_records":%d,"wait_ms":0`, most))))
	if got := records(g.t, g.frame()); got != want {
		g.t.Fatalf("polled %q, not %q", got, want)
	}
}

// records are the offsets of a group_records, each with its attempts unless
// that is one.
func records(t *testing.T, f raw.Frame) string {
	t.Helper()
	if f.Type() != "group_records" {
		t.Fatalf("answer to a poll: %s", f.Describe())
	}
	var words []string
	list, _ := f.Object()["records"].([]any)
	for _, r := range list {
		m := r.(map[string]any)
		word := fmt.Sprint(m["offset"])
		if attempts := fmt.Sprint(m["attempts"]); attempts != "1" {
			word += "x" + attempts
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

const (
	cacheOK  = `{"type":"cache_ok","request_id":ID}`
	invalid  = `{"type":"error","message":"TEXT","code":"invalid_request","retry":"fatal"}`
	tooLate  = `{"type":"error","message":"TEXT","code":"stale_claim","retry":"fatal"}`
	tooSoon  = `{"type":"error","message":"TEXT","code":"stale_claim","retry":"retry"}`
	unlisted = `{"type":"error","message":"TEXT","code":"not_found","retry":"fatal"}`
)

func ofOffset(offset uint64) string { return fmt.Sprintf(`"offset":%d`, offset) }

func position(offset uint64, moved bool) string {
	return fmt.Sprintf(`{"type":"group_position","offset":%d,"moved":%v,"request_id":ID}`, offset, moved)
}

func deadLetters(offsets string) string {
	return fmt.Sprintf(`{"type":"group_dead_letter_list","offsets":[%s],"request_id":ID}`, offsets)
}

// publish appends that many records of one byte to stream "s".
func (s *rawStream) publish(count int) {
	s.t.Helper()
	payload := base64.StdEncoding.EncodeToString([]byte("x"))
	list := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%q,", payload), count), ",")
	s.frames(raw.JSON(fmt.Sprintf(`{"type":"publish_batch",%s"payloads":[%s],"request_id":1}`, inStream, list)))
	if f := s.frame(); f.Type() != "publish_ok" {
		s.t.Fatalf("publish: %s", f.Describe())
	}
}

// TestGroupRules: what each request of a group does, by wire 12.2, each case
// with a group of its own on five records.
func TestGroupRules(t *testing.T) {
	c := newGolden(t, standing)
	c.session().publish(5)
	for name, test := range map[string]func(g *groupTalk){
		"poll": func(g *groupTalk) {
			g.poll(2, "0 1")
			g.poll(1000, "2 3 4")
			g.poll(1000, "")
			g.want("poll", `"max_records":1`, `{"type":"group_records","records":[],"request_id":ID}`)
		},
		"poll in full": func(g *groupTalk) {
			g.want("poll", `"max_records":2,"wait_ms":18446744073709551615,"consumer":"w","reclaim":true,"visibility_ms":18446744073709551615`,
				`{"type":"group_records","records":[{"offset":0,"payload":"eA==","attempts":1},{"offset":1,"payload":"eA==","attempts":1}],"request_id":ID}`)
		},
		"poll that is refused": func(g *groupTalk) {
			for _, members := range []string{
				`"max_records":0,"wait_ms":0`,
				`"max_records":1,"consumer":""`,
				`"max_records":1,"consumer":"` + strings.Repeat("w", 129) + `"`,
				`"max_records":1,"consumer":"","reclaim":true`,
			} {
				g.want("poll", members, invalid)
			}
			g.want("poll", `"max_records":1,"consumer":"`+strings.Repeat("w", 128)+`"`,
				`{"type":"group_records","records":[{"offset":0,"payload":"eA==","attempts":1}],"request_id":ID}`)
		},
		"ack": func(g *groupTalk) {
			g.want("ack", ofOffset(0), invalid) // never handed out
			g.poll(3, "0 1 2")
			g.want("ack", ofOffset(1), cacheOK) // ahead of a gap
			g.want("ack", ofOffset(1), cacheOK)
			g.want("ack", ofOffset(0), cacheOK)
			g.want("ack", ofOffset(0), cacheOK) // below the cursor
			g.want("ack", ofOffset(3), invalid)
			for _, past := range []uint64{5, 6, 1 << 63, 1<<64 - 1} {
				g.want("ack", ofOffset(past), invalid)
			}
			g.poll(9, "3 4")
		},
		"nack": func(g *groupTalk) {
			g.want("nack", ofOffset(0), invalid)
			g.poll(3, "0 1 2")
			g.want("nack", ofOffset(1), cacheOK)
			g.want("nack", ofOffset(2)+`,"attempts":1`, cacheOK)
			g.want("nack", ofOffset(2)+`,"attempts":1`, tooLate) // handed back already
			g.poll(2, "1x2 2x2")                                 // before what is new
			g.want("nack", ofOffset(2)+`,"attempts":1`, tooLate)
			g.want("nack", ofOffset(2)+`,"attempts":3`, tooLate)
			g.want("nack", ofOffset(2)+`,"attempts":2,"delay_ms":0`, cacheOK)
			g.poll(1, "2x3")
			g.want("ack", ofOffset(2), cacheOK)
			g.want("nack", ofOffset(2)+`,"attempts":3`, tooLate)
			g.want("nack", ofOffset(2), cacheOK) // finished: harmless
			g.want("nack", ofOffset(5), invalid)
			g.poll(9, "3 4")
		},
		"nack with a delay": func(g *groupTalk) {
			g.poll(5, "0 1 2 3 4")
			for offset := range uint64(5) {
				g.want("nack", ofOffset(offset)+`,"attempts":1,"delay_ms":18446744073709551615`, cacheOK)
			}
			g.poll(9, "")
			// A delayed record is nobody's claim, and in play all the same.
			g.want("extend", ofOffset(0)+`,"attempts":1,"extend_ms":1000`, tooLate)
			g.want("nack", ofOffset(0)+`,"attempts":1`, tooLate)
			g.want("ack", ofOffset(0), cacheOK)
			g.want("dead_letter", ofOffset(1), cacheOK)
			g.want("nack", ofOffset(2), cacheOK)
			g.poll(9, "2x2")
		},
		"extend": func(g *groupTalk) {
			g.poll(2, "0 1")
			extended := func(ms uint64) string {
				return fmt.Sprintf(`{"type":"group_extended","visible_ms":%d,"request_id":ID}`, ms)
			}
			g.want("extend", ofOffset(0)+`,"attempts":1,"extend_ms":60000`, extended(60000))
			g.want("extend", ofOffset(0)+`,"attempts":1,"extend_ms":1`, extended(1))
			g.want("extend", ofOffset(1)+`,"attempts":1,"extend_ms":18446744073709551615`, extended(12*60*60*1000))
			g.want("extend", ofOffset(1)+`,"attempts":1,"extend_ms":0`, invalid)
			g.want("extend", ofOffset(1)+`,"attempts":2,"extend_ms":1000`, tooLate)
			g.want("nack", ofOffset(1), cacheOK)
			g.want("extend", ofOffset(1)+`,"attempts":1,"extend_ms":1000`, tooLate)
			g.want("ack", ofOffset(1), cacheOK)
			g.want("extend", ofOffset(1)+`,"attempts":1,"extend_ms":1000`, tooLate)
			// Neither handed out nor there.
			for _, offset := range []uint64{4, 5} {
				g.frames(raw.JSON(g.request("extend", ofOffset(offset)+`,"attempts":1,"extend_ms":1000`)))
				if f := g.frame(); f.String("retry") != "fatal" || f.String("code") != "stale_claim" && f.String("code") != "invalid_request" {
					g.t.Errorf("extend of %d: %s", offset, f.Describe())
				}
			}
		},
		"dead_letter": func(g *groupTalk) {
			g.want("dead_letters", "", deadLetters(""))
			g.want("dead_letter", ofOffset(0), invalid)
			g.poll(4, "0 1 2 3")
			g.want("dead_letter", ofOffset(3), cacheOK)
			g.want("dead_letter", ofOffset(0), cacheOK)
			g.want("nack", ofOffset(1), cacheOK)
			g.want("dead_letter", ofOffset(1), cacheOK) // owed
			g.want("dead_letters", "", deadLetters("0,1,3"))
			g.want("dead_letter", ofOffset(3), invalid) // finished
			g.want("ack", ofOffset(2), cacheOK)
			g.want("dead_letter", ofOffset(2), invalid)
			g.want("dead_letter", ofOffset(5), invalid)
			g.want("ack", ofOffset(3), cacheOK) // harmless
			g.poll(9, "4")
		},
		"discard and redrive": func(g *groupTalk) {
			g.want("discard", ofOffset(0), unlisted)
			g.want("redrive", ofOffset(0), unlisted)
			g.poll(4, "0 1 2 3")
			for _, offset := range []uint64{0, 1, 2} {
				g.want("dead_letter", ofOffset(offset), cacheOK)
			}
			g.want("discard", ofOffset(1), cacheOK)
			g.want("discard", ofOffset(1), unlisted)
			g.want("redrive", ofOffset(1), unlisted)
			g.want("redrive", ofOffset(2), cacheOK)
			g.want("dead_letters", "", deadLetters("0"))
			g.want("redrive", ofOffset(2), cacheOK) // it is on its way
			g.want("discard", ofOffset(2), unlisted)
			// Attempts begin anew, and owed comes before new.
			g.poll(1, "2")
			g.want("nack", ofOffset(2)+`,"attempts":1`, cacheOK)
			g.poll(1, "2x2")
			g.want("dead_letter", ofOffset(2), cacheOK)
			g.want("dead_letters", "", deadLetters("0,2"))
			g.want("discard", ofOffset(1<<64-1), unlisted)
			g.poll(9, "4")
		},
		"the limit of attempts": func(g *groupTalk) {
			g.poll(1, "0")
			for attempt := 1; attempt < 5; attempt++ {
				g.want("nack", ofOffset(0)+fmt.Sprintf(`,"attempts":%d`, attempt), cacheOK)
				g.poll(1, fmt.Sprintf("0x%d", attempt+1))
			}
			g.want("dead_letters", "", deadLetters(""))
			g.want("nack", ofOffset(0)+`,"attempts":5`, cacheOK)
			g.want("dead_letters", "", deadLetters("0"))
			g.poll(1, "1")
		},
		"seek": func(g *groupTalk) {
			g.want("seek", `"start":{"offset":2},"if_new":true`, position(2, true))
			g.want("seek", `"start":"latest","if_new":true`, position(2, false))
			g.poll(2, "2 3")
			g.want("dead_letter", ofOffset(3), cacheOK)
			g.want("seek", `"start":"earliest"`, position(0, true))
			// The claim is void: of this side of the cursor nothing is known.
			g.frames(raw.JSON(g.request("ack", ofOffset(2))))
			if f := g.frame(); f.String("code") != "stale_claim" {
				g.t.Errorf("ack of before the seek: %s", f.Describe())
			}
			g.want("nack", ofOffset(2)+`,"attempts":1`, tooLate)
			g.want("extend", ofOffset(2)+`,"attempts":1,"extend_ms":1000`, tooLate)
			g.want("dead_letters", "", deadLetters("3"))
			g.poll(9, "0 1 2 3 4")
			g.want("seek", `"start":"latest","if_new":false`, position(5, true))
			g.want("ack", ofOffset(1), cacheOK) // below the cursor: a duplicate
			g.poll(9, "")
			g.want("seek", `"start":{"offset":5}`, position(5, true))
			g.want("seek", `"start":{"offset":6}`, invalid)
			g.want("seek", `"start":{"offset":18446744073709551615}`, invalid)
			g.want("seek", `"start":{"offset":4}`, position(4, true))
			g.poll(9, "4")
		},
		"seek of a group that has handed out": func(g *groupTalk) {
			g.poll(2, "0 1")
			g.want("seek", `"start":"latest","if_new":true`, position(0, false))
			g.want("ack", ofOffset(0), cacheOK)
			g.want("seek", `"start":"latest","if_new":true`, position(1, false))
		},
		"delete": func(g *groupTalk) {
			g.want("delete", "", `{"type":"group_deleted","existed":false,"request_id":ID}`)
			g.poll(3, "0 1 2")
			g.want("ack", ofOffset(0), cacheOK)
			g.want("dead_letter", ofOffset(1), cacheOK)
			g.want("delete", "", `{"type":"group_deleted","existed":true,"request_id":ID}`)
			g.want("delete", "", `{"type":"group_deleted","existed":false,"request_id":ID}`)
			g.want("dead_letters", "", deadLetters(""))
			g.want("seek", `"start":"earliest","if_new":true`, position(0, true))
			g.poll(9, "0 1 2 3 4")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := c.in(t).session().talk(strings.ReplaceAll(name, " ", "_"))
			test(g)
			g.wantAlive()
		})
	}
}

// TestSettlesAfterARestart: what the node still takes from workers whose claims
// it has forgotten, and what it tells them to send again.
func TestSettlesAfterARestart(t *testing.T) {
	c := newGolden(t, standing)
	g := c.session().talk("g")
	g.publish(4)
	g.poll(3, "0 1 2")
	g.want("ack", ofOffset(0), cacheOK)
	c.node.Restart()
	c = dialRaw(t, c.node)
	g = c.session().talk("g")
	g.want("nack", ofOffset(1)+`,"attempts":1`, tooLate)
	g.publish(1)
	g.want("extend", ofOffset(1)+`,"attempts":1,"extend_ms":1000`, tooLate)
	g.want("ack", ofOffset(0), cacheOK)
	g.want("ack", ofOffset(1), cacheOK)
	// It came after the group was read anew, and nobody was given it since.
	g.want("ack", ofOffset(4), tooSoon)
	g.want("ack", ofOffset(5), invalid)
	g.poll(9, "2x2 3 4")
	g.want("ack", ofOffset(4), cacheOK)
}
