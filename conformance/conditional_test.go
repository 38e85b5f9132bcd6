package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
)

// TestConditionalWrites: publish_if and the expected offset of a commit (wire
// 9.7, 13), which no published client has yet, by hand.
func TestConditionalWrites(t *testing.T) {
	publishIf := func(id int, expected uint64, payload string) string {
		return fmt.Sprintf(`{"type":"publish_if",%s"payloads":[%q],"expected_offset":%d,"request_id":%d}`, inStream, payload, expected, id)
	}
	t.Run("publish_if.lands_at_the_expected_offset", func(t *testing.T) {
		s := newGolden(t).session()
		for i := range 20 {
			s.exchange(exchange{publishIf(i, uint64(i), "YQ=="), fmt.Sprintf(`{"type":"publish_ok","request_id":%d,"offset":%d}`, i, i)})
		}
	})
	t.Run("publish_if.refused_with_the_tail", func(t *testing.T) {
		c := newGolden(t)
		s := c.session()
		s.exchange(
			exchange{publishIf(1, 1, "YQ=="), `{"type":"publish_refused","request_id":1,"reason":{"offset_mismatch":{"tail":0}},"message":"TEXT"}`},
			exchange{publishIf(2, 0, "YQ=="), `{"type":"publish_ok","request_id":2,"offset":0}`},
			exchange{publishIf(3, 0, "YQ=="), `{"type":"publish_refused","request_id":3,"reason":{"offset_mismatch":{"tail":1}},"message":"TEXT"}`},
		)
		// An old client gets the refusal too, and no offset.
		c.legacy().exchange(
			exchange{publishIf(4, 0, "YQ=="), `{"type":"publish_refused","request_id":4,"reason":{"offset_mismatch":{"tail":1}},"message":"TEXT"}`},
			exchange{publishIf(5, 1, "YQ=="), `{"type":"publish_ok","request_id":5}`},
		)
	})
	t.Run("one of many lands", func(t *testing.T) {
		c := newGolden(t)
		streams := make([]*rawStream, 8)
		for i := range streams {
			streams[i] = c.session()
		}
		for round := range uint64(20) {
			for i, s := range streams {
				s.frames(raw.JSON(publishIf(i, round, "YQ==")))
			}
			landed := 0
			for i, s := range streams {
				switch f := s.frame(); string(f.Payload) {
				case fmt.Sprintf(`{"type":"publish_ok","request_id":%d,"offset":%d}`, i, round):
					landed++
				default:
					if f.Type() != "publish_refused" || !strings.Contains(string(f.Payload), fmt.Sprintf(`{"offset_mismatch":{"tail":%d}}`, round+1)) {
						t.Fatalf("round %d: %s", round, f.Describe())
					}
				}
			}
			if landed != 1 {
				t.Fatalf("round %d: %d of %d landed", round, landed, len(streams))
			}
		}
	})
	t.Run("commit.expected_offset_refuses_a_stale_write", func(t *testing.T) {
		commit := func(id int, expected uint64, value string) string {
			return fmt.Sprintf(`{"type":"commit",%s"entity_key":"azc=","event":"ZQ==","changes":[{"op":"put","key":"k","value":%q}],"request_id":%d,"expected_offset":%d}`, inStream, value, id, expected)
		}
		const get = `{"type":"state_get",` + inStream + `"entity_key":"azc=","key":"k","request_id":9}`
		newGolden(t).session().exchange(
			exchange{commit(1, 0, "YQ=="), `{"type":"commit_ok","request_id":1,"offset":0}`},
			exchange{`{"type":"publish",` + inStream + `"payload":"","request_id":2}`, `{"type":"publish_ok","request_id":2,"offset":1}`},
			exchange{commit(3, 1, "Yg=="), `{"type":"publish_refused","request_id":3,"reason":{"offset_mismatch":{"tail":2}},"message":"TEXT"}`},
			exchange{get, `{"type":"state_value","value":"YQ==","version":0,"as_of":0,"request_id":9}`},
			exchange{commit(4, 2, "Yg=="), `{"type":"commit_ok","request_id":4,"offset":2}`},
			exchange{get, `{"type":"state_value","value":"Yg==","version":2,"as_of":2,"request_id":9}`},
		)
	})
}
