"""Loss of a broker in memory: nothing hangs, nothing ends as if it were complete."""

import time

import felix

from kit import NAMESPACE, TENANT, ask, connect, equal, fresh, main, scenario, take, until


def outcome(subscription, marker, seconds=30.0):
    """What became of a subscription whose broker was lost.

    Either an error, or the marker arrives. Silence and a quiet end are the two
    ways to lie.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            event = subscription.next_event(timeout=1.0)
        except felix.FelixError as error:
            return error
        if event is not None and event.payload == marker:
            return event
        assert not subscription.closed, "the subscription ended as if it were complete"
    raise AssertionError(f"neither an error nor the marker within {seconds} s")


def marker_forever(client, stream, marker):
    """Publishes the marker now and then: a resumed subscription may start late."""
    import threading

    stop = threading.Event()

    def loop():
        while not stop.wait(0.2):
            try:
                client.publish(TENANT, NAMESPACE, stream, marker)
            except felix.FelixError:
                pass

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()

    def end():
        stop.set()
        thread.join()

    return end


@scenario("reconnect.survives_broker_loss")
def survives():
    stream = fresh()
    with connect() as client:
        client.publish(TENANT, NAMESPACE, stream, b"before")
        ask("restart")
        until(lambda: client.publish(TENANT, NAMESPACE, stream, b"after"))
        with client.subscribe(TENANT, NAMESPACE, stream) as events:
            client.publish(TENANT, NAMESPACE, stream, b"x")
            equal(take(events, 1)[0].payload, b"x")


@scenario("reconnect.at_least_once_rides_over_a_restart")
def at_least_once():
    stream = fresh()
    with connect() as client:
        client.publish(TENANT, NAMESPACE, stream, b"before", at_least_once=True)
        ask("restart")
        client.publish(TENANT, NAMESPACE, stream, b"after", at_least_once=True)
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            equal(take(events, 1)[0].payload, b"after")


@scenario("reconnect.cache_survives_broker_loss")
def cache():
    name = fresh("c")
    with connect() as client:
        ask("create_cache", name=name)
        client.cache_put(TENANT, NAMESPACE, name, "k", b"v")
        ask("restart")
        ask("create_cache", name=name)
        until(lambda: client.cache_get(TENANT, NAMESPACE, name, "k"))
        client.cache_put(TENANT, NAMESPACE, name, "k", b"w")
        equal(client.cache_get(TENANT, NAMESPACE, name, "k"), b"w")


@scenario("reconnect.an_idle_subscription_is_not_silently_ended")
def idle_subscription():
    stream = fresh()
    with connect() as client, connect() as other:
        subscription = client.subscribe(TENANT, NAMESPACE, stream)
        ask("restart")
        end = marker_forever(other, stream, b"marker")
        try:
            got = outcome(subscription, b"marker")
        finally:
            end()
    return f"{type(got).__name__}: {got if isinstance(got, Exception) else got.offset}"


@scenario("reconnect.a_lost_position_is_not_silently_moved")
def lost_position():
    """What the subscription had read is gone with the broker's memory."""
    stream = fresh()
    with connect() as client, connect() as other:
        subscription = client.subscribe(TENANT, NAMESPACE, stream)
        for n in range(5):
            client.publish(TENANT, NAMESPACE, stream, b"%d" % n)
        last = take(subscription, 5)[-1].offset
        ask("restart")
        end = marker_forever(other, stream, b"marker")
        try:
            got = outcome(subscription, b"marker")
        finally:
            end()
    if isinstance(got, felix.Event):
        # Going on is right only where no offset is used twice.
        assert got.offset is not None and got.offset > last, f"resumed at {got.offset} after {last}"
    else:
        assert isinstance(got, (felix.CursorError, felix.ConnectionError)), repr(got)
    return f"{type(got).__name__}: {got if isinstance(got, Exception) else got.offset}"


@scenario("sharded.a_lost_shard_is_surfaced")
def lost_shard():
    stream = fresh()
    with connect() as client:
        ask("create_stream", name=stream, shards=3)
        subscription = client.subscribe_sharded(TENANT, NAMESPACE, stream)
        ask("restart")
        ask("create_stream", name=stream, shards=3)
        lost = set()
        deadline = time.monotonic() + 30
        while len(lost) < 3:
            assert time.monotonic() < deadline, f"only shards {sorted(lost)} were reported lost"
            try:
                item = subscription.next_event(timeout=1.0)
            except felix.FelixError as error:
                return f"{type(error).__name__}: {error}"
            if isinstance(item, felix.ShardLost):
                lost.add(item.shard)
            assert item is not None or not subscription.closed, "the subscription ended as if it were complete"
    return f"lost {sorted(lost)}"


main()
