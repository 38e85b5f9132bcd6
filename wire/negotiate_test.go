package wire

import (
	"reflect"
	"strings"
	"testing"
)

func parse(t *testing.T, payload string) Message {
	t.Helper()
	m, err := ParseMessage([]byte(payload))
	if err != nil {
		t.Fatalf("%s: %v", payload, err)
	}
	return m
}

func written(m Message) string { return string(AppendMessage(nil, m)[HeaderSize:]) }

func TestOffers(t *testing.T) {
	table := map[string]Offer{
		`{"type":"auth","tenant_id":"t","token":"x"}`:                                                                         LegacyOffer(),
		`{"type":"auth","tenant_id":"t","token":"x","client_features":2048}`:                                                  {Flags: 7, Features: FeatureErrorCodes},
		`{"type":"auth","tenant_id":"t","token":"x","client_flags":25}`:                                                       {Flags: 25, HasFlags: true},
		`{"type":"auth","tenant_id":"t","token":"x","client_flags":0}`:                                                        {HasFlags: true},
		`{"type":"auth","tenant_id":"t","token":"x","client_flags":8191,"client_features":4218945535,"client_features_hi":1}`: {Flags: 0x1FFF, Features: 0xFB77FFFF, FeaturesHi: FeatureInspect, HasFlags: true},
		`{"type":"auth","tenant_id":"t","token":"x","client_flags":1,"client_features":1,"client_features_hi":1}`:             {Flags: 1, Features: 1, HasFlags: true}, // no marker
		`{"type":"auth_ok","server_flags":25}`:                                                                                {Flags: 25, HasFlags: true},
		`{"type":"auth_ok","server_flags":25,"server_features":2147483649,"server_features_hi":1}`:                            {Flags: 25, Features: 0x80000001, FeaturesHi: 1, HasFlags: true},
		`{"type":"auth_ok","server_flags":25,"server_features":1,"server_features_hi":1}`:                                     {Flags: 25, Features: 1, HasFlags: true},
	}
	for payload, want := range table {
		var got Offer
		switch m := parse(t, payload).(type) {
		case *Auth:
			got = m.Offer()
		case *AuthOK:
			got = m.Offer()
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", payload, got, want)
		}
	}
	current := Offer{Flags: 0x1FFF, Features: 0x7B77FFFF, FeaturesHi: FeatureInspect, HasFlags: true}
	if got := written(current.Auth("t1", "TOKEN")); got != `{"type":"auth","tenant_id":"t1","token":"TOKEN","client_flags":8191,"client_features":4218945535,"client_features_hi":1}` {
		t.Errorf("auth %s", got)
	}
	if got := written(LegacyOffer().Auth("t1", "TOKEN")); got != `{"type":"auth","tenant_id":"t1","token":"TOKEN"}` {
		t.Errorf("legacy auth %s", got)
	}
	broker := Offer{Flags: KnownFlags, Features: KnownFeatures, FeaturesHi: FeatureInspect, HasFlags: true}
	ok := broker.AuthOK(Offer{HasFlags: true, Features: KnownFeatures})
	ok.PublishWindow = Some[uint32](256)
	if got := written(ok); got != `{"type":"auth_ok","server_flags":32767,"server_features":2147483647,"publish_window":256}` {
		t.Errorf("auth_ok without the marker: %s", got)
	}
	if got := broker.AuthOK(Offer{HasFlags: true, Features: FeatureExtended}).Offer(); got != (Offer{KnownFlags, KnownFeatures | FeatureExtended, FeatureInspect, true}) {
		t.Errorf("auth_ok with the marker: %+v", got)
	}
	plain := Offer{Flags: KnownFlags, Features: 1, HasFlags: true}
	if got := written(plain.AuthOK(Offer{HasFlags: true, Features: FeatureExtended})); got != `{"type":"auth_ok","server_flags":32767,"server_features":1}` {
		t.Errorf("auth_ok with an empty second word: %s", got)
	}
}

