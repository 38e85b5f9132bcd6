package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func seedJSON(f *testing.F) {
	for _, sample := range loadSamples(f) {
		f.Add([]byte(sample))
	}
	for _, v := range allVectors(f) {
		if v.PayloadJSON != "" {
			f.Add([]byte(v.PayloadJSON))
		}
	}
	f.Add([]byte(`{"x":[1,{"y":"\ud83d\ude00"}],"type":"cache_get","tenant_id":"\u0074","namespace":"","cache":"é","key":"\n","request_id":null}`))
	f.Add([]byte(`{"type":"new","request_id":1.5,"a":[[[[]]]]}`))
}

// FuzzMessage: a message that reads is valid JSON, is written in one canonical
// way, and reads the same again; a Decoder agrees in everything.
func FuzzMessage(f *testing.F) {
	seedJSON(f)
	var warm Decoder
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := ParseMessage(payload)
		decoded, decodeErr := warm.Decode(payload)
		if err != nil {
			if m != nil || !errors.Is(err, ErrMalformed) {
				t.Errorf("%+v, %v", m, err)
			}
			if decodeErr == nil || decodeErr.Error() != err.Error() {
				t.Errorf("ParseMessage %v, Decode %v", err, decodeErr)
			}
			return
		}
		if decodeErr != nil || !reflect.DeepEqual(decoded, m) {
			t.Errorf("ParseMessage %+v, Decode %+v, %v", m, decoded, decodeErr)
		}
		if !json.Valid(payload) || !utf8.Valid(payload) {
			t.Errorf("accepted %q", payload)
		}
		again := AppendMessage(nil, m)[HeaderSize:]
		if !json.Valid(again) || !utf8.Valid(again) {
			t.Errorf("%q written as %q", payload, again)
		}
		second, err := ParseMessage(again)
		if err != nil {
			t.Fatalf("%q written as %q: %v", payload, again, err)
		}
		if third := AppendMessage(nil, second)[HeaderSize:]; !bytes.Equal(third, again) {
			t.Errorf("%q written as %q, then as %q", payload, again, third)
		}
	})
}

// The frequent messages as encoding/json sees them.
type jsonFrequent struct {
	Type      *string `json:"type"`
	Tenant    *string `json:"tenant_id"`
	Namespace *string `json:"namespace"`
	Cache     *string `json:"cache"`
	Key       *string `json:"key"`
	Value     *string `json:"value"`
	RequestID *uint64 `json:"request_id"`
	TTLMS     *uint64 `json:"ttl_ms"`
	Version   *uint64 `json:"version"`
	Offset    *uint64 `json:"offset"`
	Applied   *bool   `json:"applied"`
	Condition any     `json:"condition"`
}

// FuzzAgainstEncodingJSON holds the scanner and the reading of the frequent
// messages against the standard library: what reads here reads there with the
// same values, and what is refused here although the library takes it is refused
// for a known reason.
func FuzzAgainstEncodingJSON(f *testing.F) {
	seedJSON(f)
	f.Fuzz(func(t *testing.T, payload []byte) {
		s := scanner{data: payload}
		valid := s.skip() == "" && s.peek() == 0 && s.pos == len(payload)
		if valid != json.Valid(payload) && !stricter(payload) {
			t.Errorf("%q: valid %v here, %v there", payload, valid, json.Valid(payload))
		}
		m, err := ParseMessage(payload)
		var there jsonFrequent
		thereErr := json.Unmarshal(payload, &there)
		if err != nil {
			return
		}
		if new(Decoder).owned(m.MessageType()) == nil || otherMembers(payload, m) {
			return
		}
		if thereErr != nil {
			t.Fatalf("%q: accepted here; there %v", payload, thereErr)
		}
		text := func(name string, got string, want *string) {
			if want == nil || got != *want {
				t.Errorf("%q: %s is %q", payload, name, got)
			}
		}
		number := func(name string, got Optional[uint64], want *uint64) {
			if got.Set != (want != nil) || got.Set && got.Value != *want {
				t.Errorf("%q: %s is %+v", payload, name, got)
			}
		}
		value := func(got []byte, want *string) {
			if want == nil || base64.StdEncoding.EncodeToString(got) != *want {
				t.Errorf("%q: value is %x", payload, got)
			}
		}
		names := func(tenant, namespace, cache string, key []byte) {
			text("tenant_id", tenant, there.Tenant)
			text("namespace", namespace, there.Namespace)
			text("cache", cache, there.Cache)
			text("key", string(key), there.Key)
		}
		switch m := m.(type) {
		case *CacheGet:
			names(m.Tenant, m.Namespace, m.Cache, m.Key)
			number("request_id", m.RequestID, there.RequestID)
		case *CacheDelete:
			names(m.Tenant, m.Namespace, m.Cache, m.Key)
			number("request_id", m.RequestID, there.RequestID)
		case *CachePut:
			names(m.Tenant, m.Namespace, m.Cache, m.Key)
			value(m.Value, there.Value)
			number("request_id", m.RequestID, there.RequestID)
			number("ttl_ms", m.TTLMS, there.TTLMS)
		case *CachePutIf:
			names(m.Tenant, m.Namespace, m.Cache, m.Key)
			value(m.Value, there.Value)
			number("ttl_ms", m.TTLMS, there.TTLMS)
			number("request_id", Some(m.RequestID), there.RequestID)
			if m.Condition.Absent != (there.Condition == "absent") {
				t.Errorf("%q: condition is %+v", payload, m.Condition)
			}
		case *CacheDeleteIf:
			names(m.Tenant, m.Namespace, m.Cache, m.Key)
			number("version", Some(m.Version), there.Version)
			number("request_id", Some(m.RequestID), there.RequestID)
		case *CacheValue:
			names(m.Tenant, m.Namespace, m.Cache, m.Key)
			if m.Value.Set || there.Value != nil {
				value(m.Value.Value, there.Value)
			}
			number("request_id", m.RequestID, there.RequestID)
			number("version", m.Version, there.Version)
		case *CacheOK:
			number("request_id", Some(m.RequestID), there.RequestID)
		case *CacheConditionResult:
			if there.Applied == nil || m.Applied != *there.Applied {
				t.Errorf("%q: applied is %v", payload, m.Applied)
			}
			number("version", m.Version, there.Version)
			number("request_id", Some(m.RequestID), there.RequestID)
		case *GroupAck:
			text("tenant_id", m.Tenant, there.Tenant)
			text("namespace", m.Namespace, there.Namespace)
			number("offset", Some(m.Offset), there.Offset)
			number("request_id", Some(m.RequestID), there.RequestID)
		case *PublishOK:
			number("request_id", Some(m.RequestID), there.RequestID)
			number("offset", m.Offset, there.Offset)
		}
	})
}

