"""A node on disk that stops in order and comes back, while it is watched."""

import asyncio
import threading

import felix

from kit import (
    NAMESPACE,
    TENANT,
    ask,
    cache,
    changes,
    connect,
    connect_async,
    equal,
    main,
    scenario,
    until,
)

EVERYTHING = felix.CacheWatchFilter.prefix("")


def moved(watch, resume_from):
    """The notice of the stop; what follows goes on where it says."""
    notice = watch.recv(timeout=20)
    assert isinstance(notice, felix.CacheWatchShardMoved), f"{notice!r} instead of the notice"
    equal((notice.resume_from, notice.node_id, notice.addr, notice.generation), (resume_from, None, None, 0))


def nothing_more(watch):
    item = watch.recv(timeout=0.3)
    assert item is None and not watch.closed, f"unexpected {item!r}"


@scenario("stop.a_watch_goes_on")
def watch():
    name = cache()
    with connect() as client:
        everything = client.watch_cache(TENANT, NAMESPACE, name, EVERYTHING)
        one = client.watch_cache(TENANT, NAMESPACE, name, felix.CacheWatchFilter.key("k1"))
        for n in range(5):
            client.cache_put(TENANT, NAMESPACE, name, f"k{n}", b"before")
        client.cache_delete(TENANT, NAMESPACE, name, "k0")
        equal(changes(everything, 6)[-1], ("k0", None, 5))
        equal(changes(one, 1), [("k1", b"before", 1)])
        ask("restart")
        with connect() as other:
            for n in range(3):
                other.cache_put(TENANT, NAMESPACE, name, f"k{n}", b"after")
        moved(everything, 6)
        moved(one, 6)
        equal(changes(everything, 3), [(f"k{n}", b"after", 6 + n) for n in range(3)])
        equal(changes(one, 1), [("k1", b"after", 7)])
        until(lambda: client.cache_put(TENANT, NAMESPACE, name, "k1", b"live"))
        equal(changes(everything, 1), [("k1", b"live", 9)])
        equal(changes(one, 1), [("k1", b"live", 9)])
        nothing_more(everything)
        nothing_more(one)


@scenario("stop.a_watch_that_saw_nothing_goes_on")
def nothing_seen():
    name = cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, name, "k", b"before")
        live = client.watch_cache(TENANT, NAMESPACE, name, EVERYTHING)
        none = client.watch_cache(TENANT, NAMESPACE, name, felix.CacheWatchFilter.key("other"), retained=True)
        equal(none.retained_count, 0)
        ask("restart")
        with connect() as other:
            other.cache_put(TENANT, NAMESPACE, name, "k", b"after")
            other.cache_put(TENANT, NAMESPACE, name, "other", b"after")
        moved(live, 1)
        moved(none, 1)
        equal(changes(live, 2), [("k", b"after", 1), ("other", b"after", 2)])
        equal(changes(none, 1), [("other", b"after", 2)])
        nothing_more(live)
        nothing_more(none)


@scenario("stop.an_unread_watch_goes_on")
def unread():
    """What the client holds and nobody has asked it for yet is not lost."""
    name = cache()
    with connect() as client:
        live = client.watch_cache(TENANT, NAMESPACE, name, EVERYTHING)
        for n in range(300):
            client.cache_put(TENANT, NAMESPACE, name, "k", b"%d" % n)
        retained = client.watch_cache(TENANT, NAMESPACE, name, EVERYTHING, retained=True)
        ask("restart")
        with connect() as other:
            for n in range(300, 310):
                other.cache_put(TENANT, NAMESPACE, name, "k", b"%d" % n)
        equal(changes(live, 300), [("k", b"%d" % n, n) for n in range(300)])
        moved(live, 300)
        equal(changes(live, 10), [("k", b"%d" % n, n) for n in range(300, 310)])
        nothing_more(live)
        equal(changes(retained, 1), [("k", b"299", 299)])
        moved(retained, 300)
        equal(changes(retained, 10), [("k", b"%d" % n, n) for n in range(300, 310)])


@scenario("stop.a_watch_misses_nothing_of_writers_who_go_on")
def busy():
    name, done, failures = cache(), threading.Event(), []
    acked = {}

    def write(n):
        try:
            with connect() as client:
                for i in range(10_000):
                    if done.is_set():
                        return
                    until(lambda: client.cache_put(TENANT, NAMESPACE, name, f"{n}/{i}", b"%d" % i))
                    acked[n] = i + 1
        except BaseException as error:
            failures.append(f"writer {n}: {type(error).__name__}: {error}")

    with connect() as client:
        watch = client.watch_cache(TENANT, NAMESPACE, name, EVERYTHING)
        writers = [threading.Thread(target=write, args=(n,)) for n in range(3)]
        for thread in writers:
            thread.start()
        got, notices = changes(watch, 50), 0
        for _ in range(2):
            stop = threading.Thread(target=ask, args=("restart",))
            stop.start()
            target = notices + 1
            while notices < target:
                item = watch.recv(timeout=20)
                if isinstance(item, felix.CacheWatchShardMoved):
                    notices += 1
                elif item is not None:
                    got.append((item.key, item.value, item.offset))
            stop.join()
            got += changes(watch, 50)
        done.set()
        for thread in writers:
            thread.join()
        equal(failures, [])
        until(lambda: client.cache_put(TENANT, NAMESPACE, name, "end", b""))
        while got[-1][0] != "end":
            got += changes(watch, 1)
    equal([o for _, _, o in got], list(range(len(got))), "offsets")
    seen = [k for k, _, _ in got]
    missed = [f"{n}/{i}" for n, count in acked.items() for i in range(count) if f"{n}/{i}" not in set(seen)]
    equal(missed, [], "acknowledged and not seen")
    return f"{len(got)} changes over two stops"


@scenario("stop.async")
def asynchronous():
    name = cache()

    async def scene():
        async with await connect_async() as client:
            watch = await client.watch_cache(TENANT, NAMESPACE, name, EVERYTHING)
            await client.cache_put(TENANT, NAMESPACE, name, "k", b"0")
            await asyncio.to_thread(ask, "restart")
            async with await connect_async() as other:
                await other.cache_put(TENANT, NAMESPACE, name, "k", b"1")
            got = []
            async for item in watch:
                got.append(item.resume_from if isinstance(item, felix.CacheWatchShardMoved) else item.value)
                if len(got) == 3:
                    break
            equal(got, [b"0", 1, b"1"])

    asyncio.run(scene())


main()
