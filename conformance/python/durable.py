"""Streams on the log: offsets in acks, and history as long as the log."""

import threading

import felix

from kit import NAMESPACE, NODE, TENANT, ask, connect, equal, expect, fresh, main, quiet, scenario, take


@scenario("ack.offset_negotiated")
def offset_negotiated():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        offsets = [
            client.publish(TENANT, NAMESPACE, stream, b"0"),
            client.publish(TENANT, NAMESPACE, stream, b"1", ack="per_batch"),
            client.publish(TENANT, NAMESPACE, stream, b"2", at_least_once=True),
            client.publish(TENANT, NAMESPACE, stream, b"3", key=b"k"),
        ]
        equal(client.publish(TENANT, NAMESPACE, stream, b"4", ack="none"), None)
        got = take(events, 5)
    equal(offsets, [0, 1, 2, 3], "a new stream begins at 0")
    equal([e.offset for e in got], [0, 1, 2, 3, 4])


@scenario("ack.offsets_are_of_the_shard")
def offsets_of_shards():
    stream = fresh()
    ask("create_stream", name=stream, shards=4)
    with connect() as client, client.subscribe_sharded(TENANT, NAMESPACE, stream) as events:
        acked = {}
        for n in range(60):
            acked[b"%d" % n] = client.publish(TENANT, NAMESPACE, stream, b"%d" % n, key=b"customer-%d" % (n % 20))
        shards = {}
        for _ in range(60):
            item = events.next_event(timeout=20)
            assert isinstance(item, felix.ShardRecord), repr(item)
            equal(item.event.offset, acked[item.event.payload], "offset of an ack")
            shards.setdefault(item.shard, []).append(item.event.offset)
    equal(len(shards), 4, "shards")
    for shard, offsets in shards.items():
        equal(offsets, list(range(len(offsets))), f"offsets of shard {shard}")


@scenario("pubsub.history_is_as_long_as_the_log")
def history():
    """Far more than is kept in memory, read while more is published."""
    stream, count = fresh(), 20 * NODE["ring"]
    want = [b"%d" % n for n in range(count)]
    with connect() as client, connect() as other:
        for payload in want[: count // 2]:
            client.publish(TENANT, NAMESPACE, stream, payload, ack="none")
        client.publish(TENANT, NAMESPACE, stream, b"half")

        def more():
            for payload in want[count // 2 :]:
                client.publish(TENANT, NAMESPACE, stream, payload, ack="none")

        with other.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            writer = threading.Thread(target=more)
            writer.start()
            got = take(events, count + 1, timeout=40)
            writer.join()
            quiet(events)
        equal([e.payload for e in got], want[: count // 2] + [b"half"] + want[count // 2 :])
        equal([e.offset for e in got], list(range(count + 1)), "offsets")
        for start in (0, 1, count // 2, count, count + 1):
            with other.subscribe(TENANT, NAMESPACE, stream, start=start) as events:
                equal([e.offset for e in take(events, min(3, count + 1 - start))], list(range(start, min(start + 3, count + 1))))


@scenario("error.a_refused_offset_leaves_the_client_usable")
def refused_offset():
    stream = fresh()
    with connect() as client:
        client.publish(TENANT, NAMESPACE, stream, b"x")
        for start in (2, 2**32, 2**63, 2**64 - 1):
            error = expect(felix.CursorError, lambda: client.subscribe(TENANT, NAMESPACE, stream, start=start))
            assert "1" in str(error), f"the tail is not named: {error}"
        with client.subscribe(TENANT, NAMESPACE, stream, start=1) as events:
            equal(client.publish(TENANT, NAMESPACE, stream, b"y"), 1)
            equal(take(events, 1)[0].payload, b"y")
    return str(error)


main()
