"""What the scenario scripts share.

A script is started with one line of JSON on its standard input: how to reach
the node. It prints one JSON line a scenario:

    {"scenario": "pubsub.roundtrip", "ok": true, "detail": "..."}

Where a scenario needs something done to the node, it prints {"ask": ...} and
waits for a line of answer.
"""

import json
import os
import sys
import threading
import time
import traceback
import uuid

import felix

NODE = json.loads(sys.stdin.readline())
TENANT = NODE["tenant"]
NAMESPACE = NODE["namespace"]

# Whether streams and caches are on the log.
DURABLE = NODE["durable"]

# How often a group gets a record before it is given up: the default.
MAX_ATTEMPTS = 5

# No call of the client may take longer: it gives up on an answer after 30 s.
LIMIT = 45.0

_output = threading.Lock()
_scenarios = []


def say(message):
    with _output:
        print(json.dumps(message), flush=True)


def ask(what, **arguments):
    """Have the test do something to the node, and wait until it is done."""
    say({"ask": what, **arguments})
    answer = json.loads(sys.stdin.readline())
    if not answer.get("done"):
        raise RuntimeError(f"{what}: {answer}")


def scenario(name):
    """Registers a function as a scenario. What it returns goes into the detail."""

    def register(function):
        _scenarios.append((name, function))
        return function

    return register


def fresh(kind="s"):
    """A name no other scenario uses."""
    return f"{kind}-{uuid.uuid4().hex[:12]}"


def cache():
    """A cache of its own for a scenario."""
    name = fresh("c")
    ask("create_cache", name=name)
    return name


def connect(token=None, **kwargs):
    return felix.Client(
        NODE["addr"],
        tenant_id=TENANT,
        token=NODE["token"] if token is None else token,
        ca_file=NODE["ca"],
        **kwargs,
    )


async def connect_async(**kwargs):
    return await felix.AsyncClient.connect(
        NODE["addr"], tenant_id=TENANT, token=NODE["token"], ca_file=NODE["ca"], **kwargs
    )


def take(subscription, count, timeout=20.0):
    """The next count events. A subscription that ends or stays silent fails."""
    events = []
    deadline = time.monotonic() + timeout
    while len(events) < count:
        left = deadline - time.monotonic()
        if left <= 0:
            raise AssertionError(f"{len(events)} of {count} events within {timeout} s")
        event = subscription.next_event(timeout=left)
        if event is not None:
            events.append(event)
        elif subscription.closed:
            raise AssertionError(f"subscription ended after {len(events)} of {count} events")
    return events


def quiet(subscription, seconds=0.3):
    """Checks that nothing more arrives."""
    event = subscription.next_event(timeout=seconds)
    assert event is None, f"unexpected event {event.payload[:40]!r} at {event.offset}"


def changes(watch, count, timeout=20.0):
    """The next count changes of a watch, each as (key, value, offset)."""
    got = []
    deadline = time.monotonic() + timeout
    while len(got) < count:
        left = deadline - time.monotonic()
        assert left > 0, f"{len(got)} of {count} changes within {timeout} s: {got[-3:]!r}"
        item = watch.recv(timeout=left)
        if item is not None:
            assert isinstance(item, felix.CacheChange), f"{type(item).__name__} instead of a change"
            got.append((item.key, item.value, item.offset))
    return got


def queue(shards=1):
    """A stream of its own for groups."""
    name = fresh("q")
    ask("create_stream", name=name, shards=shards)
    return name


def filled(client, count):
    """A queue with count records, which say their offsets."""
    name = queue()
    for n in range(count):
        equal(client.publish(TENANT, NAMESPACE, name, b"%d" % n), n)
    return name


def claim(client, stream, count, group="g", shard=0, timeout=30.0, **kwargs):
    """Polls until count records have come. More than that fails."""
    got = []
    deadline = time.monotonic() + timeout
    while len(got) < count:
        assert time.monotonic() < deadline, f"{len(got)} of {count} records within {timeout} s"
        got += client.group_poll(TENANT, NAMESPACE, stream, shard, group, wait=2, **kwargs)
    equal(len(got), count, "records")
    return got


def nothing(client, stream, group="g", shard=0):
    """Checks that the group has nothing for anybody."""
    got = client.group_poll(TENANT, NAMESPACE, stream, shard, group, wait=0)
    equal([r.offset for r in got], [], "records for a poll")


def ack(client, stream, offset, group="g", shard=0):
    client.group_ack(TENANT, NAMESPACE, stream, shard, group, offset)


def nack(client, stream, record, group="g", shard=0):
    client.group_nack(TENANT, NAMESPACE, stream, shard, group, record)


def letters(client, stream, group="g"):
    return client.group_dead_letters(TENANT, NAMESPACE, stream, 0, group)


def bury(client, stream, offset):
    """Hands a record back until the group gives up on it. Nothing else may be owed."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        (record,) = claim(client, stream, 1, max_records=1)
        equal((record.offset, record.attempts), (offset, attempt))
        nack(client, stream, record)


def until(call, seconds=30.0):
    """Repeats call until it no longer raises a connection error."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return call()
        except felix.ConnectionError:
            assert time.monotonic() < deadline, f"still refused after {seconds} s"


def expect(kind, call, code=None, retry=None):
    """Runs call, which must raise that very class."""
    try:
        result = call()
    except felix.FelixError as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        assert code is None or error.code == code, f"code {error.code!r} instead of {code!r}: {error}"
        assert retry is None or error.retry == retry, f"class {error.retry!r} instead of {retry!r}: {error}"
        return error
    raise AssertionError(f"{kind.__name__} expected, got {result!r}")


def refused(calls):
    """Runs calls that the broker does not serve and so does not advertise.

    The client refuses them itself, in words that say what lacks.
    """
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
    """Checks that refusals cost the client nothing it needs."""
    name = cache()
    client.cache_put(TENANT, NAMESPACE, name, "k", b"v")
    equal(client.cache_get(TENANT, NAMESPACE, name, "k"), b"v")
    client.publish(TENANT, NAMESPACE, fresh(), b"x")


def equal(got, want, what="value"):
    assert got == want, f"{what}: got {got!r}, want {want!r}"


def _run(name, function):
    outcome = {}

    def body():
        try:
            outcome["detail"] = function()
            outcome["ok"] = True
        except BaseException as error:  # a panic in the extension is no Exception
            at = traceback.extract_tb(error.__traceback__)[-1]
            outcome["detail"] = f"{type(error).__name__}: {error} ({os.path.basename(at.filename)}:{at.lineno})"
            outcome["ok"] = False

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(LIMIT)
    if thread.is_alive():
        outcome = {"ok": False, "detail": f"still running after {LIMIT} s"}
    say({"scenario": name, "ok": outcome["ok"], "detail": str(outcome["detail"] or "")})


def main():
    for name, function in _scenarios:
        _run(name, function)
    # The extension's threads can abort an interpreter that winds down while
    # they still run; everything is said, so leave without winding down.
    sys.stdout.flush()
    os._exit(0)
