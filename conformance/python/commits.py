"""Atomic commits: one event and keyed state as one record of the log."""

import asyncio
import threading

import felix

from kit import (
    NAMESPACE,
    NODE,
    TENANT,
    ask,
    connect,
    connect_async,
    equal,
    expect,
    fresh,
    main,
    scenario,
    take,
)

Op = felix.CommitOp


def state(client, stream, entity, key):
    got = client.state_get(TENANT, NAMESPACE, stream, entity, key)
    return got.value, got.version, got.as_of


@scenario("commit.returns_the_offset")
def returns_the_offset():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        client.publish(TENANT, NAMESPACE, stream, b"before")
        receipts = [
            client.commit(TENANT, NAMESPACE, b"order-7", [Op.publish(stream, b"placed"), Op.put(stream, "state", b"new")]),
            client.commit(TENANT, NAMESPACE, b"order-7", [Op.enqueue(stream, b"shipped")]),
            client.commit(TENANT, NAMESPACE, b"order-7", [Op.delete(stream, "state"), Op.publish(stream, b"closed")]),
        ]
        client.publish(TENANT, NAMESPACE, stream, b"after")
        got = take(events, 5)
    # A reader sees the events, in their places, and nothing of the state.
    equal([e.payload for e in got], [b"before", b"placed", b"shipped", b"closed", b"after"])
    equal([r.offset for r in receipts], [e.offset for e in got[1:4]], "offsets")
    equal([e.skipped_before for e in got], [0] * 5)


@scenario("commit.state_get_returns_the_version")
def state_get():
    stream, entity = fresh(), b"order-7"
    with connect() as client, connect() as other:
        equal(state(client, stream, entity, "a"), (None, None, None), "state of a stream without commits")
        first = client.commit(
            TENANT, NAMESPACE, entity, [Op.publish(stream, b"1"), Op.put(stream, "a", b"x"), Op.put(stream, "b", b"")]
        ).offset
        equal(state(other, stream, entity, "a"), (b"x", first, first))
        equal(state(other, stream, entity, "b"), (b"", first, first), "an empty value")
        second = client.commit(
            TENANT, NAMESPACE, entity, [Op.publish(stream, b"2"), Op.put(stream, "a", b"y"), Op.delete(stream, "b")]
        ).offset
        equal(state(other, stream, entity, "a"), (b"y", second, second))
        equal(state(other, stream, entity, "b"), (None, None, second), "a deleted key")
        # What is published without state does not move the state.
        client.publish(TENANT, NAMESPACE, stream, b"3")
        equal(state(other, stream, entity, "a"), (b"y", second, second))


@scenario("commit.large_values_and_any_bytes")
def any_bytes():
    stream, entity = fresh(), bytes(range(256))
    big = bytes(n * 7 % 251 for n in range(1 << 20))
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        ops = [Op.publish(stream, bytes(range(256))), Op.put(stream, "schlüssel \U0001f511", big)]
        ops += [Op.put(stream, f"k{n}", b"%d" % n) for n in range(100)]
        offset = client.commit(TENANT, NAMESPACE, entity, ops).offset
        equal(take(events, 1)[0].payload, bytes(range(256)))
        assert state(client, stream, entity, "schlüssel \U0001f511") == (big, offset, offset), "the large value differs"
        for n in range(100):
            equal(state(client, stream, entity, f"k{n}"), (b"%d" % n, offset, offset))


@scenario("commit.entities_have_their_shards")
def entities():
    """The entity's key places event and state alike, as a publish key does."""
    stream = fresh()
    ask("create_stream", name=stream, shards=8)
    frozen = {b"customer-0": 0, b"customer-4": 2, b"customer-1": 3, b"customer-6": 4, b"customer-2": 6}
    with connect() as client, client.subscribe_sharded(TENANT, NAMESPACE, stream) as events:
        for entity in frozen:
            client.commit(TENANT, NAMESPACE, entity, [Op.publish(stream, entity), Op.put(stream, entity.decode(), entity)])
        got = {}
        while len(got) < len(frozen):
            item = events.next_event(timeout=20)
            assert isinstance(item, felix.ShardRecord), repr(item)
            got[item.event.payload] = item.shard
        equal(got, frozen)
        for entity in frozen:
            equal(state(client, stream, entity, entity.decode())[0], entity)
        # The state of another entity's shard is another state.
        equal(state(client, stream, b"customer-0", "customer-4")[0], None)


