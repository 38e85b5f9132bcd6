"""Failures: the class, code and retry class a caller branches on."""

import time

import felix

from kit import DURABLE, NAMESPACE, NODE, TENANT, ask, cache, connect, equal, expect, fresh, main, scenario, take


def stream(shards=1):
    name = fresh()
    ask("create_stream", name=name, shards=shards)
    return name


@scenario("error.unknown_stream_is_typed")
def unknown_stream():
    name, good = fresh("nowhere"), stream()
    with connect() as client:
        expect(felix.NotFoundError, lambda: client.publish(TENANT, NAMESPACE, name, b"x"), "not_found", "retry_after")
        expect(
            felix.NotFoundError,
            lambda: client.publish(TENANT, NAMESPACE, name, b"x", key=b"k"),
            "not_found",
            "retry_after",
        )
        error = expect(felix.NotFoundError, lambda: client.subscribe(TENANT, NAMESPACE, name), "not_found")
        equal(client.stream_shards(TENANT, NAMESPACE, name), 0, "shards of an unknown stream")
        expect(felix.FelixError, lambda: client.subscribe_sharded(TENANT, NAMESPACE, name))
        if DURABLE:
            for call in (
                lambda: client.commit(TENANT, NAMESPACE, b"e", [felix.CommitOp.publish(name, b"x")]),
                lambda: client.state_get(TENANT, NAMESPACE, name, b"e", "k"),
            ):
                expect(felix.NotFoundError, call, "not_found", "retry_after")
        # The refusals cost the client nothing it needs.
        client.publish(TENANT, NAMESPACE, good, b"x")
    return str(error)


@scenario("error.unknown_stream_without_ack_is_silent")
def unknown_stream_unacked():
    good = stream()
    with connect() as client, client.subscribe(TENANT, NAMESPACE, good) as events:
        for _ in range(3):
            equal(client.publish(TENANT, NAMESPACE, fresh("nowhere"), b"x", ack="none"), None)
        client.publish(TENANT, NAMESPACE, good, b"still here")
        equal(take(events, 1)[0].payload, b"still here")


@scenario("error.unknown_cache_is_typed")
def unknown_cache():
    name, good = fresh("nowhere"), cache()
    with connect() as client:
        calls = [
            lambda: client.cache_put(TENANT, NAMESPACE, name, "k", b"v"),
            lambda: client.cache_get(TENANT, NAMESPACE, name, "k"),
            lambda: client.cache_delete(TENANT, NAMESPACE, name, "k"),
        ]
        if DURABLE:
            calls += [
                lambda: client.counter_add(TENANT, NAMESPACE, name, "k", 1),
                lambda: client.counter_get(TENANT, NAMESPACE, name, "k"),
                lambda: client.watch_cache(TENANT, NAMESPACE, name, felix.CacheWatchFilter.key("k")),
            ]
        for call in calls:
            expect(felix.NotFoundError, call, "not_found", "retry_after")
        client.cache_put(TENANT, NAMESPACE, good, "k", b"v")
        equal(client.cache_get(TENANT, NAMESPACE, good, "k"), b"v")


@scenario("error.unauthorized_is_typed")
def unauthorized():
    s, c = stream(), cache()
    with connect(token=NODE["tokens"]["read_only"]) as client:
        for call in (
            lambda: client.publish(TENANT, NAMESPACE, s, b"x"),
            lambda: client.publish(TENANT, NAMESPACE, s, b"x", key=b"k"),
            lambda: client.publish(TENANT, NAMESPACE, s, b"x", at_least_once=True),
            lambda: client.cache_put(TENANT, NAMESPACE, c, "k", b"v"),
            lambda: client.cache_delete(TENANT, NAMESPACE, c, "k"),
        ):
            error = expect(felix.AuthError, call, "forbidden", "fatal")
            assert "forbidden" in str(error).lower(), f"no word of the refusal: {error}"
        with client.subscribe(TENANT, NAMESPACE, s):
            pass
        equal(client.cache_get(TENANT, NAMESPACE, c, "k"), None)
    with connect(token=NODE["tokens"]["write_only"]) as client:
        expect(felix.AuthError, lambda: client.subscribe(TENANT, NAMESPACE, s), "forbidden", "fatal")
        expect(felix.AuthError, lambda: client.cache_get(TENANT, NAMESPACE, c, "k"), "forbidden", "fatal")
        client.publish(TENANT, NAMESPACE, s, b"x")
        client.cache_put(TENANT, NAMESPACE, c, "k", b"v")


