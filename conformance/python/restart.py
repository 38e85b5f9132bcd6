"""A node on disk that ends and comes back: all that was acknowledged is there."""

import asyncio
import threading
import time

import felix

from kit import (
    NAMESPACE,
    TENANT,
    ask,
    cache,
    connect,
    connect_async,
    equal,
    fresh,
    main,
    quiet,
    scenario,
    take,
)

Op = felix.CommitOp


@scenario("restart.acknowledged_records_are_there")
def records():
    stream, acked, failures = fresh(), {}, []

    def work(n):
        try:
            with connect() as client:
                for i in range(50):
                    payload = b"%d/%d" % (n, i)
                    acked[client.publish(TENANT, NAMESPACE, stream, payload)] = payload
        except BaseException as error:
            failures.append(f"client {n}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(failures, [])
    equal(sorted(acked), list(range(200)), "offsets")
    ask("restart")
    with connect() as client:
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            equal({e.offset: e.payload for e in take(events, 200)}, acked)
            quiet(events)
            equal(client.publish(TENANT, NAMESPACE, stream, b"next"), 200, "the offset after the restart")
            equal(take(events, 1)[0].offset, 200)
        with client.subscribe(TENANT, NAMESPACE, stream, start=150) as events:
            equal([e.payload for e in take(events, 51)], [acked[n] for n in range(150, 200)] + [b"next"])


@scenario("restart.unanswered_publishes_are_whole_or_absent")
def in_flight():
    """Publishes under way when the node ends: what was acknowledged is there, once."""
    stream, acked, stop = fresh(), {}, threading.Event()

    def work(n):
        with connect() as client:
            i = 0
            while not stop.is_set():
                payload = b"%d/%d " % (n, i) + b"x" * 200
                try:
                    acked[client.publish(TENANT, NAMESPACE, stream, payload)] = payload
                except felix.FelixError:
                    return  # of what failed nothing is known
                i += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    while len(acked) < 60:
        time.sleep(0.01)
    ask("restart")
    stop.set()
    with connect() as client:
        tail = client.publish(TENANT, NAMESPACE, stream, b"end")
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            got = {e.offset: e.payload for e in take(events, tail + 1)}
    for thread in threads:
        thread.join()
    equal(sorted(got), list(range(tail + 1)), "offsets")
    lost = {o: p[:8] for o, p in acked.items() if o < tail and got.get(o) != p}
    equal(lost, {}, "acknowledged and lost")
    payloads = list(got.values())
    equal(len(set(payloads)), len(payloads), "records that are there twice")
    return f"{len(acked)} acknowledged, {tail} stored"


@scenario("restart.a_subscription_goes_on_where_it_was")
def subscription():
    stream = fresh()
    with connect() as client, connect() as late:
        half_read = client.subscribe(TENANT, NAMESPACE, stream, start="earliest")
        # Read nothing yet: they have only the place the broker named.
        unread = client.subscribe(TENANT, NAMESPACE, stream)
        for n in range(40):
            client.publish(TENANT, NAMESPACE, stream, b"%d" % n)
        at_tail = late.subscribe(TENANT, NAMESPACE, stream)
        equal([e.payload for e in take(half_read, 15)], [b"%d" % n for n in range(15)])
        ask("restart")
        with connect() as other:
            for n in range(40, 80):
                equal(other.publish(TENANT, NAMESPACE, stream, b"%d" % n), n)
        for events, start in ((half_read, 15), (unread, 0), (at_tail, 40)):
            got = take(events, 80 - start)
            equal([(e.offset, e.payload) for e in got], [(n, b"%d" % n) for n in range(start, 80)], f"events from {start}")
            quiet(events, 0.1)
            assert not events.closed


@scenario("restart.several_clients_see_the_same")
def several_clients():
    """Writers that send again ride over it; readers agree on every record."""
    stream, done, failures = fresh(), {}, []

    def send(client, payload):
        # The client itself sends again a few times only, and a node may take
        # longer than that to stop.
        while True:
            try:
                return client.publish(TENANT, NAMESPACE, stream, payload, at_least_once=True)
            except Exception as error:
                if getattr(error, "code", None) != "draining":
                    raise
                time.sleep(0.05)

    def write(n):
        try:
            with connect() as client:
                for i in range(30):
                    send(client, b"%d/%d" % (n, i))
                    done[n] = i + 1
                    time.sleep(0.005)
        except BaseException as error:
            failures.append(f"writer {n}: {type(error).__name__}: {error}")

    readers = [connect() for _ in range(3)]
    subscriptions = [c.subscribe(TENANT, NAMESPACE, stream) for c in readers]
    writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
    for thread in writers:
        thread.start()
    while sum(done.values()) < 20:
        time.sleep(0.01)
    ask("restart")
    for thread in writers:
        thread.join()
    equal(failures, [])
    with connect() as client:
        tail = client.publish(TENANT, NAMESPACE, stream, b"end")
    seen = [[(e.offset, e.payload) for e in take(s, tail + 1)] for s in subscriptions]
    equal([o for o, _ in seen[0]], list(range(tail + 1)), "offsets")
    for other in seen[1:]:
        equal(other, seen[0], "what another reader saw")
    for n in range(3):
        mine = [int(p.split(b"/")[1]) for _, p in seen[0] if p.startswith(b"%d/" % n)]
        # Sent again means twice at most, and never out of order.
        equal(sorted(set(mine)), list(range(30)), f"records of writer {n}")
        equal(mine, sorted(mine), f"order of writer {n}")
    return f"{tail} records of 90 publishes"


@scenario("restart.caches_are_there")
def caches():
    name, apart = cache(), cache()
    with connect() as client:
        for n in range(50):
            client.cache_put(TENANT, NAMESPACE, name, f"k{n}", b"%d" % n)
        client.cache_put(TENANT, NAMESPACE, name, "k1", b"again")
        client.cache_delete(TENANT, NAMESPACE, name, "k2")
        client.cache_put(TENANT, NAMESPACE, name, "empty", b"")
        client.cache_put(TENANT, NAMESPACE, name, "short", b"v", ttl=1.5)
        client.cache_put(TENANT, NAMESPACE, name, "long", b"v", ttl=3600)
        client.cache_put(TENANT, NAMESPACE, apart, "k0", b"apart")
    ask("restart")
    with connect() as client:
        get = lambda k: client.cache_get(TENANT, NAMESPACE, name, k)
        equal([get(f"k{n}") for n in range(5)], [b"0", b"again", None, b"3", b"4"])
        equal([get(f"k{n}") for n in range(5, 50)], [b"%d" % n for n in range(5, 50)])
        equal((get("empty"), get("long"), get("never")), (b"", b"v", None))
        equal(client.cache_get(TENANT, NAMESPACE, apart, "k0"), b"apart")
        equal(client.cache_get(TENANT, NAMESPACE, apart, "k1"), None)
        # The deadline is a point in time: the restart does not move it.
        deadline = time.monotonic() + 20
        while get("short") is not None:
            assert time.monotonic() < deadline, "a value with 1.5 s to live is still there"
            time.sleep(0.05)
        equal(client.cache_delete(TENANT, NAMESPACE, name, "k1"), b"again")
        equal(get("long"), b"v")


@scenario("restart.an_entry_that_expired_meanwhile_is_gone")
def expired_meanwhile():
    name = cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, name, "k", b"v", ttl=0.05)
        client.cache_put(TENANT, NAMESPACE, name, "witness", b"v")
    time.sleep(0.1)
    ask("restart")
    with connect() as client:
        equal(client.cache_get(TENANT, NAMESPACE, name, "k"), None)
        equal(client.cache_get(TENANT, NAMESPACE, name, "witness"), b"v")