func TestOfferQuestions(t *testing.T) {
	var none Offer
	for _, f := range []Flags{FlagPublishBatch, FlagEventBatch, FlagEventBatchShared} {
		if !none.HasFlag(f) {
			t.Errorf("flag %#04x needs no offer", uint16(f))
		}
	}
	o := Offer{Flags: FlagEventOffsets | FlagEventSkipped, Features: FeaturePublishPipeline | FeatureRedirect}
	if o.HasFlag(FlagAckCode) || !o.HasFlag(FlagEventOffsets|FlagEventSkipped) || o.HasFlag(FlagEventOffsets|FlagAckCode) {
		t.Error("HasFlag")
	}
	if !o.Has(FeatureRedirect) || o.Has(FeatureRedirect|FeatureTopology) || o.HasHi(FeatureInspect) {
		t.Error("Has")
	}
	if o.Pipelined() {
		t.Error("a window is granted without client_flags")
	}
	o.HasFlags = true
	if !o.Pipelined() || (Offer{HasFlags: true}).Pipelined() {
		t.Error("Pipelined")
	}
	all := FlagEventBatch | FlagEventOffsets | FlagEventSkipped | FlagEventPublisher | FlagEventTimestamps
	for _, row := range []struct{ offered, want Flags }{
		{KnownFlags, all},
		{OriginalFlags, FlagEventBatch},
		{0, FlagEventBatch},
		{FlagEventOffsets, FlagEventBatch | FlagEventOffsets},
		{FlagEventSkipped, FlagEventBatch}, // needs offsets
		{FlagEventPublisher, FlagEventBatch | FlagEventPublisher},
		{0x1FFF, FlagEventBatch | FlagEventOffsets | FlagEventSkipped},
	} {
		if got := (Offer{Flags: row.offered}).EventFlags(all); got != row.want || got.Kind() != FrameEvents {
			t.Errorf("offered %#04x: %#04x, want %#04x", uint16(row.offered), uint16(got), uint16(row.want))
		}
	}
}

// TestFailureShapes walks wire 16.3: what each client gets of one refusal.
func TestFailureShapes(t *testing.T) {
	queueFull := Failure{
		Code: CodeOverloaded, Message: "publish queue full; retry in 10 ms",
		Detail: Detail{Reason: "publish_queue_full", RetryAfterMS: 10},
	}
	nothing, codes := LegacyOffer(), Offer{Features: FeatureErrorCodes}
	for _, row := range []struct {
		got  Message
		want string
	}{
		{nothing.Error(queueFull), `{"type":"error","message":"publish queue full; retry in 10 ms"}`},
		{codes.Error(queueFull), `{"type":"error","message":"publish queue full; retry in 10 ms","code":"overloaded","retry":"retry_after","detail":{"reason":"publish_queue_full","retry_after_ms":10}}`},
		{nothing.PublishError(2, queueFull), `{"type":"publish_error","request_id":2,"message":"publish queue full; retry in 10 ms"}`},
		{codes.PublishError(2, queueFull), `{"type":"publish_error","request_id":2,"message":"publish queue full; retry in 10 ms","code":"overloaded","retry":"retry_after","detail":{"reason":"publish_queue_full","retry_after_ms":10}}`},
		{codes.Error(Failure{Code: CodeForbidden, Message: "forbidden"}), `{"type":"error","message":"forbidden","code":"forbidden","retry":"fatal"}`},
		{codes.Error(Failure{Code: CodeStorage, Class: Retry, Message: "m"}), `{"type":"error","message":"m","code":"storage","retry":"retry"}`},
		{codes.Error(Failure{Message: "m"}), `{"type":"error","message":"m"}`},
		{codes.NotLeader(&NotLeader{NodeID: "b", Addr: Some("10.0.0.5:5000")}), `{"type":"error","message":"not the leader of this shard; it is b at 10.0.0.5:5000","code":"not_leader","retry":"redirect"}`},
		{nothing.NotLeader(&NotLeader{NodeID: "b"}), `{"type":"error","message":"not the leader of this shard; it is b"}`},
		{Offer{Features: FeatureRedirect}.NotLeader(&NotLeader{NodeID: "b", Generation: 7}), `{"type":"not_leader","node_id":"b","generation":7}`},
	} {
		if got := written(row.got); got != row.want {
			t.Errorf("%s\nwant %s", got, row.want)
		}
	}
	for _, row := range []struct{ offered, want Flags }{
		{OriginalFlags, 0x0010},
		{FlagAckCode, 0x0210},
		{FlagAckCode | FlagAckDetail, 0x0610},
		{FlagAckDetail, 0x0010}, // needs the code
		{KnownFlags, 0x0610},
	} {
		a := Offer{Flags: row.offered}.FailedAck(9, queueFull)
		if a.HasCode != row.want.Has(FlagAckCode) || a.HasDetail != row.want.Has(FlagAckDetail) {
			t.Errorf("offered %#04x: %+v", uint16(row.offered), a)
		}
		f, payload := cut(t, a.Append(nil))
		var got Ack
		if err := ParseAck(f, payload, &got); err != nil || f != row.want || !got.Failed || got.RequestID != 9 || got.Message != queueFull.Message {
			t.Errorf("offered %#04x: %#04x %+v, %v", uint16(row.offered), uint16(f), got, err)
		}
	}
	bare := Offer{Flags: KnownFlags}.FailedAck(9, Failure{Message: "m"})
	if bare.Flags() != FlagPublishAck {
		t.Errorf("a refusal without a code: %#04x", uint16(bare.Flags()))
	}
	for _, row := range []struct{ offered, want Flags }{
		{OriginalFlags, 0x0010}, {FlagAckOffset, 0x1010}, {FlagAckOwner, 0x0090}, {KnownFlags, 0x1090},
	} {
		a := Ack{HasOwner: true, HasOffset: true}
		Offer{Flags: row.offered}.ShapeAck(&a)
		if a.Flags() != row.want {
			t.Errorf("offered %#04x: %#04x", uint16(row.offered), uint16(a.Flags()))
		}
	}
	if LegacyOffer().AckOffset(0).Set || (Offer{Flags: FlagAckOffset}).AckOffset(0) != Some[uint64](0) {
		t.Error("AckOffset")
	}
}

