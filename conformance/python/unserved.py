"""Requests a node in memory does not serve.

It does not advertise them, so the client refuses them itself, in words that
name what is missing, and goes on working.
"""

import felix

from kit import NAMESPACE, TENANT, ask, connect, equal, fresh, main, scenario


def cache():
    name = fresh("c")
    ask("create_cache", name=name)
    return name


def refused(calls):
    """Runs calls, each of which must be refused in words that say what lacks."""
    texts = []
    for call in calls:
        try:
            result = call()
        except felix.FelixError as error:
            equal(error.code, None, "code of a local refusal")
            assert "this broker does not" in str(error), f"unclear refusal: {error}"
            texts.append(str(error))
        else:
            raise AssertionError(f"answered {result!r}")
    return "; ".join(sorted(set(texts)))


def still_works(client):
    name = cache()
    client.cache_put(TENANT, NAMESPACE, name, "k", b"v")
    equal(client.cache_get(TENANT, NAMESPACE, name, "k"), b"v")
    client.publish(TENANT, NAMESPACE, fresh(), b"x")


@scenario("unserved.queues")
def queues():
    stream = fresh()
    with connect() as client:
        text = refused(
            [
                lambda: client.group_poll(TENANT, NAMESPACE, stream, 0, "g", wait=0),
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


@scenario("commit.another_stream_is_refused")
def another_stream():
    """Refused by the client itself, whatever the broker serves."""
    with connect() as client:
        for kind, ops in (
            (felix.NotOnOwningShardError, [felix.CommitOp.publish("a", b"x"), felix.CommitOp.put("b", "k", b"v")]),
            (felix.EventCountError, [felix.CommitOp.put("a", "k", b"v")]),
            (felix.EventCountError, [felix.CommitOp.publish("a", b"x"), felix.CommitOp.publish("a", b"y")]),
        ):
            try:
                client.commit(TENANT, NAMESPACE, b"e", ops)
            except felix.FelixError as error:
                assert type(error) is kind, repr(error)
            else:
                raise AssertionError(f"{kind.__name__} expected")


main()
