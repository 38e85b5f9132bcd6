package conformance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
)

// How long a link is broken (wire 22.4): a drop outlasts the idle timeout of
// 6 s, a stall does not.
const (
	dropFor  = 8 * time.Second
	stallFor = 2 * time.Second
)

// A faultLab is the published client behind a link that breaks, as "c", and
// the same client with a link of its own, as "direct".
type faultLab struct {
	*driver
	node *felixtest.Node
	link *link
}

func newFaultLab(t *testing.T, options ...felixtest.Option) *faultLab {
	t.Helper()
	n := felixtest.Start(t, options...)
	n.CreateStream("s", 1)
	n.CreateCache("c")
	l := &faultLab{driver: startDriver(t), node: n, link: newLink(t, n.Addr())}
	l.dial(t, "c", l.link.addr())
	l.dial(t, "direct", n.Addr())
	return l
}

func (l *faultLab) dial(t *testing.T, name, addr string) {
	t.Helper()
	if err := l.connect(name, addr, l.node.CAFile(), map[string]any{"token": l.node.Token()}); err != nil {
		t.Fatalf("connect: %v", err)
	}
}

func (l *faultLab) publish(client, payload string, kwargs map[string]any) error {
	return l.call(nil, client, "publish", []any{"t1", "default", "s", pyBytes(payload)}, kwargs)
}

// breakLink breaks the link for as long as the fault lasts; a reset lasts for
// the connections it meets.
func (l *faultLab) breakLink(fault string) (mend func()) {
	switch fault {
	case "dropped":
		l.link.set(linkDrop)
		return func() { time.Sleep(dropFor); l.link.set(linkPass) }
	case "stalled":
		l.link.set(linkStall)
		return func() { time.Sleep(stallFor); l.link.set(linkPass) }
	default:
		l.link.reset()
		return func() {}
	}
}

var faults = []string{"dropped", "reset", "stalled"}

// TestClientFaults are the fault scenarios of wire 22.4: no publish hangs and every
// acknowledged record is there; a subscription resumes without a gap or
// raises; a stall is no error. Those of queues are our own.
func TestClientFaults(t *testing.T) {
	t.Parallel()
	pythonClient(t)
	for at, options := range map[place][]felixtest.Option{inMemoryNode: nil, onDisk: {felixtest.Durable()}} {
		run := func(scenario string, test func(t *testing.T, fault string, options []felixtest.Option), fault string) {
			t.Run(fmt.Sprintf("%s/fault.%s_through_a_%s_link", at, scenario, fault), func(t *testing.T) {
				t.Parallel()
				test(t, fault, options)
			})
		}
		for _, fault := range faults {
			run("publish", testFaultyPublish, fault)
			run("subscription", testFaultySubscription, fault)
		}
		run("cache", testFaultyCache, "reset")
		for _, fault := range faults {
			if at == onDisk {
				run("queue", testFaultyQueue, fault)
			}
		}
	}
}

func testFaultyPublish(t *testing.T, fault string, options []felixtest.Option) {
	l := newFaultLab(t, options...)
	var acked []string
	note := func(payload string, err error) {
		if err == nil {
			acked = append(acked, payload)
		}
	}
	for i := range 5 {
		payload := fmt.Sprint("before ", i)
		note(payload, l.publish("c", payload, nil))
	}
	if len(acked) != 5 {
		t.Fatalf("%d of 5 publishes over a good link", len(acked))
	}
	mend := l.breakLink(fault)
	plain := l.begin("c", "publish", []any{"t1", "default", "s", pyBytes("plain")}, nil)
	again := l.begin("c", "publish", []any{"t1", "default", "s", pyBytes("again")}, map[string]any{"at_least_once": true})
	mend()
	plainErr, againErr := plain.result(nil), again.result(nil)
	for _, err := range []error{plainErr, againErr} {
		if _, raised := err.(*clientError); err != nil && !raised {
			t.Fatalf("a publish hangs: %v", err)
		}
	}
	note("plain", plainErr)
	note("again", againErr)
	if fault == "stalled" && (plainErr != nil || againErr != nil) {
		t.Errorf("a stall is an error: %v, %v", plainErr, againErr)
	}
	if againErr != nil {
		t.Errorf("an at-least-once publish gave up: %v", againErr)
	}
	if err := l.publish("c", "after", map[string]any{"at_least_once": true}); err != nil {
		t.Fatalf("after the fault: %v", err)
	}
	acked = append(acked, "after")

	var stored []string
	if err := l.keep("all", "direct", "subscribe", []any{"t1", "default", "s"}, map[string]any{"start": "earliest"}); err != nil {
		t.Fatal(err)
	}
	for len(stored) == 0 || stored[len(stored)-1] != "after" {
		e, err := l.nextEvent("all", patience.Seconds())
		if err != nil || e == nil {
			t.Fatalf("after %q: %v, %v", stored, e, err)
		}
		stored = append(stored, string(e.Payload.Bytes))
	}
	for _, payload := range acked {
		if !slices.Contains(stored, payload) {
			t.Errorf("%q was acknowledged and is not there: %q", payload, stored)
		}
	}
}