func TestUnsupportedShapes(t *testing.T) {
	reads := Offer{Features: FeatureUnsupported}
	answer, ok := reads.Unsupported(&Unknown{Type: "frobnicate", RequestID: 7, HasRequestID: true})
	if !ok || written(answer) != `{"type":"unsupported","request_type":"frobnicate","request_id":7}` {
		t.Errorf("%v: %s", ok, written(answer))
	}
	if _, ok := LegacyOffer().Unsupported(&Unknown{Type: "frobnicate"}); ok {
		t.Error("a client that does not read unsupported is sent it")
	}
	answer, ok = reads.UnsupportedExtension(&Extension{Name: "acme.ping"})
	if !ok || written(answer) != `{"type":"unsupported","request_type":"extension","extension":"acme.ping"}` {
		t.Errorf("%v: %s", ok, written(answer))
	}
	long := strings.Repeat("é", 1<<20)
	answer, _ = reads.Unsupported(&Unknown{Type: long})
	other, _ := reads.UnsupportedExtension(&Extension{Name: long})
	if len(written(answer)) > 400 || len(written(other)) > 400 || !strings.HasPrefix(long, answer.RequestType) {
		t.Errorf("answers of %d and %d bytes", len(written(answer)), len(written(other)))
	}
}

func TestReceivedFailures(t *testing.T) {
	for payload, want := range map[string]Failure{
		`{"type":"error","message":"m"}`:                                                          {Message: "m"},
		`{"type":"error","message":"m","code":"overloaded"}`:                                      {Code: CodeOverloaded, Name: "overloaded", Class: RetryAfter, Message: "m"},
		`{"type":"error","message":"m","code":"overloaded","retry":"outcome_unknown"}`:            {Code: CodeOverloaded, Name: "overloaded", Class: OutcomeUnknown, Message: "m"},
		`{"type":"error","message":"m","code":"novel","retry":"retry","detail":{"reason":"r"}}`:   {Name: "novel", Class: Retry, Message: "m", Detail: Detail{Reason: "r"}},
		`{"type":"error","message":"m","code":"novel","retry":"sometimes"}`:                       {Name: "novel", Class: Fatal, Message: "m"},
		`{"type":"error","message":"m","code":"novel"}`:                                           {Name: "novel", Class: Fatal, Message: "m"},
		`{"type":"error","message":"m","retry":"retry"}`:                                          {Class: Retry, Message: "m"},
		`{"type":"publish_error","request_id":1,"message":"m","code":"draining","retry":"retry"}`: {Code: CodeDraining, Name: "draining", Class: Retry, Message: "m"},
	} {
		var got Failure
		switch m := parse(t, payload).(type) {
		case *Error:
			got = m.Failure()
		case *PublishError:
			got = m.Failure()
		}
		if got != want {
			t.Errorf("%s: %+v", payload, got)
		}
	}
	for _, row := range []struct {
		ack  Ack
		want Failure
	}{
		{Ack{Failed: true, Message: "m"}, Failure{Message: "m"}},
		{Ack{Failed: true, Message: "m", HasCode: true, Code: 999, Retry: 99}, Failure{Code: 999, Name: "code_999", Class: Fatal, Message: "m"}},
		{Ack{Failed: true, HasCode: true, Code: CodeQuorumTimeout, Retry: OutcomeUnknown, HasDetail: true, Detail: Detail{"r", 5}}, Failure{Code: CodeQuorumTimeout, Name: "quorum_timeout", Class: OutcomeUnknown, Detail: Detail{"r", 5}}},
	} {
		if got := row.ack.Failure(); !reflect.DeepEqual(got, row.want) {
			t.Errorf("%+v: %+v", row.ack, got)
		}
	}
}

func TestOptional(t *testing.T) {
	var none Optional[int]
	if _, set := none.Get(); set || none.Or(7) != 7 {
		t.Error("an absent value")
	}
	if v, set := Some(0).Get(); v != 0 || !set || Some(0).Or(7) != 0 {
		t.Error("a present zero")
	}
}