@scenario("commit.many_at_once")
def many_at_once():
    stream, failures, offsets = fresh(), [], {}

    def work(n):
        try:
            with connect() as client:
                for i in range(15):
                    receipt = client.commit(
                        TENANT, NAMESPACE, b"e", [Op.publish(stream, b"%d/%d" % (n, i)), Op.put(stream, f"{n}", b"%d" % i)]
                    )
                    offsets[receipt.offset] = b"%d/%d" % (n, i)
                    value, version, as_of = state(client, stream, b"e", f"{n}")
                    equal((value, version), (b"%d" % i, receipt.offset), "own write")
                    assert as_of >= version, f"as of {as_of}, version {version}"
        except BaseException as error:
            failures.append(f"client {n}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(failures, [])
    equal(sorted(offsets), list(range(90)), "offsets")
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
        equal({e.offset: e.payload for e in take(events, 90)}, offsets)


@scenario("commit.refusals_are_typed")
def refusals():
    stream = fresh()
    with connect() as client:
        client.commit(TENANT, NAMESPACE, b"e", [Op.publish(stream, b"x"), Op.put(stream, "k", b"v")])
        expect(felix.FelixError, lambda: client.commit(TENANT, NAMESPACE, b"e", [Op.publish("a/b", b"x")]), "invalid_request", "fatal")
        expect(
            felix.FelixError,
            lambda: client.commit(TENANT, NAMESPACE, b"e", [Op.publish(stream, b"x"), Op.put(stream, "", b"v")]),
            "invalid_request",
            "fatal",
        )
    with connect(token=NODE["tokens"]["read_only"]) as client:
        equal(state(client, stream, b"e", "k")[0], b"v")
        expect(felix.AuthError, lambda: client.commit(TENANT, NAMESPACE, b"e", [Op.publish(stream, b"x")]), "forbidden", "fatal")
    with connect(token=NODE["tokens"]["write_only"]) as client:
        client.commit(TENANT, NAMESPACE, b"e", [Op.publish(stream, b"y")])
        expect(felix.AuthError, lambda: client.state_get(TENANT, NAMESPACE, stream, b"e", "k"), "forbidden", "fatal")
    # Nothing of what was refused was written.
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
        equal([e.payload for e in take(events, 2)], [b"x", b"y"])
        equal(events.next_event(timeout=0.3), None)


@scenario("commit.async")
def commit_async():
    stream = fresh()

    async def scene():
        async with await connect_async() as client:
            receipt = await client.commit(TENANT, NAMESPACE, b"e", [Op.publish(stream, b"x"), Op.put(stream, "k", b"v")])
            got = await client.state_get(TENANT, NAMESPACE, stream, b"e", "k")
            equal((got.value, got.version, got.as_of), (b"v", receipt.offset, receipt.offset))

    asyncio.run(scene())


@scenario("commit.another_stream_is_refused")
def another_stream():
    """Refused by the client itself, whatever the broker serves."""
    with connect() as client:
        for kind, ops in (
            (felix.NotOnOwningShardError, [Op.publish("a", b"x"), Op.put("b", "k", b"v")]),
            (felix.EventCountError, [Op.put("a", "k", b"v")]),
            (felix.EventCountError, [Op.publish("a", b"x"), Op.publish("a", b"y")]),
        ):
            try:
                client.commit(TENANT, NAMESPACE, b"e", ops)
            except felix.FelixError as error:
                assert type(error) is kind, repr(error)
            else:
                raise AssertionError(f"{kind.__name__} expected")


main()