func testFaultySubscription(t *testing.T, fault string, options []felixtest.Option) {
	l := newFaultLab(t, options...)
	if err := l.keep("sub", "c", "subscribe", []any{"t1", "default", "s"}, nil); err != nil {
		t.Fatal(err)
	}
	const before, total = 5, 20
	publish := func(from, to int) {
		for i := from; i < to; i++ {
			if err := l.publish("direct", fmt.Sprint(i), nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	var last uint64
	read := func(from, to int) {
		for i := from; i < to; i++ {
			e, err := l.nextEvent("sub", 2*patience.Seconds())
			if err != nil || e == nil {
				t.Fatalf("event %d: %v, %v", i, e, err)
			}
			if got := string(e.Payload.Bytes); got != fmt.Sprint(i) {
				t.Fatalf("event %d is %q: a gap or a repetition", i, got)
			}
			if e.Offset == nil || i > 0 && *e.Offset != last+1 {
				t.Fatalf("event %d at offset %v after %d", i, e.Offset, last)
			}
			last = *e.Offset
		}
	}
	publish(0, before)
	read(0, before)
	mend := l.breakLink(fault)
	publish(before, total)
	mend()
	// The node kept everything, so the subscription has nothing to raise.
	read(before, total)
	publish(total, total+1)
	read(total, total+1)
}

// testFaultyQueue is a worker whose link breaks between its poll and its acks,
// and with a poll under way. Claims lapse soon: what a lost answer took along
// comes again, and what was acknowledged does not.
func testFaultyQueue(t *testing.T, fault string, options []felixtest.Option) {
	l := newFaultLab(t, append(options, felixtest.WithSetting("group-visibility-timeout-ms", "2000"))...)
	const total = 12
	for i := range total {
		if err := l.publish("direct", fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	group := func(more ...any) []any { return append([]any{"t1", "default", "s", 0, "g"}, more...) }
	type record struct {
		Offset uint64 `json:"offset"`
	}
	done, came := make(map[uint64]bool), make(map[uint64]bool)
	poll := func(client string, most int) error {
		var got []record
		err := l.call(&got, client, "group_poll", group(), map[string]any{"max_records": most, "wait": 1})
		for _, r := range got {
			if done[r.Offset] {
				t.Errorf("record %d was acknowledged and comes again", r.Offset)
			}
			came[r.Offset] = true
		}
		return err
	}
	ack := func(client string, offset uint64) error {
		err := l.call(nil, client, "group_ack", group(offset), nil)
		if err == nil {
			done[offset] = true
		}
		return err
	}
	if err := poll("c", 4); err != nil {
		t.Fatal(err)
	}
	if err := ack("c", 0); err != nil {
		t.Fatal(err)
	}
	mend := l.breakLink(fault)
	acking := l.begin("c", "group_ack", group(1), nil)
	polling := l.begin("c", "group_poll", group(), map[string]any{"max_records": 4, "wait": 1})
	mend()
	for what, err := range map[string]error{"ack": acking.result(nil), "poll": polling.result(nil)} {
		switch {
		case err != nil && raised(err) != "ConnectionError":
			t.Fatalf("the %s: %v", what, err)
		case err != nil && fault == "stalled":
			t.Errorf("a stall fails the %s: %v", what, err)
		case err == nil && what == "ack":
			done[1] = true
		}
	}
	if fault == "reset" {
		// A group call connects again from the socket there is, and no packet of
		// that gets through any more; a cache call takes a new one.
		if err := poll("c", 4); raised(err) != "ConnectionError" {
			t.Errorf("a poll found its way by itself: %v", err)
		}
		if err := l.call(nil, "c", "cache_put", []any{"t1", "default", "c", "k", pyBytes("v")}, nil); err != nil && raised(err) != "ConnectionError" {
			t.Fatal(err)
		}
	}
	until(t, "every record is finished", func() error {
		if err := poll("c", 4); err != nil && raised(err) != "ConnectionError" {
			t.Fatal(err)
		}
		for offset := range came {
			if done[offset] {
				continue
			}
			if err := ack("c", offset); err != nil && raised(err) != "ConnectionError" {
				t.Fatalf("ack of %d: %v", offset, err)
			}
		}
		if len(done) < total {
			return fmt.Errorf("%d of %d", len(done), total)
		}
		return nil
	})
	if err := poll("direct", 4); err != nil {
		t.Fatal(err)
	}
	var dead []uint64
	if err := l.call(&dead, "direct", "group_dead_letters", group(), nil); err != nil || len(dead) != 0 {
		t.Errorf("dead letters %v, %v", dead, err)
	}
}

func testFaultyCache(t *testing.T, fault string, options []felixtest.Option) {
	l := newFaultLab(t, options...)
	put := func(value string) error {
		return l.call(nil, "c", "cache_put", []any{"t1", "default", "c", "k", pyBytes(value)}, nil)
	}
	if err := put("before"); err != nil {
		t.Fatal(err)
	}
	l.breakLink(fault)
	err := put("during")
	if _, raised := err.(*clientError); err != nil && !raised {
		t.Fatalf("a put hangs: %v", err)
	}
	if err := put("after"); err != nil {
		t.Fatalf("after the fault: %v", err)
	}
	var got struct {
		Bytes []byte `json:"bytes"`
	}
	if err := l.call(&got, "c", "cache_get", []any{"t1", "default", "c", "k"}, nil); err != nil || string(got.Bytes) != "after" {
		t.Fatalf("%q, %v", got.Bytes, err)
	}
}

// TestClientKilledBroker: the node goes without a word and comes back on the same
// port with nothing of what it had. What a subscription had read is gone;
// going on as if it were not would be a lie.
func TestClientKilledBroker(t *testing.T) {
	pythonClient(t)
	l := newFaultLab(t)
	if err := l.keep("sub", "c", "subscribe", []any{"t1", "default", "s"}, nil); err != nil {
		t.Fatal(err)
	}
	var last uint64
	for i := range 5 {
		if err := l.publish("c", fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
		e, err := l.nextEvent("sub", patience.Seconds())
		if err != nil || e == nil || e.Offset == nil {
			t.Fatalf("event %d: %v, %v", i, e, err)
		}
		last = *e.Offset
	}
	// Whatever the node says on its way out does not arrive.
	l.link.set(linkDrop)
	l.node.Restart()
	l.node.CreateStream("s", 1)
	l.link.set(linkPass)
	for deadline := time.Now().Add(2 * patience); ; {
		if time.Now().After(deadline) {
			t.Fatal("the subscription neither raises nor goes on")
		}
		// Acknowledged or not: the client may still be finding out.
		_ = l.publish("c", "marker", nil)
		e, err := l.nextEvent("sub", 0.2)
		if err != nil {
			t.Logf("raised: %v", err)
			break
		}
		if e != nil {
			if e.Offset == nil || *e.Offset <= last {
				t.Fatalf("resumed at %v, after %d", e.Offset, last)
			}
			t.Logf("resumed at %d after %d", *e.Offset, last)
			break
		}
		var closed bool
		if err := l.attribute(&closed, "sub", "closed"); err != nil {
			t.Fatal(err)
		}
		if closed {
			t.Fatal("the subscription ended as if it were complete")
		}
	}
	if err := l.publish("c", "after", map[string]any{"at_least_once": true}); err != nil {
		t.Errorf("publish after the restart: %v", err)
	}
}
