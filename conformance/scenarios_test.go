package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/felixtest"
)

// scriptLimit bounds a whole script. Each of its scenarios has a bound of its
// own; this one catches an interpreter that does not come back.
const scriptLimit = 4 * time.Minute

// A place is the kind of node a script runs against.
type place string

const (
	inMemoryNode place = "memory"
	onDisk       place = "disk"   // with storage; it restarts cleanly
	killable     place = "killed" // felix dev on a directory; it restarts by kill -9
)

// A script is one Python file and the nodes it runs against.
type script struct {
	file   string
	places []place
	// settings of the node, by flag name; diskSettings only where it has
	// storage.
	settings, diskSettings map[string]string
	// scenarios the script must report, by id.
	scenarios []string
}

// replayRing is how many records the nodes of the scripts that look at replay
// keep in memory.
const replayRing = 64

var everywhere = []place{inMemoryNode, onDisk}

var scripts = []script{
	// First, because it takes longest.
	{file: "restart.py", places: []place{killable, onDisk}, scenarios: []string{
		"restart.acknowledged_records_are_there", "restart.unanswered_publishes_are_whole_or_absent",
		"restart.a_subscription_goes_on_where_it_was", "restart.several_clients_see_the_same",
		"restart.caches_are_there", "restart.an_entry_that_expired_meanwhile_is_gone", "restart.counters_are_there",
		"restart.commits_are_there", "restart.async",
	}},
	{file: "kill.py", places: []place{killable}, scenarios: []string{"kill.a_watch_ends_and_another_takes_up_from_its_offset"}},
	{file: "stop.py", places: []place{onDisk}, scenarios: []string{
		"stop.a_watch_goes_on", "stop.a_watch_that_saw_nothing_goes_on", "stop.an_unread_watch_goes_on",
		"stop.a_watch_misses_nothing_of_writers_who_go_on", "stop.async",
	}},
	{file: "queue_restart.py", places: []place{killable, onDisk}, scenarios: []string{
		"queue.finished_records_stay_finished", "queue.claims_of_the_node_before_may_be_settled",
		"queue.dead_letters_and_redrives_are_there", "queue.poison_and_a_node_that_dies_of_it",
		"queue.a_poll_that_waits_when_the_node_ends", "queue.workers_go_on",
	}},
	{file: "queue_lapse.py", places: []place{onDisk}, settings: map[string]string{
		"group-visibility-timeout-ms":        "800",
		"group-max-wait-ms":                  "1000",
		"durable-segment-bytes":              "4096",
		"durable-retention-bytes":            "16384",
		"durable-retention-interval-seconds": "1",
	}, scenarios: []string{
		"queue.unacknowledged_records_are_redelivered", "queue.a_client_that_is_gone_keeps_nothing",
		"queue.a_nack_after_the_lapse_is_refused", "queue.lapses_end_in_the_dead_letters",
		"queue.a_wait_is_capped_by_the_node", "queue.what_retention_took_is_skipped",
	}},
	{file: "pubsub.py", places: everywhere, scenarios: []string{
		"pubsub.roundtrip", "pubsub.iteration", "pubsub.order", "pubsub.offsets_are_contiguous",
		"pubsub.two_subscribers_agree", "pubsub.start_latest", "pubsub.start_earliest",
		"pubsub.earliest_of_an_empty_stream", "pubsub.resume_from_offset", "pubsub.resume_at_the_tail",
		"pubsub.empty_payload", "pubsub.any_bytes", "pubsub.large_payload",
	}},
	{file: "acks.py", places: everywhere, scenarios: []string{
		"ack.every_mode", "ack.every_mode_with_a_key", "ack.default_mode",
		"ack.none_does_not_wait_for_the_broker", "ack.per_message_means_the_broker_accepted_it",
		"ack.at_least_once_delivers", "ack.at_least_once_takes_no_key", "ack.many_outstanding",
	}},
	{file: "cache.py", places: everywhere, scenarios: []string{
		"cache.put_get", "cache.miss_is_absent", "cache.delete_returns_previous", "cache.ttl_expires",
		"cache.put_replaces_the_ttl", "cache.empty_value_is_not_absent", "cache.any_key_and_value",
		"cache.caches_are_apart", "cache.a_refused_key_leaves_the_client_usable",
	}},
	{file: "errors.py", places: everywhere, settings: map[string]string{
		"auto-create":         "false",
		"stream-ring-records": fmt.Sprint(replayRing),
	}, diskSettings: map[string]string{
		"durable-segment-bytes":              "4096",
		"durable-retention-bytes":            "16384",
		"durable-retention-interval-seconds": "1",
	}, scenarios: []string{
		"error.unknown_stream_is_typed", "error.unknown_stream_without_ack_is_silent",
		"error.unknown_cache_is_typed", "error.unauthorized_is_typed", "error.foreign_tenant_is_typed",
		"error.bad_token_is_typed", "error.bad_offset_is_typed", "error.too_old_offset_is_typed",
		"error.bad_names_are_refused",
	}},
	{file: "lifecycle.py", places: everywhere, scenarios: []string{
		"client.quick_start", "client.endpoints", "client.alpn", "client.concurrent_calls",
		"client.one_client_many_threads", "client.close_is_idempotent", "client.subscription_ends_cleanly",
		"client.many_subscriptions", "client.idle_connection_lives_on", "client.token_provider",
		"client.with_identity", "client.async_surface", "client.async_concurrency", "client.async_errors",
	}},
	{file: "sharded.py", places: everywhere, scenarios: []string{
		"sharded.reports_the_shard_count", "sharded.delivers_every_shard", "sharded.one_shard",
		"sharded.starts_at_earliest", "sharded.resumes_per_shard", "sharded.no_key_is_shard_zero",
		"sharded.plain_subscribe_reads_shard_zero", "sharded.key_hash",
	}},
	{file: "reconnect.py", places: []place{inMemoryNode}, scenarios: []string{
		"reconnect.survives_broker_loss", "reconnect.at_least_once_rides_over_a_restart",
		"reconnect.cache_survives_broker_loss", "reconnect.an_idle_subscription_is_not_silently_ended",
		"reconnect.a_lost_position_is_not_silently_moved", "sharded.a_lost_shard_is_surfaced",
	}},
	{file: "durable.py", places: []place{onDisk}, settings: map[string]string{
		"stream-ring-records": fmt.Sprint(replayRing),
	}, scenarios: []string{
		"ack.offset_negotiated", "ack.offsets_are_of_the_shard", "pubsub.history_is_as_long_as_the_log",
		"error.a_refused_offset_leaves_the_client_usable",
	}},
	{file: "watch.py", places: []place{onDisk}, scenarios: []string{
		"watch.delivers_changes_for_the_filter", "watch.deletes_arrive_as_changes_without_values",
		"watch.an_expiry_arrives_as_a_delete", "watch.resumes_from_an_offset", "watch.from_the_future_is_typed",
		"watch.retained_delivers_state_before_changes", "watch.resnapshots_below_what_compaction_kept",
		"watch.many_watchers_agree", "watch.iteration", "watch.several_shards", "watch.refusals_are_typed", "watch.async",
	}},
	{file: "counters.py", places: []place{onDisk}, scenarios: []string{
		"counter.add_returns_sum", "counter.get_absent_is_none", "counter.whole_range", "counter.is_no_cache_entry",
		"counter.adds_of_many_clients_all_count", "counter.refusals_are_typed", "counter.async",
	}},
	{file: "commits.py", places: []place{onDisk}, scenarios: []string{
		"commit.returns_the_offset", "commit.state_get_returns_the_version", "commit.large_values_and_any_bytes",
		"commit.entities_have_their_shards", "commit.many_at_once", "commit.refusals_are_typed", "commit.async",
		"commit.another_stream_is_refused",
	}},
	{file: "queues.py", places: []place{onDisk}, settings: map[string]string{
		"auto-create":                 "false",
		"group-visibility-timeout-ms": "600000",
	}, scenarios: []string{
		"queue.poll_returns_claimed_records", "queue.acknowledged_records_are_not_redelivered",
		"queue.settling_again_is_harmless", "queue.settling_what_nobody_has_is_typed", "queue.groups_are_apart",
		"queue.a_poll_of_nothing_is_empty", "queue.each_record_goes_to_one_client_at_a_time",
		"queue.every_shard_is_a_queue", "queue.a_member_reclaims_its_records", "queue.names_of_members_are_bounded",
		"queue.dead_letters_are_listable_and_redrivable", "queue.any_payload", "queue.a_record_too_long_for_a_poll",
		"queue.what_a_commit_enqueues_is_polled", "queue.refusals_are_typed", "queue.async",
	}},
	{file: "queue_waits.py", places: []place{onDisk}, settings: map[string]string{
		"group-visibility-timeout-ms": "600000",
	}, scenarios: []string{
		"queue.a_waiting_poll_is_woken_by_a_publish", "queue.a_waiting_poll_is_woken_by_a_nack",
		"queue.a_waiting_poll_gets_a_redriven_record", "queue.many_polls_at_once_of_one_client",
		"queue.a_cancelled_poll_takes_nothing",
	}},
	{file: "unlogged.py", places: []place{inMemoryNode}, scenarios: []string{
		"unserved.queues", "unserved.counters", "unserved.watches", "unserved.commits",
	}},
}