@scenario("restart.counters_are_there")
def counters():
    name = cache()
    with connect() as client:
        for n in range(20):
            client.counter_add(TENANT, NAMESPACE, name, "k", n)
        client.counter_add(TENANT, NAMESPACE, name, "low", -(2**63))
    ask("restart")
    with connect() as client:
        equal(client.counter_get(TENANT, NAMESPACE, name, "k"), 190)
        equal(client.counter_get(TENANT, NAMESPACE, name, "low"), -(2**63))
        equal(client.counter_get(TENANT, NAMESPACE, name, "never"), None)
        equal(client.counter_add(TENANT, NAMESPACE, name, "k", 1), 191)


@scenario("restart.commits_are_there")
def commits():
    stream, entity = fresh(), b"order-7"
    with connect() as client:
        first = client.commit(TENANT, NAMESPACE, entity, [Op.publish(stream, b"1"), Op.put(stream, "a", b"x"), Op.put(stream, "b", b"y")])
        second = client.commit(TENANT, NAMESPACE, entity, [Op.publish(stream, b"2"), Op.delete(stream, "b")])
        client.publish(TENANT, NAMESPACE, stream, b"3")
    ask("restart")
    with connect() as client:
        for key, want in (("a", (b"x", first.offset, second.offset)), ("b", (None, None, second.offset))):
            got = client.state_get(TENANT, NAMESPACE, stream, entity, key)
            equal((got.value, got.version, got.as_of), want, f"state of {key}")
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            equal([e.payload for e in take(events, 3)], [b"1", b"2", b"3"])
        third = client.commit(TENANT, NAMESPACE, entity, [Op.publish(stream, b"4"), Op.put(stream, "a", b"z")])
        equal(third.offset, 3)
        equal(client.state_get(TENANT, NAMESPACE, stream, entity, "a").value, b"z")


@scenario("restart.async")
def asynchronous():
    stream, name = fresh(), cache()

    async def scene():
        client = await connect_async()
        events = await client.subscribe(TENANT, NAMESPACE, stream)
        for n in range(5):
            equal(await client.publish(TENANT, NAMESPACE, stream, b"%d" % n), n)
        await client.cache_put(TENANT, NAMESPACE, name, "k", b"v")
        await client.counter_add(TENANT, NAMESPACE, name, "k", 3)
        got = []
        async for event in events:
            got.append((event.offset, event.payload))
            if len(got) == 3:
                break
        await asyncio.to_thread(ask, "restart")
        equal(await client.publish(TENANT, NAMESPACE, stream, b"5", at_least_once=True), 5)
        async for event in events:
            got.append((event.offset, event.payload))
            if len(got) == 6:
                break
        equal(got, [(n, b"%d" % n) for n in range(6)])
        equal(await client.cache_get(TENANT, NAMESPACE, name, "k"), b"v")
        equal(await client.counter_get(TENANT, NAMESPACE, name, "k"), 3)

    asyncio.run(scene())


main()
