"""Counters: signed sums beside a cache."""

import asyncio
import threading

import felix

from kit import NAMESPACE, NODE, TENANT, cache, connect, connect_async, equal, expect, main, scenario

LARGEST, SMALLEST = 2**63 - 1, -(2**63)


@scenario("counter.add_returns_sum")
def add_returns_sum():
    name = cache()
    with connect() as client, connect() as other:
        sums = [client.counter_add(TENANT, NAMESPACE, name, "k", delta) for delta in (5, -7, 0, 100)]
        equal(sums, [5, -2, -2, 98])
        equal(other.counter_get(TENANT, NAMESPACE, name, "k"), 98, "another client's view")
        equal(other.counter_add(TENANT, NAMESPACE, name, "k", 1), 99)


@scenario("counter.get_absent_is_none")
def get_absent():
    name = cache()
    with connect() as client:
        equal(client.counter_get(TENANT, NAMESPACE, name, "k"), None)
        # A counter that is at zero is there.
        equal(client.counter_add(TENANT, NAMESPACE, name, "k", 0), 0)
        equal(client.counter_get(TENANT, NAMESPACE, name, "k"), 0)


@scenario("counter.whole_range")
def whole_range():
    name = cache()
    with connect() as client:
        for key, limit in (("up", LARGEST), ("down", SMALLEST)):
            step = 1 if limit > 0 else -1
            equal(client.counter_add(TENANT, NAMESPACE, name, key, limit), limit)
            expect(
                felix.FelixError, lambda: client.counter_add(TENANT, NAMESPACE, name, key, step), "invalid_request", "fatal"
            )
            equal(client.counter_get(TENANT, NAMESPACE, name, key), limit, "the sum after a refusal")
            equal(client.counter_add(TENANT, NAMESPACE, name, key, -step), limit - step)


@scenario("counter.is_no_cache_entry")
def no_cache_entry():
    name = cache()
    with connect() as client:
        with client.watch_cache(TENANT, NAMESPACE, name, felix.CacheWatchFilter.prefix("")) as watch:
            client.counter_add(TENANT, NAMESPACE, name, "k", 7)
            equal(client.cache_get(TENANT, NAMESPACE, name, "k"), None)
            client.cache_put(TENANT, NAMESPACE, name, "k", b"v")
            client.cache_delete(TENANT, NAMESPACE, name, "k")
            equal(client.counter_get(TENANT, NAMESPACE, name, "k"), 7, "after the entry of that key was deleted")
            equal([watch.recv(timeout=20).value for _ in range(2)], [b"v", None], "what a watch sees")


@scenario("counter.adds_of_many_clients_all_count")
def many_clients():
    name, failures, sums = cache(), [], []

    def work():
        try:
            with connect() as client:
                for n in range(40):
                    sums.append(client.counter_add(TENANT, NAMESPACE, name, "shared", 1))
                    client.counter_add(TENANT, NAMESPACE, name, f"own-{n}", 1)
        except BaseException as error:
            failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(failures, [])
    equal(sorted(sums), list(range(1, 241)), "the sums that were answered")
    with connect() as client:
        for n in range(40):
            equal(client.counter_get(TENANT, NAMESPACE, name, f"own-{n}"), 6)


@scenario("counter.refusals_are_typed")
def refusals():
    name = cache()
    with connect() as client:
        expect(felix.FelixError, lambda: client.counter_add(TENANT, NAMESPACE, name, "", 1), "invalid_request", "fatal")
        equal(client.counter_add(TENANT, NAMESPACE, name, "k", 1), 1)
    with connect(token=NODE["tokens"]["read_only"]) as client:
        equal(client.counter_get(TENANT, NAMESPACE, name, "k"), 1)
        expect(felix.AuthError, lambda: client.counter_add(TENANT, NAMESPACE, name, "k", 1), "forbidden", "fatal")
    with connect(token=NODE["tokens"]["write_only"]) as client:
        equal(client.counter_add(TENANT, NAMESPACE, name, "k", 1), 2)
        expect(felix.AuthError, lambda: client.counter_get(TENANT, NAMESPACE, name, "k"), "forbidden", "fatal")


@scenario("counter.async")
def counter_async():
    name = cache()

    async def scene():
        async with await connect_async() as client:
            sums = await asyncio.gather(*[client.counter_add(TENANT, NAMESPACE, name, "k", 1) for _ in range(50)])
            equal(sorted(sums), list(range(1, 51)))
            equal(await client.counter_get(TENANT, NAMESPACE, name, "k"), 50)

    asyncio.run(scene())


main()