// TestClientScenarios runs the published Python client, as it is, against
// nodes of ours. Every scenario is a subtest named by the node, the script and
// its id (wire 22.4).
func TestClientScenarios(t *testing.T) {
	t.Parallel()
	env := pythonClient(t)
	t.Logf("%s %s", clientPackage, env.version)
	for _, s := range scripts {
		for _, at := range s.places {
			t.Run(string(at)+"/"+strings.TrimSuffix(s.file, ".py"), func(t *testing.T) {
				t.Parallel()
				runScript(t, env, s, at)
			})
		}
	}
}

// A subject is a node as a script sees it.
type subject interface {
	// description is the first line a script reads (python/kit.py).
	description() map[string]any
	// serve does what a script asks for.
	serve(line) error
}

func newSubject(t *testing.T, s script, at place) subject {
	if at == killable {
		return startProcess(t)
	}
	options := []felixtest.Option{felixtest.WithClock(hourAhead{})}
	for flag, value := range s.settings {
		options = append(options, felixtest.WithSetting(flag, value))
	}
	if at == onDisk {
		options = append(options, felixtest.Durable())
		for flag, value := range s.diskSettings {
			options = append(options, felixtest.WithSetting(flag, value))
		}
	}
	return inProcess{felixtest.Start(t, options...), at == onDisk}
}

