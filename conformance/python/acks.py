"""Publishing: every acknowledgement mode, with and without a key."""

import threading

import felix

from kit import DURABLE, NAMESPACE, TENANT, connect, equal, fresh, main, scenario, take

MODES = ("none", "per_message", "per_batch")


def offsets(events):
    """What publishes of every mode return: an offset once the record is on the log.

    A stream without a log yields none, and one is never invented.
    """
    return [e.offset if DURABLE and mode != "none" else None for mode, e in zip(MODES, events)]


def publish_each(client, stream, **kwargs):
    return [
        client.publish(TENANT, NAMESPACE, stream, mode.encode(), ack=mode, **kwargs) for mode in MODES
    ]


@scenario("ack.every_mode")
def every_mode():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        got = publish_each(client, stream)
        heard = take(events, 3)
    equal([e.payload for e in heard], [m.encode() for m in MODES])
    equal(got, offsets(heard), "offsets")


@scenario("ack.every_mode_with_a_key")
def every_mode_keyed():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        for key in (b"k", b"", b"\x00\xff" * 100, "schlüssel".encode()):
            got = publish_each(client, stream, key=key)
            heard = take(events, 3)
            equal([e.payload for e in heard], [m.encode() for m in MODES])
            equal(got, offsets(heard), "offsets")


@scenario("ack.default_mode")
def default_mode():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        offset = client.publish(TENANT, NAMESPACE, stream, b"x")
        (event,) = take(events, 1)
        equal(event.payload, b"x")
        equal(offset, event.offset if DURABLE else None, "offset")


@scenario("ack.none_does_not_wait_for_the_broker")
def none():
    stream = fresh()
    count = 300
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        got = [client.publish(TENANT, NAMESPACE, stream, b"%d" % n, ack="none") for n in range(count)]
        equal(set(got), {None})
        equal([e.payload for e in take(events, count)], [b"%d" % n for n in range(count)])


@scenario("ack.per_message_means_the_broker_accepted_it")
def per_message():
    stream = fresh()
    with connect() as writer, connect() as reader:
        for n in range(20):
            writer.publish(TENANT, NAMESPACE, stream, b"%d" % n, ack="per_message")
            # Acknowledged before anybody looks: whoever looks now finds it.
            with reader.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
                equal([e.payload for e in take(events, n + 1)][-1], b"%d" % n)


@scenario("ack.at_least_once_delivers")
def at_least_once():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        for n in range(20):
            client.publish(TENANT, NAMESPACE, stream, b"%d" % n, at_least_once=True)
        got = [e.payload for e in take(events, 20)]
    # With no failure on the way there is nothing to send again.
    equal(got, [b"%d" % n for n in range(20)])


@scenario("ack.at_least_once_takes_no_key")
def at_least_once_key():
    with connect() as client:
        try:
            client.publish(TENANT, NAMESPACE, fresh(), b"x", key=b"k", at_least_once=True)
        except ValueError as error:
            return str(error)
    raise AssertionError("a keyed at-least-once publish was accepted")


@scenario("ack.many_outstanding")
def many_outstanding():
    """More publishes under way at once than the publish window holds."""
    stream = fresh()
    threads, each = 16, 40
    failures = []
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:

        def work(name):
            try:
                for n in range(each):
                    client.publish(TENANT, NAMESPACE, stream, b"%d/%d" % (name, n))
            except felix.FelixError as error:
                failures.append(repr(error))

        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for worker in workers:
            worker.start()
        got = [e.payload for e in take(events, threads * each)]
        for worker in workers:
            worker.join()
    equal(failures, [])
    for name in range(threads):
        mine = [p for p in got if p.startswith(b"%d/" % name)]
        equal(mine, [b"%d/%d" % (name, n) for n in range(each)], f"order of thread {name}")


main()
