"""Queues: records claimed by one worker at a time, finished, handed back, given up.

A claim of this node stands for ten minutes: in none of these scenarios does one lapse.
"""

import asyncio
import threading

import felix

from kit import (
    MAX_ATTEMPTS,
    NAMESPACE,
    NODE,
    TENANT,
    ack,
    ask,
    bury,
    claim,
    connect,
    connect_async,
    equal,
    expect,
    filled,
    fresh,
    letters,
    main,
    nack,
    nothing,
    queue,
    scenario,
)


@scenario("queue.poll_returns_claimed_records")
def claims():
    with connect() as client, connect() as other:
        name = filled(client, 7)
        first = claim(client, name, 3, max_records=3)
        equal([(r.offset, r.payload, r.attempts, r.skipped_before) for r in first], [(n, b"%d" % n, 1, 0) for n in range(3)])
        # Claimed is not there for others, nor for the same client again.
        equal([r.offset for r in claim(other, name, 2, max_records=2)], [3, 4])
        equal([r.offset for r in claim(client, name, 2)], [5, 6])
        for c in (client, other):
            nothing(c, name)
        equal(client.publish(TENANT, NAMESPACE, name, b"late"), 7)
        equal([r.payload for r in claim(other, name, 1)], [b"late"])


@scenario("queue.acknowledged_records_are_not_redelivered")
def acknowledged():
    with connect() as client, connect() as other:
        name = filled(client, 10)
        records = claim(client, name, 10)
        for n in (7, 0, 3, 2, 9):
            ack(client, name, n)
        # What was not finished is handed back, and comes again: that alone.
        for n in (1, 4, 5, 6, 8):
            nack(client, name, records[n])
        again = claim(other, name, 5)
        equal([(r.offset, r.payload, r.attempts) for r in again], [(n, b"%d" % n, 2) for n in (1, 4, 5, 6, 8)])
        for r in again:
            ack(other, name, r.offset)
        nothing(client, name)
        # The cursor is on the log by now, and past all of them.
        ask("restart")
    with connect() as client:
        equal(client.publish(TENANT, NAMESPACE, name, b"next"), 10)
        equal([(r.offset, r.attempts) for r in claim(client, name, 1)], [(10, 1)])


@scenario("queue.settling_again_is_harmless")
def again():
    with connect() as client, connect() as other:
        name = filled(client, 3)
        records = claim(client, name, 3)
        for _ in range(3):
            ack(client, name, 1)
            ack(other, name, 1)
        ack(other, name, 0)  # whoever holds it
        for c in (client, other):
            ack(c, name, 0)
        # A nack names its delivery, and none of these stands.
        for r in records[:2]:
            expect(felix.FelixError, lambda: nack(client, name, r), "stale_claim", "fatal")
        nack(client, name, records[2])
        expect(felix.FelixError, lambda: nack(client, name, records[2]), "stale_claim", "fatal")
        (second,) = claim(other, name, 1)
        equal((second.offset, second.attempts), (2, 2))
        error = expect(felix.FelixError, lambda: nack(client, name, records[2]), "stale_claim", "fatal")
        nothing(client, name)
        nack(other, name, second)
        equal([(r.offset, r.attempts) for r in claim(client, name, 1)], [(2, 3)])
        ack(other, name, 2)
        nothing(client, name)
    return str(error)


@scenario("queue.settling_what_nobody_has_is_typed")
def nobody():
    with connect() as client:
        name = filled(client, 3)
        equal([r.offset for r in claim(client, name, 1, max_records=1)], [0])
        for offset in (3, 4, 2**63, 2**64 - 1):
            error = expect(felix.FelixError, lambda: ack(client, name, offset), "invalid_request", "fatal")
        # In the log, but never handed out.
        expect(felix.FelixError, lambda: ack(client, name, 2), "invalid_request", "fatal")
        equal([r.offset for r in claim(client, name, 2)], [1, 2])
        for n in range(3):
            ack(client, name, n)
        nothing(client, name)
    return str(error)


