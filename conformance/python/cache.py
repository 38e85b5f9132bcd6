"""Caches: last value by key, with expiry."""

import time

import felix

from kit import NAMESPACE, TENANT, cache, connect, equal, main, scenario


@scenario("cache.put_get")
def put_get():
    name = cache()
    with connect() as client, connect() as other:
        equal(client.cache_put(TENANT, NAMESPACE, name, "k", b"one"), None)
        equal(client.cache_get(TENANT, NAMESPACE, name, "k"), b"one")
        equal(other.cache_get(TENANT, NAMESPACE, name, "k"), b"one", "another client's view")
        client.cache_put(TENANT, NAMESPACE, name, "k", b"two")
        equal(other.cache_get(TENANT, NAMESPACE, name, "k"), b"two")


@scenario("cache.miss_is_absent")
def miss():
    name = cache()
    with connect() as client:
        equal(client.cache_get(TENANT, NAMESPACE, name, "never"), None)


@scenario("cache.delete_returns_previous")
def delete():
    name = cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, name, "k", b"old")
        equal(client.cache_delete(TENANT, NAMESPACE, name, "k"), b"old")
        equal(client.cache_get(TENANT, NAMESPACE, name, "k"), None)
        equal(client.cache_delete(TENANT, NAMESPACE, name, "k"), None)
        equal(client.cache_delete(TENANT, NAMESPACE, name, "never"), None)


@scenario("cache.ttl_expires")
def ttl():
    name = cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, name, "stays", b"s", ttl=3600)
        client.cache_put(TENANT, NAMESPACE, name, "goes", b"g", ttl=0.2)
        client.cache_put(TENANT, NAMESPACE, name, "plain", b"p")
        deadline = time.monotonic() + 20
        while client.cache_get(TENANT, NAMESPACE, name, "goes") is not None:
            assert time.monotonic() < deadline, "a value with 200 ms to live is still there"
            time.sleep(0.02)
        equal(client.cache_get(TENANT, NAMESPACE, name, "stays"), b"s")
        equal(client.cache_get(TENANT, NAMESPACE, name, "plain"), b"p")
        equal(client.cache_delete(TENANT, NAMESPACE, name, "goes"), None, "delete of an expired key")


@scenario("cache.put_replaces_the_ttl")
def ttl_replaced():
    name = cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, name, "k", b"short", ttl=0.3)
        client.cache_put(TENANT, NAMESPACE, name, "k", b"for good")
        client.cache_put(TENANT, NAMESPACE, name, "witness", b"", ttl=0.3)
        deadline = time.monotonic() + 20
        while client.cache_get(TENANT, NAMESPACE, name, "witness") is not None:
            assert time.monotonic() < deadline, "a value with 300 ms to live is still there"
            time.sleep(0.02)
        equal(client.cache_get(TENANT, NAMESPACE, name, "k"), b"for good")


@scenario("cache.empty_value_is_not_absent")
def empty_value():
    name = cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, name, "k", b"")
        equal(client.cache_get(TENANT, NAMESPACE, name, "k"), b"")
        equal(client.cache_delete(TENANT, NAMESPACE, name, "k"), b"")
        equal(client.cache_get(TENANT, NAMESPACE, name, "k"), None)


@scenario("cache.any_key_and_value")
def any_key():
    name = cache()
    keys = ["a/b:c*#d", "schlüssel \U0001f511", 'q"uo\\te\n\t\x01', "x" * 65535, " "]
    values = [bytes(range(256)), b"\x00", "wert".encode(), b"y" * (1 << 20), b"=="]
    with connect() as client:
        for key, value in zip(keys, values):
            client.cache_put(TENANT, NAMESPACE, name, key, value)
        for key, value in zip(keys, values):
            assert client.cache_get(TENANT, NAMESPACE, name, key) == value, f"value of {key[:20]!r} differs"


@scenario("cache.caches_are_apart")
def apart():
    one, two = cache(), cache()
    with connect() as client:
        client.cache_put(TENANT, NAMESPACE, one, "k", b"one")
        equal(client.cache_get(TENANT, NAMESPACE, two, "k"), None)


@scenario("cache.a_refused_key_leaves_the_client_usable")
def refused_key():
    name = cache()
    with connect() as client:
        for key in ("", "x" * 65536):
            try:
                client.cache_put(TENANT, NAMESPACE, name, key, b"v")
            except felix.FelixError as error:
                equal((error.code, error.retry), ("invalid_request", "fatal"), f"refusal of a {len(key)}-byte key")
            else:
                raise AssertionError(f"a key of {len(key)} bytes was accepted")
        client.cache_put(TENANT, NAMESPACE, name, "k", b"v")
        equal(client.cache_get(TENANT, NAMESPACE, name, "k"), b"v")


main()
