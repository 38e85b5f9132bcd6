"""Watches of a cache on the log: every change, once, in order, also later."""

import asyncio
import threading
import time

import felix

from kit import (
    NAMESPACE,
    NODE,
    TENANT,
    ask,
    cache,
    changes,
    connect,
    connect_async,
    equal,
    expect,
    fresh,
    main,
    scenario,
)

key, prefix = felix.CacheWatchFilter.key, felix.CacheWatchFilter.prefix


def values(got):
    return [(k, v) for k, v, _ in got]


def nothing_more(watch, seconds=0.3):
    item = watch.recv(timeout=seconds)
    assert item is None, f"unexpected {item!r}"


@scenario("watch.delivers_changes_for_the_filter")
def filters():
    name = cache()
    with connect() as client, connect() as other:
        watches = [client.watch_cache(TENANT, NAMESPACE, name, f) for f in (key("a/1"), prefix("a/"), prefix(""), key("none"))]
        for k in ("a/1", "b", "a/2", "a/11", "a/1", "a"):
            other.cache_put(TENANT, NAMESPACE, name, k, k.encode())
        got = [changes(watches[0], 2), changes(watches[1], 4), changes(watches[2], 6)]
        for watch in watches:
            nothing_more(watch)
            assert not watch.closed
            equal((watch.resume_offset, watch.resnapshot, watch.retained_count), (0, False, None))
            watch.close()
            assert watch.closed
    equal([k for k, _, _ in got[0]], ["a/1", "a/1"])
    equal([k for k, _, _ in got[1]], ["a/1", "a/2", "a/11", "a/1"])
    equal([k for k, _, _ in got[2]], ["a/1", "b", "a/2", "a/11", "a/1", "a"])
    equal([v for _, v, _ in got[2]], [k.encode() for k, _, _ in got[2]])
    equal([o for _, _, o in got[2]], list(range(6)), "offsets of all changes")
    equal(got[1], [c for c in got[2] if c[0].startswith("a/")], "the prefix is a part of all")
    equal(got[0], [c for c in got[2] if c[0] == "a/1"], "the key is a part of all")


@scenario("watch.deletes_arrive_as_changes_without_values")
def deletes():
    name = cache()
    with connect() as client, client.watch_cache(TENANT, NAMESPACE, name, key("k")) as watch:
        client.cache_put(TENANT, NAMESPACE, name, "k", b"v")
        client.cache_delete(TENANT, NAMESPACE, name, "k")
        client.cache_delete(TENANT, NAMESPACE, name, "k")
        client.cache_put(TENANT, NAMESPACE, name, "k", b"")
        equal(values(changes(watch, 3)), [("k", b"v"), ("k", None), ("k", b"")], "a delete, and an empty value")
        nothing_more(watch)


@scenario("watch.an_expiry_arrives_as_a_delete")
def expiry():
    name = cache()
    with connect() as client, client.watch_cache(TENANT, NAMESPACE, name, prefix("")) as watch:
        client.cache_put(TENANT, NAMESPACE, name, "goes", b"v", ttl=0.3)
        client.cache_put(TENANT, NAMESPACE, name, "stays", b"v")
        put = watch.recv(timeout=20)
        assert put.expires_at_millis > 0, "no deadline"
        stays = watch.recv(timeout=20)
        equal((stays.key, stays.expires_at_millis), ("stays", 0))
        # Nobody reads the key: the broker deletes it of itself.
        gone = watch.recv(timeout=20)
        equal((gone.key, gone.value, gone.expires_at_millis), ("goes", None, 0))
        assert gone.offset > stays.offset, f"offset {gone.offset} after {stays.offset}"
        equal(client.cache_get(TENANT, NAMESPACE, name, "goes"), None)


@scenario("watch.resumes_from_an_offset")
def resumes():
    name = cache()
    with connect() as client:
        for n in range(10):
            client.cache_put(TENANT, NAMESPACE, name, f"k{n % 3}", b"%d" % n)
        client.cache_delete(TENANT, NAMESPACE, name, "k0")
        everything = [("k%d" % (n % 3), b"%d" % n, n) for n in range(10)] + [("k0", None, 10)]
        for start in range(12):
            with client.watch_cache(TENANT, NAMESPACE, name, prefix(""), start=start) as watch:
                equal((watch.resume_offset, watch.resnapshot), (11, False))
                equal(changes(watch, 11 - start), everything[start:], f"changes from {start}")
                nothing_more(watch, 0.02)
        with client.watch_cache(TENANT, NAMESPACE, name, key("k1"), start=2) as watch:
            equal(changes(watch, 2), [c for c in everything[2:] if c[0] == "k1"])
            # History runs over into what happens now.
            client.cache_put(TENANT, NAMESPACE, name, "k1", b"live")
            equal(changes(watch, 1), [("k1", b"live", 11)])


@scenario("watch.from_the_future_is_typed")
def future():
    name = cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, name, "k", b"v")
        for f in (key("k"), prefix("")):
            error = expect(felix.CursorError, lambda: client.watch_cache(TENANT, NAMESPACE, name, f, start=2))
            assert "1" in str(error), f"the tail is not named: {error}"
            expect(felix.CursorError, lambda: client.watch_cache(TENANT, NAMESPACE, name, f, start=2**63))
    return str(error)


