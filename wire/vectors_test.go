package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const vectorDir = "../conformance/vectors"

// A vector is one golden frame.
type vector struct {
	Name        string
	Kind        string
	Flags       uint16
	Status      string
	RequestID   *uint64  `json:"request_id"`
	AckMode     string   `json:"ack_mode"`
	KeyUTF8     *string  `json:"key_utf8"`
	Tenant      string   `json:"tenant_id"`
	Namespace   string   `json:"namespace"`
	Stream      string   `json:"stream"`
	Payloads    []string `json:"payloads_utf8"`
	PayloadJSON string   `json:"payload_json"`
	PayloadHex  string   `json:"payload_hex"`
	FrameHex    string   `json:"frame_hex"`
	Expect      string

	frame []byte
}

func loadVectors(t testing.TB, dir string) []vector {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.hex"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no vectors in %s: %v", dir, err)
	}
	var vectors []vector
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		description, err := os.ReadFile(strings.TrimSuffix(path, ".hex") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var v vector
		if err := json.Unmarshal(description, &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if v.frame, err = hex.DecodeString(strings.TrimSpace(string(text))); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if hex.EncodeToString(v.frame) != v.FrameHex {
			t.Fatalf("%s: the two files disagree", path)
		}
		vectors = append(vectors, v)
	}
	return vectors
}

// allVectors is every vector, malformed ones too.
func allVectors(t testing.TB) []vector {
	return append(loadVectors(t, vectorDir), loadVectors(t, filepath.Join(vectorDir, "derived"))...)
}

// decodeFrame reads one frame the way a peer would, and encodes it again.
func decodeFrame(frame []byte) (decoded any, again []byte, err error) {
	h, payload, err := NewFrameReader(bytes.NewReader(frame), MaxFramePayload).Next()
	if err != nil {
		return nil, nil, err
	}
	switch h.Flags.Kind() {
	case FrameJSON:
		m, err := ParseMessage(payload)
		if err != nil {
			return nil, nil, err
		}
		return m, AppendMessage(nil, m), nil
	case FramePublish:
		var p Publish
		if err := ParsePublish(h.Flags, payload, &p); err != nil {
			return nil, nil, err
		}
		return p, p.Append(nil), nil
	case FrameAck:
		var a Ack
		if err := ParseAck(h.Flags, payload, &a); err != nil {
			return nil, nil, err
		}
		return a, a.Append(nil), nil
	case FrameEvents:
		var e EventBatch
		if err := ParseEventBatch(h.Flags, payload, &e); err != nil {
			return nil, nil, err
		}
		return e, e.Append(nil), nil
	}
	return nil, nil, ErrFlags
}

func TestVectors(t *testing.T) {
	originals := loadVectors(t, vectorDir)
	if len(originals) != 17 {
		t.Errorf("%d original vectors, want 17", len(originals))
	}
	refused := 0
	for _, v := range allVectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			decoded, again, err := decodeFrame(v.frame)
			if v.Expect == "error" {
				refused++
				if err == nil {
					t.Fatalf("accepted as %+v", decoded)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again, v.frame) {
				t.Errorf("decoded as %+v\nencoded %x\nwant    %x", decoded, again, v.frame)
			}
			v.check(t, decoded)
		})
	}
	if refused != 16 {
		t.Errorf("%d malformed vectors, want 16", refused)
	}
}

// check compares what was decoded with the vector's description.
func (v *vector) check(t *testing.T, decoded any) {
	t.Helper()
	switch d := decoded.(type) {
	case Message:
		if got := string(AppendMessage(nil, d)[HeaderSize:]); got != v.PayloadJSON {
			t.Errorf("payload %s, want %s", got, v.PayloadJSON)
		}
	case Publish:
		if string(d.Tenant) != v.Tenant || string(d.Namespace) != v.Namespace || string(d.Stream) != v.Stream {
			t.Errorf("names %s/%s/%s", d.Tenant, d.Namespace, d.Stream)
		}
		if d.Acked != (v.RequestID != nil) || d.Acked && (d.RequestID != *v.RequestID || d.AckMode.String() != v.AckMode) {
			t.Errorf("acked %v, request %d, mode %v", d.Acked, d.RequestID, d.AckMode)
		}
		if d.Keyed != (v.KeyUTF8 != nil) || d.Keyed && string(d.Key) != *v.KeyUTF8 {
			t.Errorf("keyed %v, key %q", d.Keyed, d.Key)
		}
		var payloads []string
		for _, p := range d.Block.All() {
			payloads = append(payloads, string(p))
		}
		if strings.Join(payloads, "|") != strings.Join(v.Payloads, "|") || d.Block.Count() != len(v.Payloads) {
			t.Errorf("payloads %q, want %q", payloads, v.Payloads)
		}
	case Ack:
		if d.Failed != (v.Status == "error") || d.RequestID != *v.RequestID {
			t.Errorf("failed %v, request %d", d.Failed, d.RequestID)
		}
	case EventBatch:
		if d.Count() != 2 {
			t.Errorf("%d events, want 2", d.Count())
		}
	}
}

