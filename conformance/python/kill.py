"""A node on disk that is killed: what its end does to those it can tell nothing."""

import felix

from kit import NAMESPACE, TENANT, ask, cache, changes, connect, equal, main, scenario, until


@scenario("kill.a_watch_ends_and_another_takes_up_from_its_offset")
def watch():
    """Of a node that ends without a word the client resumes no watch; its last offset is enough to."""
    name, everything = cache(), felix.CacheWatchFilter.prefix("")
    with connect() as client:
        watch = client.watch_cache(TENANT, NAMESPACE, name, everything)
        for n in range(5):
            client.cache_put(TENANT, NAMESPACE, name, f"k{n}", b"before")
        client.cache_delete(TENANT, NAMESPACE, name, "k0")
        last = changes(watch, 6)[-1]
        equal(last, ("k0", None, 5))
        ask("restart")
        with connect() as other:
            for n in range(3):
                other.cache_put(TENANT, NAMESPACE, name, f"k{n}", b"after")
        # It ends without a word: no exception, and nothing it did not get.
        equal(list(watch), [], "changes after the loss")
        again = until(lambda: client.watch_cache(TENANT, NAMESPACE, name, everything, start=last[2] + 1))
        equal((again.resume_offset, again.resnapshot), (9, False))
        equal(changes(again, 3), [(f"k{n}", b"after", 6 + n) for n in range(3)])
        until(lambda: client.cache_put(TENANT, NAMESPACE, name, "k9", b"live"))
        equal(changes(again, 1)[0][:2], ("k9", b"live"))
        fresh_one = client.watch_cache(TENANT, NAMESPACE, name, everything, retained=True)
        equal(fresh_one.retained_count, 6)
        state = {k: v for k, v, _ in changes(fresh_one, 6)}
    equal(state, {"k0": b"after", "k1": b"after", "k2": b"after", "k3": b"before", "k4": b"before", "k9": b"live"})


main()
