"""Streams of several shards: keys spread, shards are read together or alone."""

import felix

from kit import NAMESPACE, TENANT, ask, connect, equal, fresh, main, scenario, take


def stream(shards):
    name = fresh()
    ask("create_stream", name=name, shards=shards)
    return name


def records(subscription, count):
    got = []
    while len(got) < count:
        item = subscription.next_event(timeout=20)
        assert item is not None, f"{len(got)} of {count} records"
        assert isinstance(item, felix.ShardRecord), f"{type(item).__name__} instead of a record"
        got.append(item)
    return got


KEYS = [b"customer-%d" % n for n in range(80)]


def publish_keys(client, name, round=0):
    for key in KEYS:
        client.publish(TENANT, NAMESPACE, name, key + b"/%d" % round, key=key)


@scenario("sharded.reports_the_shard_count")
def shard_count():
    with connect() as client:
        for shards in (1, 2, 8):
            name = stream(shards)
            equal(client.stream_shards(TENANT, NAMESPACE, name), shards)
            with client.subscribe_sharded(TENANT, NAMESPACE, name) as subscription:
                equal(subscription.shards, shards)


@scenario("sharded.delivers_every_shard")
def every_shard():
    name = stream(8)
    with connect() as client, client.subscribe_sharded(TENANT, NAMESPACE, name) as subscription:
        equal(subscription.positions(), {})
        for round in range(3):
            publish_keys(client, name, round)
        got = records(subscription, 3 * len(KEYS))
        positions = subscription.positions()
    equal({r.shard for r in got}, set(range(8)), "shards heard of")
    for key in KEYS:
        mine = [r for r in got if r.event.payload.startswith(key + b"/")]
        equal([r.event.payload for r in mine], [key + b"/%d" % n for n in range(3)], f"order of {key}")
        equal(len({r.shard for r in mine}), 1, f"shards of {key}")
    for shard in range(8):
        offsets = [r.event.offset for r in got if r.shard == shard]
        equal(offsets, list(range(offsets[0], offsets[0] + len(offsets))), f"offsets of shard {shard}")
        equal(positions[shard], offsets[-1], f"position of shard {shard}")


@scenario("sharded.one_shard")
def one_shard():
    name = stream(1)
    with connect() as client, client.subscribe_sharded(TENANT, NAMESPACE, name, start="earliest") as subscription:
        publish_keys(client, name)
        got = records(subscription, len(KEYS))
    equal([r.event.payload for r in got], [k + b"/0" for k in KEYS])
    equal({r.shard for r in got}, {0})


@scenario("sharded.starts_at_earliest")
def starts_at_earliest():
    name = stream(4)
    with connect() as client:
        publish_keys(client, name)
        with client.subscribe_sharded(TENANT, NAMESPACE, name, start="earliest") as subscription:
            got = records(subscription, len(KEYS))
    equal({r.event.payload for r in got}, {k + b"/0" for k in KEYS})


@scenario("sharded.resumes_per_shard")
def resumes_per_shard():
    name = stream(4)
    with connect() as client:
        publish_keys(client, name, 0)
        with client.subscribe_sharded(TENANT, NAMESPACE, name, start="earliest") as subscription:
            records(subscription, len(KEYS))
            positions = subscription.positions()
        publish_keys(client, name, 1)
        with client.subscribe_sharded(TENANT, NAMESPACE, name, start="latest", resume=positions) as subscription:
            got = records(subscription, len(KEYS))
    equal({r.event.payload for r in got}, {k + b"/1" for k in KEYS}, "records after the positions")


@scenario("sharded.no_key_is_shard_zero")
def no_key():
    name = stream(4)
    with connect() as client, client.subscribe_sharded(TENANT, NAMESPACE, name) as subscription:
        for n in range(10):
            client.publish(TENANT, NAMESPACE, name, b"%d" % n)
        got = records(subscription, 10)
    equal([(r.shard, r.event.payload) for r in got], [(0, b"%d" % n) for n in range(10)])


@scenario("sharded.plain_subscribe_reads_shard_zero")
def plain_subscribe():
    name = stream(4)
    with connect() as client, client.subscribe(TENANT, NAMESPACE, name) as events:
        with client.subscribe_sharded(TENANT, NAMESPACE, name) as everything:
            publish_keys(client, name)
            zero = [r.event.payload for r in records(everything, len(KEYS)) if r.shard == 0]
        equal([e.payload for e in take(events, len(zero))], zero)


@scenario("sharded.key_hash")
def key_hash():
    """The frozen hash of wire 14: a broker that places keys elsewhere is found out."""
    frozen = {b"customer-0": 0, b"customer-4": 2, b"customer-1": 3, b"customer-6": 4, b"customer-2": 6}
    name = stream(8)
    with connect() as client, client.subscribe_sharded(TENANT, NAMESPACE, name) as subscription:
        for key in frozen:
            client.publish(TENANT, NAMESPACE, name, key, key=key)
        got = {r.event.payload: r.shard for r in records(subscription, len(frozen))}
    equal(got, frozen)


main()