@scenario("queue.groups_are_apart")
def groups():
    with connect() as client:
        name = filled(client, 4)
        for group in ("a", "b", "ü", "x" * 253):
            records = claim(client, name, 4, group)
            equal([(r.offset, r.attempts) for r in records], [(n, 1) for n in range(4)], f"records of group {group}")
        for n in range(4):
            ack(client, name, n, "a")
        nothing(client, name, "a")
        expect(felix.FelixError, lambda: ack(client, name, 0, "never"), "invalid_request", "fatal")
        equal(len(claim(client, name, 4, "new")), 4)


@scenario("queue.a_poll_of_nothing_is_empty")
def empty():
    with connect() as client:
        name = queue()
        for wait in (0, 0.0005, 0.3, -1):
            equal(client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=wait), [])
        client.publish(TENANT, NAMESPACE, name, b"x")
        equal([r.offset for r in claim(client, name, 1)], [0])


@scenario("queue.each_record_goes_to_one_client_at_a_time")
def workers():
    name, failures, seen = queue(), [], []
    count, lock = 600, threading.Lock()

    def work(n):
        try:
            with connect() as client:
                while True:
                    with lock:
                        if len(seen) >= count:
                            return
                    records = client.group_poll(TENANT, NAMESPACE, name, 0, "g", max_records=1 + n, wait=0.5)
                    with lock:
                        seen.extend((r.offset, r.payload, r.attempts) for r in records)
                    for r in records:
                        ack(client, name, r.offset)
        except BaseException as error:
            failures.append(f"worker {n}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    with connect() as client:
        for n in range(count):
            client.publish(TENANT, NAMESPACE, name, b"%d" % n, ack="per_message" if n % 50 == 0 else "none")
        for thread in threads:
            thread.join()
        equal(failures, [])
        equal(sorted(seen), sorted((n, b"%d" % n, 1) for n in range(count)))
        nothing(client, name)


@scenario("queue.every_shard_is_a_queue")
def shards():
    name = queue(shards=4)
    with connect() as client:
        keys = [b"customer-%d" % n for n in range(40)]
        for k in keys:
            client.publish(TENANT, NAMESPACE, name, k, key=k)
        equal(client.stream_shards(TENANT, NAMESPACE, name), 4)
        got = []
        for shard in range(4):
            records = client.group_poll(TENANT, NAMESPACE, name, shard, "g", max_records=100, wait=0)
            equal([r.offset for r in records], list(range(len(records))), f"offsets of shard {shard}")
            got += [r.payload for r in records]
            for r in records[:-1]:
                ack(client, name, r.offset, shard=shard)
            nack_last = records[-1]
            client.group_nack(TENANT, NAMESPACE, name, shard, "g", nack_last)
            equal([r.offset for r in claim(client, name, 1, shard=shard)], [nack_last.offset])
        equal(sorted(got), sorted(keys))
        for shard in (4, 2**32 - 1):
            error = expect(felix.FelixError, lambda: nothing(client, name, shard=shard), "invalid_request", "fatal")
    return str(error)


@scenario("queue.a_member_reclaims_its_records")
def reclaims():
    with connect() as old:
        name = filled(old, 6)
        mine = claim(old, name, 3, max_records=3, consumer="w")
        equal([r.offset for r in claim(old, name, 1, max_records=1, consumer="v")], [3])
        with connect() as other:
            # Of another name, or without one, it is an ordinary poll.
            equal([r.offset for r in claim(other, name, 1, max_records=1, consumer="x", reclaim=True)], [4])
            equal([r.offset for r in claim(other, name, 1, max_records=1, reclaim=True)], [5])
        with connect() as new:
            got = claim(new, name, 2, max_records=2, consumer="w", reclaim=True)
            got += claim(new, name, 1, consumer="w")
            equal([(r.offset, r.attempts) for r in got], [(n, 2) for n in range(3)], "what the member had")
            # What the connection took over stays taken over.
            equal(new.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=0, consumer="w", reclaim=True), [])
            for r in mine:
                expect(felix.FelixError, lambda: nack(old, name, r), "stale_claim", "fatal")
            for r in got:
                ack(new, name, r.offset)
            nothing(new, name)