// loadSamples is one canonical payload per message, or more.
func loadSamples(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(vectorDir, "derived", "json_samples.json"))
	if err != nil {
		t.Fatal(err)
	}
	var samples struct{ Messages []struct{ JSON string } }
	if err := json.Unmarshal(text, &samples); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range samples.Messages {
		list = append(list, m.JSON)
	}
	return list
}

func TestJSONSamples(t *testing.T) {
	seen := map[string]bool{}
	for _, sample := range loadSamples(t) {
		m, err := ParseMessage([]byte(sample))
		if err != nil {
			t.Errorf("%s: %v", sample, err)
			continue
		}
		if _, unknown := m.(*Unknown); unknown {
			t.Errorf("%s: unknown type", sample)
		}
		seen[m.MessageType()] = true
		if got := string(AppendMessage(nil, m)[HeaderSize:]); got != sample {
			t.Errorf("encoded %s\nwant    %s", got, sample)
		}
	}
	for typ := range catalogue(t) {
		if !seen[typ] {
			t.Errorf("no sample of %s", typ)
		}
	}
}

// TestPrefixes cuts every vector at every byte: a stream that ends there is an
// error, and a payload that ends there too.
func TestPrefixes(t *testing.T) {
	for _, v := range allVectors(t) {
		for n := range v.frame {
			if decoded, _, err := decodeFrame(v.frame[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes decoded as %+v", v.Name, n, len(v.frame), decoded)
			}
		}
		if v.Expect == "error" {
			continue
		}
		h, err := ParseHeader(v.frame)
		if err != nil {
			t.Fatal(err)
		}
		payload := v.frame[HeaderSize:]
		for n := range payload {
			short := append(AppendHeader(nil, h.Flags, n), payload[:n]...)
			if decoded, _, err := decodeFrame(short); err == nil {
				t.Errorf("%s: payload of %d of %d bytes decoded as %+v", v.Name, n, len(payload), decoded)
			}
		}
	}
}

func TestRoutingVectors(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(vectorDir, "routing.json"))
	if err != nil {
		t.Fatal(err)
	}
	type frozen struct {
		Shards uint32
		Key    *string `json:"key_utf8"`
		Shard  uint32
	}
	var vectors struct {
		Frozen struct {
			Modulo []frozen
			Jump   []frozen `json:"jump_hash"`
		} `json:"frozen_from_original_tests"`
		Derived []struct {
			Key       string `json:"key_hex"`
			FNV       string `json:"fnv1a"`
			Finalized string
			Modulo    map[uint32]uint32
			Jump      map[uint32]uint32 `json:"jump_hash"`
		}
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	checked := 0
	check := func(key []byte, keyed bool, shards uint32, r Routing, want uint32) {
		checked++
		if got := ShardOf(key, keyed, shards, r); got != want {
			t.Errorf("%v of %q in %d: shard %d, want %d", r, key, shards, got, want)
		}
	}
	for r, list := range map[Routing][]frozen{Modulo: vectors.Frozen.Modulo, JumpHash: vectors.Frozen.Jump} {
		for _, f := range list {
			if f.Key == nil {
				check(nil, false, f.Shards, r, f.Shard)
			} else {
				check([]byte(*f.Key), true, f.Shards, r, f.Shard)
			}
		}
	}
	for _, d := range vectors.Derived {
		key, err := hex.DecodeString(d.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(u64(fnv1a(key))); got != d.FNV {
			t.Errorf("FNV-1a of %x: %s, want %s", key, got, d.FNV)
		}
		if got := hex.EncodeToString(u64(HashKey(key))); got != d.Finalized {
			t.Errorf("hash of %x: %s, want %s", key, got, d.Finalized)
		}
		for n, want := range d.Modulo {
			check(key, true, n, Modulo, want)
		}
		for n, want := range d.Jump {
			check(key, true, n, JumpHash, want)
		}
	}
	if checked < 100 {
		t.Errorf("only %d values checked", checked)
	}
}
