package wire

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestStrictJSON holds payloads of a cache_ok with request id 1 against what
// they are.
func TestStrictJSON(t *testing.T) {
	table := []struct {
		payload string
		ok      bool
	}{
		{`{"type":"cache_ok","request_id":1}`, true},
		{" \t\r\n{ \"type\" : \"cache_ok\" , \"request_id\" : 1 } \n", true},
		{`{"request_id":1,"type":"cache_ok"}`, true},
		{`{"request_id":1,"x":{"type":"ok"},"type":"cache_ok"}`, true},
		{`{"\u0074ype":"cache_\u006fk","request\u005fid":1}`, true},
		{`{"type":"cache_ok","request_id":1,"x":[],"y":{},"z":[1,-2.5e+3,"\u00e9",true,false,null,{"a":[{}]}]}`, true},
		{`{"type":"cache_ok","x":1,"request_id":1,"x":2}`, true}, // an unknown member twice
		{`{"x":0,"type":"cache_ok","request_id":1}`, true},

		{``, false}, {` `, false}, {`{`, false}, {`{}`, false}, {`[]`, false}, {`null`, false}, {`"ok"`, false}, {`1`, false},
		{`not json`, false},
		{`{"request_id":1}`, false},
		{`{"type":null,"request_id":1}`, false},
		{`{"type":7,"request_id":1}`, false},
		{`{"type":"cache_ok"}`, false},
		{`{"type":"cache_ok","request_id":1}x`, false},
		{`{"type":"cache_ok","request_id":1}{}`, false},
		{"{\"type\":\"cache_ok\",\"request_id\":1}\x00", false},
		{"\ufeff" + `{"type":"cache_ok","request_id":1}`, false},
		{"\v" + `{"type":"cache_ok","request_id":1}`, false},
		{`{"type":"cache_ok","request_id":1,}`, false},
		{`{,"type":"cache_ok","request_id":1}`, false},
		{`{"type":"cache_ok",,"request_id":1}`, false},
		{`{"type":"cache_ok" "request_id":1}`, false},
		{`{"type":"cache_ok","request_id" 1}`, false},
		{`{"type":"cache_ok","request_id":}`, false},
		{`{'type':'cache_ok','request_id':1}`, false},
		{`{type:"cache_ok",request_id:1}`, false},
		{`{"type":"cache_ok","request_id":1,"type":"cache_ok"}`, false},
		{`{"request_id":1,"type":"cache_ok","type":"cache_ok"}`, false},
		{`{"type":"cache_ok","request_id":1,"request_id":1}`, false},
		{`{"type":"cache_ok","request_id":1,"request_id":2}`, false},
		{`{"Type":"cache_ok","request_id":1}`, false},
		{`{"type":"cache_ok","Request_ID":1}`, false},
		{`{"type":"cache_ok","request_id":1,"x":tru}`, false},
		{`{"type":"cache_ok","request_id":1,"x":nul}`, false},
		{`{"type":"cache_ok","request_id":1,"x":01}`, false},
		{`{"type":"cache_ok","request_id":1,"x":1.}`, false},
		{`{"type":"cache_ok","request_id":1,"x":.5}`, false},
		{`{"type":"cache_ok","request_id":1,"x":1e}`, false},
		{`{"type":"cache_ok","request_id":1,"x":-}`, false},
		{`{"type":"cache_ok","request_id":1,"x":+1}`, false},
		{`{"type":"cache_ok","request_id":1,"x":[1,]}`, false},
		{`{"type":"cache_ok","request_id":1,"x":[,1]}`, false},
		{`{"type":"cache_ok","request_id":1,"x":[1 2]}`, false},
		{`{"type":"cache_ok","request_id":1,"x":[1}}`, false},
		{`{"type":"cache_ok","request_id":1,"x":{"a"}}`, false},
		{`{"type":"cache_ok","request_id":1,"x":{"a":1,}}`, false},
		{`{"type":"cache_ok","request_id":1,"x":{1:1}}`, false},
		{`{"type":"cache_ok","request_id":1,"x":{"a":1]}`, false},
		{`{"type":"cache_ok","request_id":1 /* no */}`, false},
	}
	for _, row := range table {
		m, err := ParseMessage([]byte(row.payload))
		if row.ok {
			if ok, is := m.(*CacheOK); err != nil || !is || ok.RequestID != 1 {
				t.Errorf("%s: %+v, %v", row.payload, m, err)
			}
			continue
		}
		if _, unknown := m.(*Unknown); !errors.Is(err, ErrMalformed) || unknown || m != nil {
			t.Errorf("%s: %+v, %v", row.payload, m, err)
		}
	}
}