@scenario("error.foreign_tenant_is_typed")
def foreign_tenant():
    """Refused by the client itself for all but subscriptions and discovery."""
    s, texts = stream(), []
    with connect() as client:
        for call in (
            lambda: client.publish("t2", NAMESPACE, s, b"x"),
            lambda: client.cache_get("t2", NAMESPACE, "c", "k"),
            lambda: client.subscribe("t2", NAMESPACE, s),
            lambda: client.stream_shards("t2", NAMESPACE, s),
        ):
            try:
                call()
            except felix.FelixError as error:
                assert "tenant mismatch" in str(error), f"unclear refusal: {error!r}"
                texts.append(f"{type(error).__name__}({error.code}): {error}")
            else:
                raise AssertionError("a foreign tenant was let in")
        client.publish(TENANT, NAMESPACE, s, b"x")
    return "; ".join(texts)


@scenario("error.bad_token_is_typed")
def bad_token():
    for token in ("", "garbage", NODE["token"][:-4] + "AAAA", NODE["tokens"]["expired"]):
        expect(felix.AuthError, lambda: connect(token=token), "unauthenticated", "fatal")
    expect(
        felix.AuthError,
        lambda: felix.Client(NODE["addr"], tenant_id="t2", token=NODE["token"], ca_file=NODE["ca"]),
        "unauthenticated",
    )


@scenario("error.bad_offset_is_typed")
def bad_offset():
    s = stream()
    with connect() as client:
        client.publish(TENANT, NAMESPACE, s, b"x")
        with client.subscribe(TENANT, NAMESPACE, s, start="earliest") as events:
            offset = take(events, 1)[0].offset
        future = expect(felix.CursorError, lambda: client.subscribe(TENANT, NAMESPACE, s, start=offset + 2))
        assert str(offset + 1) in str(future), f"the tail {offset + 1} is not named: {future}"
        expect(felix.CursorError, lambda: client.subscribe(TENANT, NAMESPACE, s, start=2**63))
        if offset > 0:
            old = expect(felix.CursorError, lambda: client.subscribe(TENANT, NAMESPACE, s, start=0))
            assert str(offset) in str(old), f"the oldest offset {offset} is not named: {old}"
            return f"{future} / {old}"
    return str(future)


@scenario("error.too_old_offset_is_typed")
def too_old():
    """More is published than the stream keeps: in its ring, or in its log."""
    s = stream()
    deadline = time.monotonic() + 30
    with connect() as client:
        with client.subscribe(TENANT, NAMESPACE, s) as events:
            client.publish(TENANT, NAMESPACE, s, b"first")
            first = take(events, 1)[0].offset
        while True:
            for _ in range(NODE["ring"] + 8):
                client.publish(TENANT, NAMESPACE, s, b"x" * 500, ack="none")
            client.publish(TENANT, NAMESPACE, s, b"last")
            try:
                client.subscribe(TENANT, NAMESPACE, s, start=first).close()
            except felix.CursorError:
                break
            assert time.monotonic() < deadline, "the first record is still there"
            time.sleep(0.1)
        # The log may be cut once more between the two looks.
        while True:
            error = expect(felix.CursorError, lambda: client.subscribe(TENANT, NAMESPACE, s, start=first))
            with client.subscribe(TENANT, NAMESPACE, s, start="earliest") as events:
                oldest = take(events, 1)[0].offset
            if str(oldest) in str(error):
                break
            assert time.monotonic() < deadline, f"the oldest offset {oldest} is not named: {error}"
    equal((error.code, error.retry), (None, None), "code of a cursor error")
    assert oldest > first, f"oldest {oldest}, first {first}"
    return str(error)


@scenario("error.bad_names_are_refused")
def bad_names():
    good, failures = stream(), []
    with connect() as client:
        for name in ("", "a/b", "a:b", "a*", "a#", "a b", "a\nb", ".", "..", "x" * 254):
            for call in (
                lambda: client.publish(TENANT, NAMESPACE, name, b"x"),
                lambda: client.subscribe(TENANT, NAMESPACE, name),
                lambda: client.cache_get(TENANT, NAMESPACE, name, "k"),
            ):
                try:
                    expect(felix.FelixError, call, "invalid_request", "fatal")
                except AssertionError as error:
                    failures.append(f"name {name[:8]!r}: {error}")
        client.publish(TENANT, NAMESPACE, good, b"x")
    equal(failures, [])


main()
