"""Streams: what is published arrives, once, in order, where it was asked for."""

from kit import NAMESPACE, TENANT, connect, equal, fresh, main, quiet, scenario, take


@scenario("pubsub.roundtrip")
def roundtrip():
    stream = fresh()
    with connect() as client:
        with client.subscribe(TENANT, NAMESPACE, stream) as events:
            client.publish(TENANT, NAMESPACE, stream, b"hello")
            (event,) = take(events, 1)
    equal(event.payload, b"hello")
    equal((event.tenant_id, event.namespace, event.stream), (TENANT, NAMESPACE, stream))
    equal(event.skipped_before, 0)


@scenario("pubsub.iteration")
def iteration():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        for n in range(3):
            client.publish(TENANT, NAMESPACE, stream, b"%d" % n)
        got = []
        for event in events:
            got.append(event.payload)
            if len(got) == 3:
                break
    equal(got, [b"0", b"1", b"2"])


@scenario("pubsub.order")
def order():
    stream = fresh()
    count = 500
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        for n in range(count):
            client.publish(TENANT, NAMESPACE, stream, b"%d" % n, ack="none")
        client.publish(TENANT, NAMESPACE, stream, b"end")
        got = [e.payload for e in take(events, count + 1)]
    equal(got, [b"%d" % n for n in range(count)] + [b"end"])


@scenario("pubsub.offsets_are_contiguous")
def contiguous():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        for n in range(100):
            client.publish(TENANT, NAMESPACE, stream, b"%d" % n)
        offsets = [e.offset for e in take(events, 100)]
    assert None not in offsets, f"offsets missing: {offsets[:5]}"
    equal(offsets, list(range(offsets[0], offsets[0] + 100)), "offsets")
    return f"first offset {offsets[0]}"


@scenario("pubsub.two_subscribers_agree")
def two_subscribers():
    stream = fresh()
    with connect() as one, connect() as two:
        with one.subscribe(TENANT, NAMESPACE, stream) as a, two.subscribe(TENANT, NAMESPACE, stream) as b:
            for n in range(20):
                one.publish(TENANT, NAMESPACE, stream, b"%d" % n)
            seen = [[(e.offset, e.payload) for e in take(s, 20)] for s in (a, b)]
    equal(seen[0], seen[1])


@scenario("pubsub.start_latest")
def start_latest():
    stream = fresh()
    with connect() as client:
        client.publish(TENANT, NAMESPACE, stream, b"before")
        with client.subscribe(TENANT, NAMESPACE, stream, start="latest") as events:
            client.publish(TENANT, NAMESPACE, stream, b"after")
            equal(take(events, 1)[0].payload, b"after")
            quiet(events)


@scenario("pubsub.start_earliest")
def start_earliest():
    stream = fresh()
    with connect() as client:
        for n in range(10):
            client.publish(TENANT, NAMESPACE, stream, b"%d" % n)
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            equal([e.payload for e in take(events, 10)], [b"%d" % n for n in range(10)])
            client.publish(TENANT, NAMESPACE, stream, b"live")
            equal(take(events, 1)[0].payload, b"live")


@scenario("pubsub.earliest_of_an_empty_stream")
def earliest_of_empty():
    stream = fresh()
    with connect() as client:
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            quiet(events)
            client.publish(TENANT, NAMESPACE, stream, b"first")
            equal(take(events, 1)[0].payload, b"first")


@scenario("pubsub.resume_from_offset")
def resume():
    stream = fresh()
    with connect() as client:
        for n in range(10):
            client.publish(TENANT, NAMESPACE, stream, b"%d" % n)
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            first = take(events, 4)
        with client.subscribe(TENANT, NAMESPACE, stream, start=first[-1].offset + 1) as events:
            rest = take(events, 6)
    equal([e.payload for e in rest], [b"%d" % n for n in range(4, 10)])
    equal(rest[0].offset, first[-1].offset + 1, "offset")


@scenario("pubsub.resume_at_the_tail")
def resume_at_tail():
    stream = fresh()
    with connect() as client:
        client.publish(TENANT, NAMESPACE, stream, b"old")
        with client.subscribe(TENANT, NAMESPACE, stream, start="earliest") as events:
            tail = take(events, 1)[0].offset + 1
        with client.subscribe(TENANT, NAMESPACE, stream, start=tail) as events:
            client.publish(TENANT, NAMESPACE, stream, b"new")
            (event,) = take(events, 1)
    equal((event.payload, event.offset), (b"new", tail))


@scenario("pubsub.empty_payload")
def empty_payload():
    stream = fresh()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        for payload in (b"", b"x", b""):
            client.publish(TENANT, NAMESPACE, stream, payload)
        equal([e.payload for e in take(events, 3)], [b"", b"x", b""])


@scenario("pubsub.any_bytes")
def any_bytes():
    stream = fresh()
    payload = bytes(range(256)) * 3 + b"FLX1\x00\x01"
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        client.publish(TENANT, NAMESPACE, stream, payload)
        equal(take(events, 1)[0].payload, payload)


@scenario("pubsub.large_payload")
def large_payload():
    stream = fresh()
    payload = bytes(n * 7 % 251 for n in range(1 << 20))
    with connect() as client, client.subscribe(TENANT, NAMESPACE, stream) as events:
        client.publish(TENANT, NAMESPACE, stream, payload)
        client.publish(TENANT, NAMESPACE, stream, b"small")
        big, small = take(events, 2)
    assert big.payload == payload, f"{len(big.payload)} bytes differ from the {len(payload)} sent"
    equal(small.payload, b"small")


main()
