package conformance

import (
	"os"
	"strings"
	"testing"
)

// A status says where a scenario of the catalogue stands.
type status struct {
	id       string
	required bool
	// test is the Go test that has it: with a client before a recorder or a
	// breaking link, or by hand what no published client can do; "" for those
	// of the scripts.
	test string
}

// catalogue is the list of wire 22.4.
var catalogue = []status{
	{"pubsub.roundtrip", true, ""},
	{"pubsub.order", true, ""},
	{"pubsub.offsets_are_contiguous", true, ""},
	{"pubsub.resume_from_offset", true, ""},
	{"pubsub.start_earliest", true, ""},
	{"cache.put_get", true, ""},
	{"cache.miss_is_absent", true, ""},
	{"cache.delete_returns_previous", true, ""},
	{"cache.ttl_expires", true, ""},
	{"counter.add_returns_sum", true, ""},
	{"counter.get_absent_is_none", true, ""},
	{"reconnect.survives_broker_loss", true, ""},
	{"reconnect.discovers_brokers_from_one_seed", true, "TestClientBrokerLoss"},
	{"reconnect.subscription_resumes_at_the_next_offset", true, "TestClientSubscriptionEnds"},
	{"redirect.follows_to_the_shard_owner", true, "TestClientRedirects"},
	{"redirect.carries_the_start_offset_through_every_hop", true, "TestClientRedirects"},
	{"redirect.is_not_reported_as_a_failure", true, "TestClientRedirects"},
	{"retry.terminal_failures_are_not_retried", true, "TestClientPublishAnswers"},
	{"retry.ambiguous_outcomes_are_not_silently_retried", true, "TestClientPublishAnswers"},
	{"retry.idempotent_producers_re_send_ambiguous_outcomes", false, "TestProducerResends"},
	{"retry.transport_failures_are_retried_against_another_broker", false, "TestClientBrokerLoss"},
	{"ack.none_does_not_wait_for_the_broker", true, ""},
	{"ack.per_message_means_the_broker_accepted_it", true, ""},
	{"ack.at_least_once_may_duplicate_and_says_so", false, "TestClientPublishAnswers"},
	{"ack.carries_the_offset", false, "TestClientPublishAnswers"},
	{"ack.duplicate_reports_the_original_offset", false, "TestIdempotentProducer"},
	{"ack.offset_negotiated", false, ""},
	{"error.unknown_stream_is_typed", true, ""},
	{"error.unauthorized_is_typed", true, ""},
	{"error.bad_offset_is_typed", false, ""},
	{"error.shard_unavailable_is_retryable", true, "TestClientPublishAnswers"},
	{"error.quorum_timeout_is_outcome_unknown", true, "TestClientPublishAnswers"},
	{"client.concurrent_calls", true, ""},
	{"client.close_is_idempotent", true, ""},
	{"client.subscription_ends_cleanly", true, ""},
	{"fault.publish_through_a_dropped_link", true, "TestClientFaults"},
	{"fault.publish_through_a_reset_link", true, "TestClientFaults"},
	{"fault.publish_through_a_stalled_link", true, "TestClientFaults"},
	{"fault.subscription_through_a_dropped_link", true, "TestClientFaults"},
	{"fault.subscription_through_a_reset_link", true, "TestClientFaults"},
	{"fault.subscription_through_a_stalled_link", true, "TestClientFaults"},
	{"fault.cache_through_a_reset_link", true, "TestClientFaults"},
	{"queue.poll_returns_claimed_records", true, ""},
	{"queue.acknowledged_records_are_not_redelivered", true, ""},
	{"queue.unacknowledged_records_are_redelivered", true, ""},
	{"queue.dead_letters_are_listable_and_redrivable", false, ""},
	{"watch.delivers_changes_for_the_filter", true, ""},
	{"watch.deletes_arrive_as_changes_without_values", true, ""},
	{"watch.resumes_from_an_offset", true, ""},
	{"watch.lag_is_reported_rather_than_silent", true, "TestClientLag"},
	{"watch.retained_delivers_state_before_changes", false, ""},
	{"sharded.delivers_every_shard", true, ""},
	{"sharded.reports_the_shard_count", true, ""},
	{"sharded.resumes_per_shard", false, ""},
	{"sharded.a_lost_shard_is_surfaced", false, ""},
	{"commit.returns_the_offset", true, ""},
	{"commit.state_get_returns_the_version", true, ""},
	{"commit.expected_offset_refuses_a_stale_write", false, "TestConditionalWrites"},
	{"publish_if.lands_at_the_expected_offset", false, "TestConditionalWrites"},
	{"publish_if.refused_with_the_tail", false, "TestConditionalWrites"},
	{"commit.another_stream_is_refused", true, ""},
}

// TestCatalogue keeps the catalogue, the tests and docs/interop.md in step:
// every scenario has a test, and the document says which.
func TestCatalogue(t *testing.T) {
	text, err := os.ReadFile("../docs/interop.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	scripted := make(map[string]string)
	for _, s := range scripts {
		for _, id := range s.scenarios {
			if scripted[id] != "" {
				t.Errorf("%s is in two scripts", id)
			}
			scripted[id] = s.file
			if !strings.Contains(doc, "`"+id+"`") {
				t.Errorf("docs/interop.md does not name %s of %s", id, s.file)
			}
		}
	}
	for _, s := range catalogue {
		if (scripted[s.id] != "") == (s.test != "") {
			t.Errorf("%s: run by a script or by a Go test: exactly one must hold (%q, %q)", s.id, scripted[s.id], s.test)
		}
		row := "| `" + s.id + "`"
		if s.required {
			row = "| **`" + s.id + "`**"
		}
		i := strings.Index(doc, row)
		if i < 0 {
			t.Errorf("docs/interop.md has no row %s", row)
			continue
		}
		line, _, _ := strings.Cut(doc[i:], "\n")
		if !strings.Contains(line, "`"+scripted[s.id]+s.test+"`") {
			t.Errorf("docs/interop.md says otherwise of %s: %s", s.id, line)
		}
	}
}
