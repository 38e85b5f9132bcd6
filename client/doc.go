// Package client is the Go SDK of Felix.
//
// A [Client] speaks to a Felix broker, or to a cluster of them, over QUIC. It
// is safe for concurrent use, and one client per process is the normal case:
// every call shares its few connections and long-lived streams.
//
//	c, err := client.Dial(ctx, []string{"127.0.0.1:5000"},
//		client.WithTenant("acme"),
//		client.WithToken(os.Getenv("FELIX_AUTH_TOKEN")),
//		client.WithCAFile("ca.pem"))
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//
// # Publishing
//
// [Client.Publish] and [Client.PublishBatch] send and wait for the answer;
// a [Publisher] keeps many batches in flight. A key ([WithKey]) chooses the
// shard, and records of one key keep their order; without a key every record
// goes to shard 0.
//
//	ack, err := c.Publish(ctx, "orders", []byte("hello"), client.WithKey([]byte("customer-7")))
//
// An acknowledged publish whose connection was lost before the answer came
// may or may not have been stored. It is never sent again behind your back:
// the error says so ([ErrOutcomeUnknown]), unless [WithAtLeastOnce] asked
// for the opposite.
//
// A [Producer] goes further: it numbers its batches, sends again what may be
// lost, and the broker stores each one exactly once. [Client.PublishIf]
// appends only if nobody else has meanwhile, and [Client.Commit] stores an
// event together with changes to the state of an entity, which
// [Client.StateGet] reads.
//
// On a stream with a log an acknowledgement comes once the record is written
// as the broker's fsync mode promises, and carries its offset.
//
// # Subscribing
//
// [Client.Subscribe] reads the records of one shard, or of all
// ([AllShards]), from a position of your choice. A lost connection is
// resumed at the next offset; a hole, should there be one, is reported in
// [Event.Gap].
//
//	sub, err := c.Subscribe(ctx, "orders", client.From(client.Earliest()))
//	if err != nil {
//		return err
//	}
//	defer sub.Close()
//	for ev, err := range sub.Events(ctx) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(ev.Offset, string(ev.Payload))
//	}
//
// [Client.Read] and [Client.Records] read a part of a log without
// subscribing, and [Client.OffsetForTime] finds where a moment begins.
//
// # Caching
//
// [Client.Cache] gives a [Cache]: keys to latest values, with an optional
// time to live, conditional writes and versions.
//
//	sessions := c.Cache("sessions")
//	err := sessions.Put(ctx, "u1", []byte("..."), client.WithTTL(time.Hour))
//	value, ok, err := sessions.Get(ctx, "u1")
//
// [Cache.Watch] delivers the changes of a key, of those with a prefix, or of
// all, from now on, from an offset, or behind the values held; it resumes as
// a subscription does. [Cache.CounterAdd] keeps sums.
//
//	w, err := sessions.Watch(ctx, client.WatchPrefix("u"), client.Retained())
//	for change, err := range w.Changes(ctx) {
//		...
//	}
//
// # Queues
//
// Workers that share the records of a stream are a [Group]. [Client.Consume]
// is a worker: it claims records, runs a handler on each, and acknowledges a
// record after its handler has returned nil. If the worker dies before, at
// whatever moment, others get the record when the claim lapses:
//
//	err := c.Consume(ctx, c.Group("orders", "billing"), func(ctx context.Context, d client.Delivery) error {
//		_, err := fmt.Fprintf(file, "%s\n", d.Payload)
//		return err
//	})
//
// A handler that fails or panics has its record handed back, to come again
// after a back-off; after five deliveries, unless the broker is configured
// otherwise, it goes to the dead letters. A record may be handled more than
// once, so that handlers should not mind; none is acknowledged unhandled. The
// claims of long handlers are extended. When ctx ends, Consume finishes what
// runs, hands back what does not, and returns nil.
//
// [Group.Poll], [Group.Ack] and the other calls of a group are the same things
// one by one. Groups need a stream with a log.
//
// # Errors
//
// What a broker refuses arrives as an [*Error] with a code, a retry class
// and a sentence. Decide on the class, or with errors.Is on the sentinels of
// this package ([ErrNotFound], [ErrOverloaded], [ErrStorageFull],
// [ErrShardUnavailable], [ErrStaleClaim], [ErrOutcomeUnknown], ...); never on
// the text.
package client