func TestUnsignedNumbers(t *testing.T) {
	table := []struct {
		text string
		want uint64
		ok   bool
	}{
		{"0", 0, true}, {"1", 1, true}, {"10", 10, true},
		{"9007199254740992", 1 << 53, true}, {"9007199254740993", 1<<53 + 1, true},
		{"9223372036854775807", math.MaxInt64, true}, {"9223372036854775808", 1 << 63, true},
		{"18364758544493064720", 18364758544493064720, true},
		{"18446744073709551615", math.MaxUint64, true},
		{"18446744073709551616", 0, false}, {"18446744073709551620", 0, false},
		{"28446744073709551615", 0, false}, {"99999999999999999999999", 0, false},
		{"1e30", 0, false}, {"-1", 0, false}, {"-0", 0, false}, {"1.5", 0, false}, {"1.0", 0, false},
		{"1e3", 0, false}, {"1E3", 0, false}, {"0e0", 0, false}, {"0.0", 0, false},
		{"01", 0, false}, {"00", 0, false}, {"+1", 0, false}, {"1_000", 0, false}, {"0x1", 0, false},
		{`"5"`, 0, false}, {"true", 0, false}, {"[]", 0, false}, {"{}", 0, false}, {"NaN", 0, false}, {"Infinity", 0, false},
	}
	for _, row := range table {
		payload := []byte(`{"type":"cache_put","tenant_id":"t","namespace":"n","cache":"c","key":"k","value":"","ttl_ms":` + row.text + `}`)
		m, err := ParseMessage(payload)
		if row.ok {
			if err != nil || m.(*CachePut).TTLMS != Some(row.want) {
				t.Errorf("ttl_ms %s: %+v, %v", row.text, m, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("ttl_ms %s: %+v, %v", row.text, m, err)
		}
	}
	for _, text := range []string{"null", ""} {
		member := `,"ttl_ms":` + text
		if text == "" {
			member = ""
		}
		m, err := ParseMessage([]byte(`{"type":"cache_put","tenant_id":"t","namespace":"n","cache":"c","key":"k","value":""` + member + `}`))
		if err != nil || m.(*CachePut).TTLMS.Set {
			t.Errorf("ttl_ms %q: %+v, %v", text, m, err)
		}
	}
	for _, row := range []struct {
		member string
		ok     bool
	}{
		{`"client_flags":65535`, true}, {`"client_flags":65536`, false}, {`"client_flags":-1`, false},
		{`"client_features":4294967295`, true}, {`"client_features":4294967296`, false},
	} {
		_, err := ParseMessage([]byte(`{"type":"auth","tenant_id":"t","token":"x",` + row.member + `}`))
		if (err == nil) != row.ok {
			t.Errorf("%s: %v", row.member, err)
		}
	}
}

func TestSignedNumbers(t *testing.T) {
	table := []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"-0", 0, true}, {"-2", -2, true}, {"9007199254740993", 1<<53 + 1, true},
		{"9223372036854775807", math.MaxInt64, true}, {"-9223372036854775808", math.MinInt64, true},
		{"9223372036854775808", 0, false}, {"-9223372036854775809", 0, false},
		{"18446744073709551616", 0, false}, {"-18446744073709551616", 0, false},
		{"- 1", 0, false}, {"--1", 0, false}, {"-01", 0, false}, {"-", 0, false}, {"1.0", 0, false}, {"-1e1", 0, false}, {`"1"`, 0, false}, {"null", 0, false},
	}
	for _, row := range table {
		m, err := ParseMessage([]byte(`{"type":"counter_add","tenant_id":"t","namespace":"n","cache":"c","key":"k","delta":` + row.text + `,"request_id":1}`))
		if row.ok {
			if err != nil || m.(*CounterAdd).Delta != row.want {
				t.Errorf("delta %s: %+v, %v", row.text, m, err)
			}
		} else if !errors.Is(err, ErrMalformed) {
			t.Errorf("delta %s: %+v, %v", row.text, m, err)
		}
	}
	for _, v := range []int64{math.MinInt64, math.MaxInt64, -1, 0} {
		m, err := ParseMessage(AppendMessage(nil, &CounterValue{Value: Some(v)})[HeaderSize:])
		if err != nil || m.(*CounterValue).Value != Some(v) {
			t.Errorf("value %d: %+v, %v", v, m, err)
		}
	}
}