@scenario("queue.names_of_members_are_bounded")
def member_names():
    with connect() as client:
        name = filled(client, 1)
        for consumer in ("", "x" * 129, "ü" * 65):
            for reclaim in (False, True):
                poll = lambda: client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=0, consumer=consumer, reclaim=reclaim)
                error = expect(felix.FelixError, poll, "invalid_request", "fatal")
        equal([r.attempts for r in claim(client, name, 1, consumer="ü" * 64, reclaim=True)], [1])
    return str(error)


@scenario("queue.dead_letters_are_listable_and_redrivable")
def dead_letters():
    with connect() as client, connect() as other:
        name = filled(client, 3)
        equal(letters(client, name), [])
        bury(client, name, 0)
        equal(letters(client, name), [0])
        bury(client, name, 1)
        equal(letters(other, name), [0, 1])
        # One poisoned record does not stand in the way of the next.
        equal([(r.offset, r.attempts) for r in claim(client, name, 1)], [(2, 1)])
        ack(client, name, 2)
        nothing(client, name)
        # The record is where it was.
        with client.subscribe(TENANT, NAMESPACE, name, start=0) as events:
            equal(events.next_event(timeout=20).payload, b"0")
        equal(letters(client, name, "another"), [])

        other.group_redrive(TENANT, NAMESPACE, name, 0, "g", 0)
        equal(letters(client, name), [1])
        (record,) = claim(client, name, 1)
        equal((record.offset, record.payload, record.attempts), (0, b"0", 1))
        ack(client, name, 0)
        nothing(client, name)
        equal(letters(client, name), [1])
        # And may fail again.
        client.group_redrive(TENANT, NAMESPACE, name, 0, "g", 1)
        bury(client, name, 1)
        equal(letters(client, name), [1])
        client.group_discard(TENANT, NAMESPACE, name, 0, "g", 1)
        equal(letters(client, name), [])
        nothing(client, name)
        for call in (client.group_discard, client.group_redrive):
            for offset in (0, 1, 2, 3, 2**64 - 1):
                error = expect(felix.NotFoundError, lambda: call(TENANT, NAMESPACE, name, 0, "g", offset), "not_found")
    return str(error)


@scenario("queue.any_payload")
def payloads():
    sent = [b"", bytes(range(256)), b"\xff" * 70_000] + [bytes([n]) * (1 << 20) for n in range(9)]
    with connect() as client:
        name = queue()
        for payload in sent:
            client.publish(TENANT, NAMESPACE, name, payload)
        first = client.group_poll(TENANT, NAMESPACE, name, 0, "g", max_records=100, wait=0)
        assert 3 < len(first) < len(sent), f"{len(first)} records in one answer"
        got = first + claim(client, name, len(sent) - len(first))
        equal([(r.offset, r.payload == sent[r.offset], r.attempts) for r in got], [(n, True, 1) for n in range(len(sent))])


@scenario("queue.a_record_too_long_for_a_poll")
def too_long():
    """As base64 it is longer than a frame. It keeps nobody from the records behind it."""
    with connect() as client:
        name = queue()
        client.publish(TENANT, NAMESPACE, name, b"x" * (13 << 20))
        client.publish(TENANT, NAMESPACE, name, b"behind")
        poll = lambda: client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=0)
        error = expect(felix.FelixError, poll, "limit_exceeded", "retry")
        equal([(r.offset, r.payload) for r in poll()], [(1, b"behind")])
        ack(client, name, 1)
        # It can be read where it is, and settled by its offset.
        with client.subscribe(TENANT, NAMESPACE, name, start=0) as events:
            equal(len(events.next_event(timeout=20).payload), 13 << 20)
        ack(client, name, 0)
        nothing(client, name)
    return str(error)


@scenario("queue.what_a_commit_enqueues_is_polled")
def enqueued():
    with connect() as client:
        name = queue()
        receipt = client.commit(
            TENANT, NAMESPACE, b"order-7", [felix.CommitOp.enqueue(name, b"job"), felix.CommitOp.put(name, "state", b"new")]
        )
        equal([(r.offset, r.payload) for r in claim(client, name, 1)], [(receipt.offset, b"job")])


