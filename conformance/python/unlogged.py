"""Requests that need a log, to a node in memory: the client refuses them itself."""

import felix

from kit import NAMESPACE, TENANT, cache, connect, fresh, main, refused, scenario, still_works


@scenario("unserved.queues")
def queues():
    stream = fresh()
    with connect() as client:
        text = refused(
            [
                lambda: client.group_poll(TENANT, NAMESPACE, stream, 0, "g", wait=0),
                lambda: client.group_poll(TENANT, NAMESPACE, stream, 0, "g", wait=0, consumer="w", reclaim=True),
                lambda: client.group_ack(TENANT, NAMESPACE, stream, 0, "g", 0),
                lambda: client.group_dead_letters(TENANT, NAMESPACE, stream, 0, "g"),
                lambda: client.group_discard(TENANT, NAMESPACE, stream, 0, "g", 0),
                lambda: client.group_redrive(TENANT, NAMESPACE, stream, 0, "g", 0),
            ]
        )
        still_works(client)
    return text


@scenario("unserved.counters")
def counters():
    name = cache()
    with connect() as client:
        text = refused(
            [
                lambda: client.counter_add(TENANT, NAMESPACE, name, "k", 1),
                lambda: client.counter_get(TENANT, NAMESPACE, name, "k"),
            ]
        )
        still_works(client)
    return text


@scenario("unserved.watches")
def watches():
    name = cache()
    with connect() as client:
        text = refused(
            [
                lambda: client.watch_cache(TENANT, NAMESPACE, name, felix.CacheWatchFilter.key("k")),
                lambda: client.watch_cache(TENANT, NAMESPACE, name, felix.CacheWatchFilter.prefix("")),
                lambda: client.watch_cache(
                    TENANT, NAMESPACE, name, felix.CacheWatchFilter.key("k"), retained=True
                ),
            ]
        )
        still_works(client)
    return text


@scenario("unserved.commits")
def commits():
    stream = fresh()
    with connect() as client:
        text = refused(
            [
                lambda: client.commit(
                    TENANT, NAMESPACE, b"e", [felix.CommitOp.publish(stream, b"x"), felix.CommitOp.put(stream, "k", b"v")]
                ),
                lambda: client.state_get(TENANT, NAMESPACE, stream, b"e", "k"),
            ]
        )
        still_works(client)
    return text


main()