func TestStrings(t *testing.T) {
	accepted := map[string]string{
		``:                               "",
		`plain`:                          "plain",
		`a\"b\\c\/d\b\f\n\r\t`:           "a\"b\\c/d\b\f\n\r\t",
		`\u0000\u001f\u00e9\uFFFF`:       "\x00\x1f\u00e9\uffff",
		`\ud83d\ude00`:                   "\U0001F600",
		`x\uD83D\uDE00y`:                 "x\U0001F600y",
		"é\u2028\u2029\U0001F600\x7f":    "é\u2028\u2029\U0001F600\x7f",
		"long enough to need é \\n more": "long enough to need é \n more",
		"\ufffd":                         "\ufffd",
		`<&>`:                            "<&>",
	}
	for text, want := range accepted {
		m, err := ParseMessage([]byte(`{"type":"error","message":"` + text + `"}`))
		if err != nil || m.(*Error).Message != want {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
	refused := []string{
		"\n", "\x00", "\x1f", "padding.\x01", `\x41`, `\'`, `\u12`, `\u12g4`, `\u 123`, `\`,
		`\ud800`, `\udc00`, `\ud800x`, `\ud800\n`, `\ud800\ud800`, `\udc00\ud800`, `\ud800\u0041`,
		"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\xaf", "\xf4\x90\x80\x80", "long enough to be \xe2\x28\xa1 seen",
	}
	for _, text := range refused {
		for _, payload := range []string{
			`{"type":"error","message":"` + text + `"}`,
			`{"type":"error","message":"m","ignored":"` + text + `"}`,
			`{"type":"error","message":"m","ignored":[{"` + text + `":0}]}`,
			`{"type":"error","message":"m","` + text + `":0}`,
			`{"` + text + `":0,"type":"error","message":"m"}`,
		} {
			if m, err := ParseMessage([]byte(payload)); !errors.Is(err, ErrMalformed) {
				t.Errorf("%q: %+v, %v", payload, m, err)
			}
		}
	}
}

// TestStringEncoding: as the original writes strings, and always valid.
func TestStringEncoding(t *testing.T) {
	table := map[string]string{
		"plain <&> é \u2028\u2029 \x7f \U0001F600": "plain <&> é \u2028\u2029 \x7f \U0001F600",
		"\"\\/":                        `\"\\/`,
		"\b\f\n\r\t":                   `\b\f\n\r\t`,
		"\x00\x01\x0b\x1f":             `\u0000\u0001\u000b\u001f`,
		"bad \xff\xc3 end\xed\xa0\x80": "bad \ufffd\ufffd end\ufffd\ufffd\ufffd",
		"\ufffd kept":                  "\ufffd kept",
	}
	for v, want := range table {
		got := string(AppendMessage(nil, &Error{Message: v})[HeaderSize:])
		if got != `{"type":"error","message":"`+want+`"}` {
			t.Errorf("%q: %s", v, got)
		}
		key := string(AppendMessage(nil, &CacheEvent{Key: []byte(v)})[HeaderSize:])
		if !strings.Contains(key, `"key":"`+want+`"`) {
			t.Errorf("%q: %s", v, key)
		}
		if !json.Valid([]byte(got)) || !json.Valid([]byte(key)) {
			t.Errorf("%q: not valid JSON", v)
		}
	}
}

func TestBase64(t *testing.T) {
	accepted := map[string]string{
		``: "", `YQ==`: "a", `YWI=`: "ab", `YWJj`: "abc", `/+7/`: "\xff\xee\xff", `\/+7\/`: "\xff\xee\xff", `\u0059Q==`: "a",
	}
	for text, want := range accepted {
		m, err := ParseMessage([]byte(`{"type":"cache_event","key":"k","value":"` + text + `","offset":1}`))
		if err != nil || string(m.(*CacheEvent).Value.Value) != want || !m.(*CacheEvent).Value.Set {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
	refused := []string{
		`YQ`, `YQ=`, `YQ===`, `YR==`, `YWJ=`, `YWI`, `Y`, `=`, `====`, `YQ==YQ==`, `YQ== `, ` YQ==`, `Y Q==`,
		`YQ==\n`, `YW\nJj`, `\nYWJj`, `YW\r\nJj`, `YW\u000aJj`, `_-7_`, `YWJj\u0000`, `é===`,
	}
	for _, text := range refused {
		if m, err := ParseMessage([]byte(`{"type":"cache_event","key":"k","value":"` + text + `","offset":1}`)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
		if m, err := ParseMessage([]byte(`{"type":"publish_batch","tenant_id":"t","namespace":"n","stream":"s","payloads":["","` + text + `"]}`)); !errors.Is(err, ErrMalformed) {
			t.Errorf("batch of %s: %+v, %v", text, m, err)
		}
	}
}

func TestUnknown(t *testing.T) {
	table := []struct {
		payload string
		want    Unknown
	}{
		{`{"type":"frobnicate"}`, Unknown{Type: "frobnicate"}},
		{`{"type":""}`, Unknown{}},
		{`{"type":"CACHE_OK","request_id":1}`, Unknown{"CACHE_OK", 1, true}},
		{`{"type":"x","request_id":18446744073709551615,"y":[1.5]}`, Unknown{"x", math.MaxUint64, true}},
		{`{"request_id":7,"type":"x"}`, Unknown{"x", 7, true}},
		{`{"type":"x","request_id":18446744073709551616}`, Unknown{Type: "x"}},
		{`{"type":"x","request_id":-1}`, Unknown{Type: "x"}},
		{`{"type":"x","request_id":1.5}`, Unknown{Type: "x"}},
		{`{"type":"x","request_id":1e3}`, Unknown{Type: "x"}},
		{`{"type":"x","request_id":"7"}`, Unknown{Type: "x"}},
		{`{"type":"x","request_id":null}`, Unknown{Type: "x"}},
		{`{"type":"x","request_id":{"a":[7]}}`, Unknown{Type: "x"}},
	}
	for _, row := range table {
		m, err := ParseMessage([]byte(row.payload))
		if err != nil || !reflect.DeepEqual(m, &row.want) {
			t.Errorf("%s: %+v, %v", row.payload, m, err)
			continue
		}
		again, err := ParseMessage(AppendMessage(nil, m)[HeaderSize:])
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%s: encoded and decoded as %+v, %v", row.payload, again, err)
		}
	}
	for _, payload := range []string{`{"type":"x","request_id":01}`, `{"type":"x","request_id":1.}`, `{"type":"x","request_id":}`} {
		if m, err := ParseMessage([]byte(payload)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", payload, m, err)
		}
	}
}

func TestExtensionBody(t *testing.T) {
	for _, body := range []string{
		`1.10`, `-0.0`, `1e400`, `123456789012345678901234567890.123456789`, `"\u00e9\/"`, `true`, `[ 1 , 2 ]`, `{"b":1,"a":{"b":2},"b":3}`, `""`, `0`,
	} {
		payload := `{"type":"extension","name":"n","body":` + body + `}`
		m, err := ParseMessage([]byte(payload))
		if err != nil || string(m.(*Extension).Body) != body {
			t.Errorf("%s: %+v, %v", body, m, err)
			continue
		}
		if got := string(AppendMessage(nil, m)[HeaderSize:]); got != payload {
			t.Errorf("encoded %s, want %s", got, payload)
		}
	}
	m, err := ParseMessage([]byte(`{"type":"extension","name":"n","body":null}`))
	if err != nil || m.(*Extension).Body != nil {
		t.Errorf("null body: %+v, %v", m, err)
	}
	for _, body := range []string{`{`, `1 2`, `nul`, ``, `[1,]`, `"a`} {
		got := string(AppendMessage(nil, &Extension{Name: "n", Body: json.RawMessage(body)})[HeaderSize:])
		if got != `{"type":"extension","name":"n"}` {
			t.Errorf("a body of %s was written: %s", body, got)
		}
	}
}

func TestPublishRefusedReasons(t *testing.T) {
	for _, reason := range []string{
		`"sequence_gap"`, `"offset_mismatch"`, `"not_leader"`, `"other"`, `null`, `7`, `{}`, `[]`,
		`{"unknown_producer":{}}`, `{"other":{}}`, `{"sequence_gap":{}}`, `{"sequence_gap":{"expected":-1}}`, `{"sequence_gap":3}`,
		`{"sequence_gap":{"expected":1},"offset_mismatch":{"tail":1}}`, `{"offset_mismatch":{"tail":1},"sequence_gap":{"expected":1}}`,
		`{"sequence_gap":{"expected":1},"sequence_gap":{"expected":1}}`, `{"not_leader":{}}`,
	} {
		payload := `{"type":"publish_refused","request_id":3,"reason":` + reason + `,"message":"m"}`
		if m, err := ParseMessage([]byte(payload)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", reason, m, err)
		}
	}
	m, err := ParseMessage([]byte(`{"type":"publish_refused","request_id":3,"reason":{"not_leader":{"x":1,"addr":null,"node_id":"b"}},"message":"m"}`))
	want := &PublishRefused{RequestID: 3, Reason: RefusedReason{Kind: RefusedNotLeader, NodeID: "b"}, Message: "m"}
	if err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestPlain puts every byte at every place of a long string: the eight-at-a-time
// search must stop where a byte-at-a-time one does.
func TestPlain(t *testing.T) {
	for n := range 26 {
		for at := range n + 1 {
			for c := range 256 {
				data := []byte(strings.Repeat("\x7f ", 13)[:n])
				want, stop := n, byte(0)
				if at < n {
					data[at] = byte(c)
					if c < ' ' || c == '"' || c == '\\' || c >= 0x80 {
						want, stop = at, byte(c)
					}
				}
				if got, gotStop := plain(data, 0); got != want || gotStop != stop {
					t.Fatalf("%q: stops at %d on %q, want %d on %q", data, got, gotStop, want, stop)
				}
			}
		}
	}
}
