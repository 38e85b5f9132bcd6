package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// TestProducerResends: the published Python client has no numbered publishes;
// our own has, and is held to the scenario.
func TestProducerResends(t *testing.T) {
	t.Run("retry.idempotent_producers_re_send_ambiguous_outcomes", func(t *testing.T) {
		numbered := func(answer func(*recorder.Stream, uint64)) func(*recorder.Stream, raw.Frame) {
			return func(s *recorder.Stream, f raw.Frame) {
				p, err := raw.ParsePublish(f)
				if err != nil {
					t.Errorf("publish %s: %v", f.Describe(), err)
				}
				answer(s, p.RequestID)
			}
		}
		unknown := func(code string) func(*recorder.Stream, raw.Frame) {
			return numbered(func(s *recorder.Stream, id uint64) {
				s.Send(raw.JSON(fmt.Sprintf(`{"type":"publish_error","request_id":%d,"message":"x","code":%q,"retry":"outcome_unknown"}`, id, code)))
			})
		}
		q := &sequence{kind: "binary publish", answers: []func(*recorder.Stream, raw.Frame){
			unknown("quorum_timeout"), unknown("storage"),
			numbered(func(s *recorder.Stream, _ uint64) { s.Conn.Close(0, "gone") }),
			numbered(func(s *recorder.Stream, id uint64) {
				s.Send(raw.JSON(fmt.Sprintf(`{"type":"publish_ok","request_id":%d,"offset":41}`, id)))
			}),
		}}
		server := startRecorder(t, recorder.Options{Script: &recorder.Script{
			Flags: recorder.AllFlags, Features: withLog | featureIdempotentProducer, Handle: q.handle,
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		defer cancel()
		c, err := client.Dial(ctx, []string{server.Addr()}, client.WithTenant("t1"), client.WithToken("token"), client.WithCAPEM(server.PKI().CAPEM))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p, err := c.NewProducer(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		ack, err := p.Publish(ctx, []byte("x"))
		if err != nil || !ack.HasOffset || ack.Offset != 41 {
			t.Fatalf("%+v, %v", ack, err)
		}
		sent := server.Frames(func(e recorder.Entry) bool { return kindOf(e.Frame) == "binary publish" })
		if len(sent) != 4 {
			t.Fatalf("%d publishes", len(sent))
		}
		for _, e := range sent {
			m, err := raw.ParsePublish(e.Frame)
			if err != nil || m.Flags != 0x0109 || m.ProducerID != p.ID() || m.Sequence != 0 || string(m.Records[0]) != "x" {
				t.Errorf("sent %+v, %v", m, err)
			}
		}
	})
}