@scenario("queue.refusals_are_typed")
def refusals():
    nowhere, name, memory = fresh("nowhere"), queue(), fresh("m")
    ask("create_memory_stream", name=memory)

    def calls(client, stream, group="g"):
        return [
            lambda: client.group_poll(TENANT, NAMESPACE, stream, 0, group, wait=0),
            lambda: client.group_ack(TENANT, NAMESPACE, stream, 0, group, 0),
            lambda: client.group_dead_letters(TENANT, NAMESPACE, stream, 0, group),
            lambda: client.group_redrive(TENANT, NAMESPACE, stream, 0, group, 0),
            lambda: client.group_discard(TENANT, NAMESPACE, stream, 0, group, 0),
        ]

    with connect() as client:
        client.publish(TENANT, NAMESPACE, name, b"x")
        for call in calls(client, nowhere):
            expect(felix.NotFoundError, call, "not_found", "retry_after")
        for call in calls(client, memory):
            expect(felix.FelixError, call, "invalid_request", "fatal")
        for group in ("", "a/b", "a b", "*", ".", "x" * 254):
            for call in calls(client, name, group):
                expect(felix.FelixError, call, "invalid_request", "fatal")
        expect(felix.AuthError, lambda: client.group_poll("t2", NAMESPACE, name, 0, "g", wait=0), "forbidden", "fatal")
        (record,) = claim(client, name, 1)
    with connect(token=NODE["tokens"]["write_only"]) as client:
        for call in calls(client, name) + [lambda: nack(client, name, record)]:
            error = expect(felix.AuthError, call, "forbidden", "fatal")
    # To read a stream is to work through it, not to rule over its groups.
    with connect(token=NODE["tokens"]["read_only"]) as client:
        nack(client, name, record)
        equal([r.attempts for r in claim(client, name, 1)], [2])
        ack(client, name, 0)
        equal(letters(client, name), [])
        for call in calls(client, name)[3:]:
            expect(felix.AuthError, call, "forbidden", "fatal")
        nothing(client, name)
    return str(error)


@scenario("queue.async")
def asynchronous():
    name = queue()

    async def scene():
        async with await connect_async() as client:
            poll = lambda **kw: client.group_poll(TENANT, NAMESPACE, name, 0, "g", **kw)
            waiting = asyncio.ensure_future(poll(wait=30))
            await asyncio.sleep(0.3)
            for n in range(5):
                await client.publish(TENANT, NAMESPACE, name, b"%d" % n)
            records = await waiting
            while len(records) < 5:
                records += await poll(wait=5, consumer="w")
            equal([(r.offset, r.payload, r.attempts) for r in records], [(n, b"%d" % n, 1) for n in range(5)])
            await asyncio.gather(*(client.group_ack(TENANT, NAMESPACE, name, 0, "g", n) for n in range(1, 5)))
            record = records[0]
            for attempt in range(1, MAX_ATTEMPTS + 1):
                equal((record.offset, record.attempts), (0, attempt))
                await client.group_nack(TENANT, NAMESPACE, name, 0, "g", record)
                got = await poll(wait=0)
                equal(len(got), 1 if attempt < MAX_ATTEMPTS else 0)
                record = got[0] if got else None
            equal(await client.group_dead_letters(TENANT, NAMESPACE, name, 0, "g"), [0])
            await client.group_redrive(TENANT, NAMESPACE, name, 0, "g", 0)
            equal([(r.offset, r.attempts) for r in await poll(wait=30)], [(0, 1)])
            try:
                await client.group_ack(TENANT, NAMESPACE, name, 0, "g", 5)
            except felix.FelixError as error:
                equal((error.code, error.retry), ("invalid_request", "fatal"))
            else:
                raise AssertionError("an ack past the tail was accepted")
            try:
                await client.group_discard(TENANT, NAMESPACE, name, 0, "g", 0)
            except felix.NotFoundError as error:
                equal(error.code, "not_found")
            else:
                raise AssertionError("what is not listed was discarded")
            await client.group_ack(TENANT, NAMESPACE, name, 0, "g", 0)
            equal(await poll(wait=0), [])

    asyncio.run(scene())


main()
