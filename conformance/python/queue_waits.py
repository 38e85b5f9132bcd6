"""Polls that wait: what wakes them, and what becomes of those that are cancelled.

A claim of this node stands for ten minutes: in none of these scenarios does one lapse.
"""

import asyncio
import threading
import time

from kit import (
    NAMESPACE,
    TENANT,
    ack,
    bury,
    claim,
    connect,
    connect_async,
    equal,
    filled,
    main,
    nack,
    queue,
    scenario,
)


@scenario("queue.a_waiting_poll_is_woken_by_a_publish")
def woken():
    """However long it waited before: a poll that found nothing returns with what comes."""
    name, results = queue(), {}
    with connect() as client, connect() as publisher:

        def work(n):
            results[n] = client.group_poll(TENANT, NAMESPACE, name, 0, f"g{n % 4}", wait=30)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        # Two of each group wait: the one that is woken leaves the other its turn.
        for payload in (b"first", b"second"):
            for n in range(20):
                publisher.publish(TENANT, NAMESPACE, name, payload + b"%d" % n)
            if payload == b"first":
                deadline = time.monotonic() + 20
                while len(results) < 4:
                    assert time.monotonic() < deadline, f"{len(results)} polls returned"
                    time.sleep(0.01)
        for thread in threads:
            thread.join()
        equal(sorted(results), list(range(8)))
        for n, records in results.items():
            assert records, f"poll {n} returned empty"
        for group in range(4):
            offsets = [r.offset for n in (group, group + 4) for r in results[n]]
            equal(len(set(offsets)), len(offsets), f"records of group {group} that went out twice")


@scenario("queue.a_waiting_poll_is_woken_by_a_nack")
def woken_by_nack():
    with connect() as client, connect() as other:
        name = filled(client, 1)
        (record,) = claim(client, name, 1)
        result = []
        thread = threading.Thread(target=lambda: result.extend(other.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=30)))
        thread.start()
        time.sleep(0.5)
        nack(client, name, record)
        thread.join()
        equal([(r.offset, r.attempts) for r in result], [(0, 2)])


@scenario("queue.a_waiting_poll_gets_a_redriven_record")
def woken_by_redrive():
    with connect() as client, connect() as other:
        name = filled(client, 1)
        bury(client, name, 0)
        result = []
        thread = threading.Thread(target=lambda: result.extend(other.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=30)))
        thread.start()
        time.sleep(0.5)
        client.group_redrive(TENANT, NAMESPACE, name, 0, "g", 0)
        thread.join()
        equal([(r.offset, r.attempts) for r in result], [(0, 1)])


@scenario("queue.many_polls_at_once_of_one_client")
def many():
    """Each has a stream of its own; none keeps another, or an ack, from its answer."""
    names, results = [queue() for _ in range(3)], []
    lock = threading.Lock()
    with connect() as client:

        def work(n):
            records = client.group_poll(TENANT, NAMESPACE, names[n % 3], 0, "g", max_records=1, wait=30)
            for r in records:
                ack(client, names[n % 3], r.offset)
            with lock:
                results.append((n % 3, [r.offset for r in records]))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(90)]
        for thread in threads:
            thread.start()
        for n in range(30):
            for name in names:
                client.publish(TENANT, NAMESPACE, name, b"%d" % n)
        for thread in threads:
            thread.join()
        equal(sorted(results), sorted((q, [n]) for q in range(3) for n in range(30)))


@scenario("queue.a_cancelled_poll_takes_nothing")
def cancelled():
    name = queue()

    async def scene():
        async with await connect_async() as client:
            polls = [asyncio.ensure_future(client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=30)) for _ in range(3)]
            await asyncio.sleep(0.5)
            for poll in polls:
                poll.cancel()
            await asyncio.gather(*polls, return_exceptions=True)
            equal([poll.cancelled() for poll in polls], [True] * 3)
            await asyncio.sleep(0.5)
            # What the client does next arrives after its word that it no longer waits.
            equal(await client.group_dead_letters(TENANT, NAMESPACE, name, 0, "g"), [])
            for n in range(3):
                await client.publish(TENANT, NAMESPACE, name, b"%d" % n)
        with connect() as other:
            equal([(r.offset, r.attempts) for r in claim(other, name, 3)], [(n, 1) for n in range(3)])

    asyncio.run(scene())


main()
