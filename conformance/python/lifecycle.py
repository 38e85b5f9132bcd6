"""Clients as a whole: many at once, closing, both surfaces, identities, ALPN."""

import asyncio
import threading

import felix

from kit import (
    NAMESPACE,
    NODE,
    TENANT,
    cache,
    connect,
    connect_async,
    equal,
    expect,
    fresh,
    main,
    quiet,
    scenario,
    take,
)


@scenario("client.quick_start")
def quick_start():
    """The example of the package's own page."""
    got = []
    with felix.Client(NODE["addr"], tenant_id=TENANT, token=NODE["token"], ca_file=NODE["ca"]) as client:
        with client.subscribe(TENANT, NAMESPACE, "events") as events:
            client.publish(TENANT, NAMESPACE, "events", b"hello")
            for event in events:
                got.append(event.payload)
                break
    equal(got, [b"hello"])


@scenario("client.endpoints")
def endpoints():
    with connect() as client:
        equal(client.endpoints(), [NODE["addr"]])


@scenario("client.alpn")
def alpn():
    stream = fresh()
    with connect(offer_alpn=True) as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        client.publish(TENANT, NAMESPACE, stream, b"x")
        equal(take(events, 1)[0].payload, b"x")


@scenario("client.concurrent_calls")
def concurrent_calls():
    """Eight clients at once, each with its own stream, cache keys and threads."""
    shared, name = fresh(), cache()
    failures, seen = [], {}

    def work(n):
        try:
            own = fresh()
            with connect() as client:
                with client.subscribe(TENANT, NAMESPACE, own) as events:
                    with client.subscribe(TENANT, NAMESPACE, shared, start="earliest") as everything:
                        for i in range(25):
                            client.publish(TENANT, NAMESPACE, own, b"%d" % i)
                            client.publish(TENANT, NAMESPACE, shared, b"%d/%d" % (n, i))
                            client.cache_put(TENANT, NAMESPACE, name, f"{n}/{i}", b"%d" % i)
                        equal([e.payload for e in take(events, 25)], [b"%d" % i for i in range(25)])
                        for i in range(25):
                            equal(client.cache_get(TENANT, NAMESPACE, name, f"{n}/{i}"), b"%d" % i)
                        seen[n] = [e.payload for e in take(everything, 200)]
        except BaseException as error:
            failures.append(f"client {n}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(failures, [])
    for n in range(1, 8):
        equal(seen[n], seen[0], f"what client {n} saw")


@scenario("client.one_client_many_threads")
def many_threads():
    name, failures = cache(), []
    with connect() as client:

        def work(n):
            try:
                for i in range(20):
                    client.cache_put(TENANT, NAMESPACE, name, f"{n}", b"%d" % i)
                    equal(client.cache_get(TENANT, NAMESPACE, name, f"{n}"), b"%d" % i)
            except BaseException as error:
                failures.append(f"thread {n}: {type(error).__name__}: {error}")

        # More threads than the client has cache streams.
        threads = [threading.Thread(target=work, args=(n,)) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    equal(failures, [])


@scenario("client.close_is_idempotent")
def close_is_idempotent():
    stream = fresh()
    client = connect()
    subscription = client.subscribe(TENANT, NAMESPACE, stream)
    for _ in range(3):
        subscription.close()
    assert subscription.closed
    for _ in range(2):
        client.__exit__(None, None, None)


@scenario("client.subscription_ends_cleanly")
def subscription_ends_cleanly():
    stream = fresh()
    with connect() as client:
        subscription = client.subscribe(TENANT, NAMESPACE, stream)
        assert not subscription.closed
        client.publish(TENANT, NAMESPACE, stream, b"x")
        equal(take(subscription, 1)[0].payload, b"x")
        subscription.close()
        assert subscription.closed
        equal([e.payload for e in subscription], [], "events after the end")
        equal(subscription.next_event(timeout=5), None)
        # Nothing of it is left in the way of the next one.
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            equal(take(events, 1)[0].payload, b"x")


@scenario("client.many_subscriptions")
def many_subscriptions():
    """More subscriptions on one connection than a hundred streams allow."""
    stream, count = fresh(), 150
    with connect() as client:
        subscriptions = [client.subscribe(TENANT, NAMESPACE, stream) for _ in range(count)]
        client.publish(TENANT, NAMESPACE, stream, b"x")
        for subscription in subscriptions:
            equal(take(subscription, 1)[0].payload, b"x")
        for subscription in subscriptions[: count // 2]:
            subscription.close()
        client.publish(TENANT, NAMESPACE, stream, b"y")
        for subscription in subscriptions[count // 2 :]:
            equal(take(subscription, 1)[0].payload, b"y")
            quiet(subscription, 0)


@scenario("client.idle_connection_lives_on")
def idle():
    """Quiet for longer than the idle timeout: only keep-alives hold the link."""
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        quiet(events, 7.5)
        assert not events.closed
        client.publish(TENANT, NAMESPACE, stream, b"x")
        equal(take(events, 1)[0].payload, b"x")


@scenario("client.token_provider")
def token_provider():
    calls = []

    def provider():
        calls.append(1)
        return NODE["token"]

    client = felix.Client(NODE["addr"], tenant_id=TENANT, token_provider=provider, ca_file=NODE["ca"])
    client.publish(TENANT, NAMESPACE, fresh(), b"x")
    assert calls, "the provider was never asked"


@scenario("client.with_identity")
def with_identity():
    stream = fresh()
    with connect() as client:
        guest = client.with_identity(TENANT, NODE["tokens"]["read_only"])
        expect(felix.AuthError, lambda: guest.publish(TENANT, NAMESPACE, stream, b"x"), "forbidden")
        with guest.subscribe(TENANT, NAMESPACE, stream) as events:
            client.publish(TENANT, NAMESPACE, stream, b"x")
            equal(take(events, 1)[0].payload, b"x")


@scenario("client.async_surface")
def async_surface():
    stream, name = fresh(), cache()

    async def scene():
        async with await connect_async() as client:
            async with await client.subscribe(TENANT, NAMESPACE, stream) as events:
                for mode in ("none", "per_message", "per_batch"):
                    for key in (None, b"k"):
                        await client.publish(TENANT, NAMESPACE, stream, mode.encode(), ack=mode, key=key)
                await client.publish(TENANT, NAMESPACE, stream, b"alo", at_least_once=True)
                got = []
                async for event in events:
                    got.append(event.payload)
                    if len(got) == 7:
                        break
                equal(got, [b"none"] * 2 + [b"per_message"] * 2 + [b"per_batch"] * 2 + [b"alo"])
                equal(await events.next_event(timeout=0.1), None)
            await client.cache_put(TENANT, NAMESPACE, name, "k", b"v", ttl=60)
            equal(await client.cache_get(TENANT, NAMESPACE, name, "k"), b"v")
            equal(await client.cache_delete(TENANT, NAMESPACE, name, "k"), b"v")
            equal(await client.cache_get(TENANT, NAMESPACE, name, "k"), None)
            equal(await client.stream_shards(TENANT, NAMESPACE, stream), 1)
            equal(await client.endpoints(), [NODE["addr"]])

    asyncio.run(scene())


@scenario("client.async_concurrency")
def async_concurrency():
    stream, count = fresh(), 200

    async def scene():
        client = await connect_async()
        events = await client.subscribe(TENANT, NAMESPACE, stream)
        await asyncio.gather(
            *[client.publish(TENANT, NAMESPACE, stream, b"%d" % n) for n in range(count)]
        )
        got = set()
        while len(got) < count:
            event = await events.next_event(timeout=20)
            assert event is not None, f"{len(got)} of {count} events"
            got.add(int(event.payload))
        equal(got, set(range(count)))
        await events.close()
        assert await events.closed

    asyncio.run(scene())


@scenario("client.async_errors")
def async_errors():
    async def scene():
        try:
            await felix.AsyncClient.connect(NODE["addr"], tenant_id=TENANT, token="bad", ca_file=NODE["ca"])
        except felix.AuthError as error:
            equal(error.code, "unauthenticated")
            return
        raise AssertionError("a bad token was accepted")

    asyncio.run(scene())


main()
