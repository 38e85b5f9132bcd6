package broker

import (
	"testing"
	"time"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/broker/stream"
)

type settled chan error

func (s settled) Settled(err error) { s <- err }

// A group hands out what was published, hears of what is published while it
// waits, and ends with its stream or the broker.
func TestGroupsOfABroker(t *testing.T) {
	for name, end := range map[string]struct {
		do    func(d *durableFixture)
		cause error
	}{
		"stream removed":    {func(d *durableFixture) { d.must(d.RemoveStream(fullName("s"))) }, stream.ErrRemoved},
		"namespace removed": {func(d *durableFixture) { d.must(d.RemoveNamespace(testTenant, testNamespace)) }, stream.ErrRemoved},
		"tenant removed":    {func(d *durableFixture) { d.must(d.RemoveTenant(testTenant)) }, stream.ErrRemoved},
		"broker closed":     {func(d *durableFixture) { d.Close() }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			d, _ := inMemory(t, syncing(), Config{})
			sh := d.durable("s", 2)[1]
			if !d.Groups().Enabled() {
				t.Fatal("no groups with storage")
			}
			ref := queue.Ref{Shard: sh, Group: "g"}
			d.must(d.Groups().Ready(t.Context(), ref))
			poll := func() chan error {
				ended := make(chan error, 1)
				go func() {
					records, err := d.Groups().Poll(t.Context(), ref, queue.PollOptions{
						MaxRecords: 10, Wait: 20 * time.Second, Holder: tracker.Holder{Consumer: "c"},
					})
					for _, r := range records {
						done := make(settled, 1)
						d.Groups().Ack(ref, r.Offset, done)
						err = <-done
					}
					ended <- err
				}()
				eventually(t, "it waits", func() bool { return d.Stats().Groups.Waiting == 1 })
				return ended
			}
			ended := poll()
			d.sent(sh, batchOf("a", "b"))
			d.must(<-ended)
			info, err := d.Groups().Describe(t.Context(), ref, queue.DescribeOptions{})
			if d.must(err); info.Committed != 2 {
				t.Fatalf("%+v", info)
			}
			ended = poll()
			end.do(d)
			if err := <-ended; err != end.cause {
				t.Fatal(err)
			}
			eventually(t, "no group is left", func() bool {
				st := d.Stats().Groups
				return st.Groups == 0 && st.Waiting == 0
			})
		})
	}
}

// Without storage there are no groups, and none on a stream in memory.
func TestGroupsNeedTheLog(t *testing.T) {
	f := newFixture(t, Config{})
	if f.Groups().Enabled() {
		t.Fatal("groups without storage")
	}
	f.must(f.AddStream(fullName("s"), StreamOptions{}))
	s, err := f.Stream(testTenant, testNamespace, "s")
	f.must(err)
	if err := f.Groups().Ready(t.Context(), queue.Ref{Shard: s.Shard(0), Group: "g"}); err == nil {
		t.Fatal("a group on a stream in memory")
	}
}