// A line is what a script prints: a result, or something it wants done.
type line struct {
	Scenario string `json:"scenario"`
	OK       bool   `json:"ok"`
	Detail   string `json:"detail"`

	Ask    string `json:"ask"`
	Name   string `json:"name"`
	Shards int    `json:"shards"`
}

func runScript(t *testing.T, env pythonEnv, s script, at place) {
	n := newSubject(t, s, at)
	cmd := env.command(s.file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(scriptLimit, func() { cmd.Process.Kill() })
	defer limit.Stop()
	if err := json.NewEncoder(stdin).Encode(n.description()); err != nil {
		t.Fatalf("tell the script where the node is: %v", err)
	}
	results := make(map[string]line)
	readLines(stdout, func(l line) {
		if l.Ask != "" {
			answer := map[string]any{"done": true}
			if err := n.serve(l); err != nil {
				answer = map[string]any{"error": err.Error()}
			}
			// A script that is gone is found out by what it did not report.
			_ = json.NewEncoder(stdin).Encode(answer)
			return
		}
		results[l.Scenario] = l
	})
	if err := cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", s.file, err, stderr.String())
	}
	for _, id := range s.scenarios {
		t.Run(id, func(t *testing.T) {
			r, ran := results[id]
			delete(results, id)
			switch {
			case !ran:
				t.Fatalf("%s did not report it\n%s", s.file, stderr.String())
			case !r.OK:
				t.Fatal(r.Detail)
			case r.Detail != "":
				t.Log(r.Detail)
			}
		})
	}
	for id := range results {
		t.Errorf("%s reports %s, which is not in the list of its scenarios", s.file, id)
	}
}

// An inProcess is a node of this process.
type inProcess struct {
	*felixtest.Node
	durable bool
}

func (n inProcess) description() map[string]any {
	return map[string]any{
		"addr": n.Addr(), "ca": n.CAFile(), "tenant": n.Tenant(), "namespace": n.Namespace(),
		"token": n.Token(), "durable": n.durable, "ring": replayRing,
		"tokens": map[string]string{
			"read_only":  n.Token("stream.subscribe:stream:t1/*", "cache.read:cache:t1/*"),
			"write_only": n.Token("stream.publish:stream:t1/*", "cache.write:cache:t1/*"),
			// The node's clock is an hour ahead of the one that mints.
			"expired": n.TokenFor("tester", time.Now().Add(time.Minute)),
		},
	}
}

func (n inProcess) serve(l line) error {
	switch l.Ask {
	case "create_stream":
		n.CreateStream(l.Name, l.Shards)
	case "create_memory_stream":
		n.CreateStreamWith(l.Name, broker.StreamOptions{Shards: 1})
	case "create_cache":
		n.CreateCacheWith(l.Name, broker.CacheOptions{Durable: n.durable, Shards: uint32(max(l.Shards, 1))})
	case "restart":
		n.Restart()
	default:
		return fmt.Errorf("script asks for %q", l.Ask)
	}
	return nil
}

func readLines(r io.Reader, handle func(line)) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			handle(l)
		}
	}
}

// hourAhead is the machine's clock, an hour fast: a token good for a minute
// has long expired by it.
type hourAhead struct{}

func (hourAhead) Now() time.Time { return time.Now().Add(time.Hour) }

func (hourAhead) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
