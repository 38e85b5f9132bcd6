package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/conformance/recorder"
)

// TestClientRedirects: the client follows not_leader to the owner and takes the
// start offset along (wire 15).
func TestClientRedirects(t *testing.T) {
	q := &sequence{kind: "subscribe"}
	l := newLab(t, &recorder.Script{Flags: recorder.AllFlags, Features: inMemory | featureRedirect, Handle: q.handle})
	delivers := &sequence{kind: "subscribe", answers: []func(*recorder.Stream, raw.Frame){subscribeOK(1, "", func(e *recorder.Stream) { e.Send(events(5, "found")) })}}
	owner := startRecorder(t, recorder.Options{PKI: l.server.PKI(), Script: &recorder.Script{Flags: recorder.AllFlags, Features: inMemory, Handle: delivers.handle}})
	forwards := &sequence{kind: "subscribe", answers: []func(*recorder.Stream, raw.Frame){
		say(fmt.Sprintf(`{"type":"not_leader","node_id":"c","addr":%q,"generation":2}`, owner.Addr()))}}
	hop := startRecorder(t, recorder.Options{PKI: l.server.PKI(), Script: &recorder.Script{Flags: recorder.AllFlags, Features: inMemory | featureRedirect, Handle: forwards.handle}})
	q.restart(say(fmt.Sprintf(`{"type":"not_leader","node_id":"b","addr":%q,"generation":1}`, hop.Addr())))

	t.Run("redirect.follows_to_the_shard_owner", func(t *testing.T) {
		// It is not reported as a failure either.
		if err := l.subscribe(map[string]any{"start": 5}); err != nil {
			t.Fatal(err)
		}
		if e, err := l.nextEvent("sub", patience.Seconds()); err != nil || e == nil || string(e.Payload.Bytes) != "found" {
			t.Fatalf("%v, %v", e, err)
		}
	})
	t.Run("redirect.carries_the_start_offset_through_every_hop", func(t *testing.T) {
		for _, s := range []*recorder.Server{l.server, hop, owner} {
			sent := s.Frames(func(e recorder.Entry) bool { return e.Frame.Type() == "subscribe" })
			if len(sent) != 1 || !strings.HasSuffix(string(sent[0].Frame.Payload), `"start":{"offset":5}}`) {
				t.Errorf("subscribes at one hop: %v", sent)
			}
		}
	})
}

// TestClientBrokerLoss: a broker that vanishes without a word.
func TestClientBrokerLoss(t *testing.T) {
	t.Parallel()
	pki, err := recorder.NewPKI()
	if err != nil {
		t.Fatal(err)
	}
	second := startRecorder(t, recorder.Options{PKI: pki, Script: &recorder.Script{Flags: recorder.AllFlags, Features: inMemory}})
	first := startRecorder(t, recorder.Options{PKI: pki, Script: &recorder.Script{Flags: recorder.AllFlags, Features: inMemory | featureTopology,
		Handle: func(s *recorder.Stream, f raw.Frame) bool {
			if f.Type() != "topology" {
				return false
			}
			s.Send(raw.JSON(fmt.Sprintf(`{"type":"topology_view","brokers":[{"node_id":"b","addr":%q}]}`, second.Addr())))
			return true
		}}})
	l := newLab(t, &recorder.Script{})
	ca := l.ca + ".second"
	if err := os.WriteFile(ca, pki.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.connect("c", first.Addr(), ca, nil); err != nil {
		t.Fatal(err)
	}
	t.Run("reconnect.discovers_brokers_from_one_seed", func(t *testing.T) {
		var endpoints []string
		if err := l.call(&endpoints, "c", "endpoints", nil, nil); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{first.Addr(), second.Addr()} {
			if len(endpoints) != 2 || !slices.Contains(endpoints, want) {
				t.Errorf("%v, without %s", endpoints, want)
			}
		}
	})
	t.Run("retry.transport_failures_are_retried_against_another_broker", func(t *testing.T) {
		first.Kill()
		if err := l.publish(map[string]any{"at_least_once": true}); err != nil {
			t.Fatal(err)
		}
		if n := len(second.Frames(func(e recorder.Entry) bool { return kindOf(e.Frame) == "binary publish" })); n != 1 {
			t.Errorf("%d publishes at the other broker", n)
		}
	})
}