@scenario("watch.retained_delivers_state_before_changes")
def retained():
    name = cache()
    with connect() as client:
        with client.watch_cache(TENANT, NAMESPACE, name, prefix(""), retained=True) as watch:
            equal(watch.retained_count, 0)
        for k in ("a", "b", "c", "a", "d"):
            client.cache_put(TENANT, NAMESPACE, name, k, k.encode() * 2)
        client.cache_delete(TENANT, NAMESPACE, name, "d")
        with client.watch_cache(TENANT, NAMESPACE, name, prefix(""), retained=True) as watch:
            equal((watch.retained_count, watch.resume_offset, watch.resnapshot), (3, 6, False))
            client.cache_put(TENANT, NAMESPACE, name, "e", b"live")
            got = changes(watch, 4)
        equal(sorted(values(got[:3])), [("a", b"aa"), ("b", b"bb"), ("c", b"cc")])
        equal([o for _, _, o in got], sorted(o for _, _, o in got), "offsets")
        equal(got[3], ("e", b"live", 6))
        with client.watch_cache(TENANT, NAMESPACE, name, key("a"), retained=True) as watch:
            equal(watch.retained_count, 1)
            equal(values(changes(watch, 1)), [("a", b"aa")])
        with client.watch_cache(TENANT, NAMESPACE, name, key("d"), retained=True) as watch:
            equal(watch.retained_count, 0, "retained values of a deleted key")
        try:
            client.watch_cache(TENANT, NAMESPACE, name, key("a"), start=0, retained=True)
        except ValueError as error:
            return str(error)
    raise AssertionError("start and retained together were accepted")


@scenario("watch.resnapshots_below_what_compaction_kept")
def resnapshot():
    """From an offset that compaction took away, the state comes instead."""
    name = cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, name, "kept", b"old")
        deadline = time.monotonic() + 30
        while True:
            for _ in range(8):
                client.cache_put(TENANT, NAMESPACE, name, "busy", b"x" * (256 << 10))
            with client.watch_cache(TENANT, NAMESPACE, name, prefix(""), start=0) as watch:
                if watch.resnapshot:
                    got = changes(watch, 2)
                    client.cache_put(TENANT, NAMESPACE, name, "live", b"v")
                    got += changes(watch, 1)
                    break
            assert time.monotonic() < deadline, "nothing was compacted"
        equal(sorted(k for k, _, _ in got[:2]), ["busy", "kept"])
        equal(dict(values(got))["kept"], b"old")
        equal(values(got[2:]), [("live", b"v")])
        equal([o for _, _, o in got], sorted(o for _, _, o in got), "offsets")


@scenario("watch.many_watchers_agree")
def many():
    name, failures = cache(), []

    def write(n):
        try:
            with connect() as client:
                for i in range(40):
                    client.cache_put(TENANT, NAMESPACE, name, f"{n}/{i % 5}", b"%d" % i)
        except BaseException as error:
            failures.append(f"{type(error).__name__}: {error}")

    with connect() as client, connect() as other:
        watches = [c.watch_cache(TENANT, NAMESPACE, name, prefix("")) for c in (client, other) for _ in range(10)]
        threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        first = changes(watches[0], 160)
        for thread in threads:
            thread.join()
        equal(failures, [])
        for watch in watches[1:]:
            equal(changes(watch, 160), first)
        equal([o for _, _, o in first], list(range(160)), "offsets")
        for n in range(4):
            mine = [c for c in values(first) if c[0].startswith(f"{n}/")]
            equal(mine, [(f"{n}/{i % 5}", b"%d" % i) for i in range(40)], f"order of writer {n}")


@scenario("watch.iteration")
def iteration():
    name = cache()
    with connect() as client, client.watch_cache(TENANT, NAMESPACE, name, key("k")) as watch:
        for n in range(3):
            client.cache_put(TENANT, NAMESPACE, name, "k", b"%d" % n)
        got = []
        for change in watch:
            got.append(change.value)
            if len(got) == 3:
                break
    equal(got, [b"0", b"1", b"2"])


@scenario("watch.several_shards")
def several_shards():
    """A key is watched where it lives; a prefix must name a shard, and this client cannot."""
    name = fresh("c")
    ask("create_cache", name=name, shards=4)
    keys = [f"customer-{n}" for n in range(12)]
    with connect() as client:
        watches = {k: client.watch_cache(TENANT, NAMESPACE, name, key(k)) for k in keys}
        for k in keys:
            client.cache_put(TENANT, NAMESPACE, name, k, k.encode())
        for k, watch in watches.items():
            equal(values(changes(watch, 1)), [(k, k.encode())])
        error = expect(felix.FelixError, lambda: client.watch_cache(TENANT, NAMESPACE, name, prefix("")), "invalid_request", "fatal")
    return str(error)


@scenario("watch.refusals_are_typed")
def refusals():
    name = cache()
    with connect() as client:
        expect(felix.FelixError, lambda: client.watch_cache(TENANT, NAMESPACE, name, key("")), "invalid_request", "fatal")
        with client.watch_cache(TENANT, NAMESPACE, name, key("k")):
            pass
    with connect(token=NODE["tokens"]["write_only"]) as client:
        for f in (key("k"), prefix("k")):
            expect(felix.AuthError, lambda: client.watch_cache(TENANT, NAMESPACE, name, f), "forbidden", "fatal")


@scenario("watch.async")
def watch_async():
    name = cache()

    async def scene():
        async with await connect_async() as client:
            await client.cache_put(TENANT, NAMESPACE, name, "k", b"0")
            async with await client.watch_cache(TENANT, NAMESPACE, name, key("k"), retained=True) as watch:
                equal((watch.retained_count, watch.resume_offset, watch.resnapshot), (1, 1, False))
                for n in range(1, 4):
                    await client.cache_put(TENANT, NAMESPACE, name, "k", b"%d" % n)
                got = []
                async for change in watch:
                    got.append((change.value, change.offset))
                    if len(got) == 4:
                        break
                equal(got, [(b"%d" % n, n) for n in range(4)])
                equal(await watch.recv(timeout=0.1), None)

    asyncio.run(scene())


main()
