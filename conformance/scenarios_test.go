package conformance

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
)

// scriptLimit bounds a whole script. Each of its scenarios has a bound of its
// own; this one catches an interpreter that does not come back.
const scriptLimit = 4 * time.Minute

// A script is one Python file and the node it runs against.
type script struct {
	file string
	// settings of the node, by flag name.
	settings map[string]string
	// scenarios the script must report, by id.
	scenarios []string
}

// replayRing is how many records the node of errors.py keeps for replay.
const replayRing = 64

var scripts = []script{
	{file: "pubsub.py", scenarios: []string{
		"pubsub.roundtrip", "pubsub.iteration", "pubsub.order", "pubsub.offsets_are_contiguous",
		"pubsub.two_subscribers_agree", "pubsub.start_latest", "pubsub.start_earliest",
		"pubsub.earliest_of_an_empty_stream", "pubsub.resume_from_offset", "pubsub.resume_at_the_tail",
		"pubsub.empty_payload", "pubsub.any_bytes", "pubsub.large_payload",
	}},
	{file: "acks.py", scenarios: []string{
		"ack.every_mode", "ack.every_mode_with_a_key", "ack.default_mode",
		"ack.none_does_not_wait_for_the_broker", "ack.per_message_means_the_broker_accepted_it",
		"ack.at_least_once_delivers", "ack.at_least_once_takes_no_key", "ack.many_outstanding",
	}},
	{file: "cache.py", scenarios: []string{
		"cache.put_get", "cache.miss_is_absent", "cache.delete_returns_previous", "cache.ttl_expires",
		"cache.put_replaces_the_ttl", "cache.empty_value_is_not_absent", "cache.any_key_and_value",
		"cache.caches_are_apart", "cache.a_refused_key_leaves_the_client_usable",
	}},
	{file: "errors.py", settings: map[string]string{
		"auto-create":         "false",
		"stream-ring-records": fmt.Sprint(replayRing),
	}, scenarios: []string{
		"error.unknown_stream_is_typed", "error.unknown_stream_without_ack_is_silent",
		"error.unknown_cache_is_typed", "error.unauthorized_is_typed", "error.foreign_tenant_is_typed",
		"error.bad_token_is_typed", "error.bad_offset_is_typed", "error.too_old_offset_is_typed",
		"error.bad_names_are_refused",
	}},
	{file: "lifecycle.py", scenarios: []string{
		"client.quick_start", "client.endpoints", "client.alpn", "client.concurrent_calls",
		"client.one_client_many_threads", "client.close_is_idempotent", "client.subscription_ends_cleanly",
		"client.many_subscriptions", "client.idle_connection_lives_on", "client.token_provider",
		"client.with_identity", "client.async_surface", "client.async_concurrency", "client.async_errors",
	}},
	{file: "sharded.py", scenarios: []string{
		"sharded.reports_the_shard_count", "sharded.delivers_every_shard", "sharded.one_shard",
		"sharded.starts_at_earliest", "sharded.resumes_per_shard", "sharded.no_key_is_shard_zero",
		"sharded.plain_subscribe_reads_shard_zero", "sharded.key_hash",
	}},
	{file: "reconnect.py", scenarios: []string{
		"reconnect.survives_broker_loss", "reconnect.at_least_once_rides_over_a_restart",
		"reconnect.cache_survives_broker_loss", "reconnect.an_idle_subscription_is_not_silently_ended",
		"reconnect.a_lost_position_is_not_silently_moved", "sharded.a_lost_shard_is_surfaced",
	}},
	{file: "unserved.py", scenarios: []string{
		"unserved.queues", "unserved.counters", "unserved.watches", "unserved.commits",
		"commit.another_stream_is_refused",
	}},
}

// TestClientScenarios runs the published Python client, as it is, against a
// node of ours. Every scenario is a subtest named by its id (wire 22.4).
func TestClientScenarios(t *testing.T) {
	env := pythonClient(t)
	t.Logf("%s %s", clientPackage, env.version)
	for _, s := range scripts {
		t.Run(strings.TrimSuffix(s.file, ".py"), func(t *testing.T) {
			t.Parallel()
			runScript(t, env, s)
		})
	}
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

func runScript(t *testing.T, env pythonEnv, s script) {
	options := []felixtest.Option{felixtest.WithClock(hourAhead{})}
	for flag, value := range s.settings {
		options = append(options, felixtest.WithSetting(flag, value))
	}
	n := felixtest.Start(t, options...)
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
	if _, err := fmt.Fprintf(stdin, "%s\n", nodeDescription(n)); err != nil {
		t.Fatalf("tell the script where the node is: %v", err)
	}
	results := make(map[string]line)
	readLines(stdout, func(l line) {
		if l.Ask != "" {
			serve(t, n, l)
			io.WriteString(stdin, "{\"done\":true}\n")
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

// nodeDescription is the first line a script reads (python/kit.py).
func nodeDescription(n *felixtest.Node) []byte {
	b, err := json.Marshal(map[string]any{
		"addr": n.Addr(), "ca": n.CAFile(), "tenant": n.Tenant(), "namespace": n.Namespace(),
		"token": n.Token(), "ring": replayRing,
		"tokens": map[string]string{
			"read_only":  n.Token("stream.subscribe:stream:t1/*", "cache.read:cache:t1/*"),
			"write_only": n.Token("stream.publish:stream:t1/*", "cache.write:cache:t1/*"),
			// The node's clock is an hour ahead of the one that mints.
			"expired": n.TokenFor("tester", time.Now().Add(time.Minute)),
		},
	})
	if err != nil {
		panic("node description does not encode: " + err.Error())
	}
	return b
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

// serve does what a script asks for.
func serve(t *testing.T, n *felixtest.Node, l line) {
	switch l.Ask {
	case "create_stream":
		n.CreateStream(l.Name, l.Shards)
	case "create_cache":
		n.CreateCache(l.Name)
	case "restart":
		n.Restart()
	default:
		t.Fatalf("script asks for %q", l.Ask)
	}
}

// hourAhead is the machine's clock, an hour fast: a token good for a minute
// has long expired by it.
type hourAhead struct{}

func (hourAhead) Now() time.Time { return time.Now().Add(time.Hour) }

func (hourAhead) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