// stricter reports why a payload the library takes may be refused here: bytes
// that are not UTF-8, a surrogate without its partner, or deep nesting.
func stricter(payload []byte) bool {
	if !utf8.Valid(payload) || bytes.Contains(bytes.ToLower(payload), []byte(`\ud`)) {
		return true
	}
	depth, deepest, inString := 0, 0, false
	for i := 0; i < len(payload); i++ {
		switch c := payload[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '[' || c == '{'):
			depth++
			deepest = max(deepest, depth)
		case !inString && (c == ']' || c == '}'):
			depth--
		}
	}
	return deepest > MaxNesting
}

// otherMembers reports members that only one side takes for a known one, or
// whose type only the library minds: names of another case, and known names that
// do not belong to the message.
func otherMembers(payload []byte, m Message) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		return true
	}
	var canonical map[string]json.RawMessage
	if json.Unmarshal(AppendMessage(nil, m)[HeaderSize:], &canonical) != nil {
		return true
	}
	frequent := reflect.TypeFor[jsonFrequent]()
	for name := range members {
		for i := range frequent.NumField() {
			known := frequent.Field(i).Tag.Get("json")
			if strings.EqualFold(known, name) && (known != name || canonical[name] == nil && string(members[name]) != "null") {
				return true
			}
		}
	}
	return false
}

// FuzzBase64: only the canonical text of some bytes is read.
func FuzzBase64(f *testing.F) {
	for _, s := range []string{"", "YQ==", "YQ", "YR==", "YWJj\n", "/+7/", "Y\r\nQ=="} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, escaped bool) {
		if !escaped && bytes.ContainsAny(text, "\r\n") {
			return // a string cannot hold them unescaped
		}
		b, p := decodeBase64([]byte("kept"), text, escaped)
		if p != "" {
			if loose, err := base64.StdEncoding.DecodeString(string(text)); err == nil && base64.StdEncoding.EncodeToString(loose) == string(text) {
				t.Errorf("%q: %s", text, p)
			}
			return
		}
		if !bytes.HasPrefix(b, []byte("kept")) || base64.StdEncoding.EncodeToString(b[4:]) != string(text) {
			t.Errorf("%q decoded as %q", text, b)
		}
	})
}

// FuzzStrings: any text survives being written and read.
func FuzzStrings(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "é\u2028\U0001F600", "\xff\xc3", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := appendString(nil, s)
		if fromBytes := appendString(nil, []byte(s)); !bytes.Equal(fromBytes, text) {
			t.Errorf("%q: %q as bytes, %q as a string", s, fromBytes, text)
		}
		want := string([]rune(s)) // bad bytes become U+FFFD, one by one
		var there string
		if err := json.Unmarshal(text, &there); err != nil || there != want {
			t.Errorf("%q: %q reads there as %q, %v", s, text, there, err)
		}
		sc := scanner{data: text}
		got, _, p := sc.text()
		if p != "" || string(got) != want || sc.pos != len(text) {
			t.Errorf("%q: %q reads as %q, %s", s, text, got, p)
		}
	})
}
