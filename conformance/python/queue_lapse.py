"""Queues whose claims lapse soon, on a log that is cut soon.

The node lets a claim stand for less than a second, a poll wait for a second at most, and gives a
record up after five deliveries.
"""

import time

import felix

from kit import NAMESPACE, TENANT, ack, claim, connect, equal, expect, filled, main, nack, scenario


def worked_off(client, name, wanted, timeout=30.0):
    """Polls and finishes until all wanted offsets have come. Returns what came, by offset."""
    got, deadline = {}, time.monotonic() + timeout
    while set(got) < wanted:
        assert time.monotonic() < deadline, f"{sorted(got)} of {sorted(wanted)} within {timeout} s"
        for r in client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=1):
            got.setdefault(r.offset, []).append(r.attempts)
            ack(client, name, r.offset)
    return got


@scenario("queue.unacknowledged_records_are_redelivered")
def lapse():
    with connect() as client, connect() as other:
        name = filled(client, 6)
        equal([(r.offset, r.attempts) for r in claim(client, name, 6)], [(n, 1) for n in range(6)])
        for n in (1, 4):
            ack(client, name, n)
        # Nobody hands anything back: the claims lapse, for anybody.
        got = worked_off(other, name, {0, 2, 3, 5})
        equal(sorted(got), [0, 2, 3, 5])
        for offset, attempts in got.items():
            equal(attempts, list(range(2, 2 + len(attempts))), f"attempts of {offset}")
        equal(client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=1), [])


@scenario("queue.a_client_that_is_gone_keeps_nothing")
def gone():
    with connect() as other:
        name = filled(other, 3)
        client = connect()
        equal(len(claim(client, name, 3, consumer="w")), 3)
        del client
        equal(sorted(worked_off(other, name, {0, 1, 2})), [0, 1, 2])


@scenario("queue.a_nack_after_the_lapse_is_refused")
def late():
    with connect() as client, connect() as other:
        name = filled(client, 1)
        (first,) = claim(client, name, 1)
        (second,) = claim(other, name, 1)
        equal((first.attempts, second.attempts), (1, 2))
        error = expect(felix.FelixError, lambda: nack(client, name, first), "stale_claim", "fatal")
        # What was done was done: an ack counts, whoever holds the record now.
        ack(client, name, 0)
        equal(other.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=1), [])
        equal(other.group_dead_letters(TENANT, NAMESPACE, name, 0, "g"), [])
    return str(error)


@scenario("queue.lapses_end_in_the_dead_letters")
def poison():
    with connect() as client:
        name, seen = filled(client, 2), []
        deadline = time.monotonic() + 40
        while client.group_dead_letters(TENANT, NAMESPACE, name, 0, "g") != [0]:
            assert time.monotonic() < deadline, f"not given up after {seen}"
            for r in client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=1):
                if r.offset == 0:
                    seen.append(r.attempts)  # and never a word of it
                else:
                    ack(client, name, r.offset)
        equal(seen, [1, 2, 3, 4, 5], "deliveries of a record that nobody finishes")
        equal(client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=1), [])


@scenario("queue.a_wait_is_capped_by_the_node")
def capped():
    with connect() as client:
        name = filled(client, 0)
        equal(client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=1e9), [])


@scenario("queue.what_retention_took_is_skipped")
def retention():
    with connect() as client:
        name, sent = filled(client, 0), 0
        deadline = time.monotonic() + 30
        while True:
            for _ in range(64):
                client.publish(TENANT, NAMESPACE, name, b"x" * 1024, ack="none")
            sent = client.publish(TENANT, NAMESPACE, name, b"end") + 1
            try:
                client.subscribe(TENANT, NAMESPACE, name, start=0).close()
            except felix.CursorError:
                break
            assert time.monotonic() < deadline, "retention took nothing"
        (first,) = claim(client, name, 1, max_records=1)
        assert 0 < first.offset < sent, f"first record {first.offset} of {sent}"
        # Nobody can tell the offsets that are gone from ones that were never there, but by this.
        equal((first.skipped_before, first.attempts), (first.offset, 1))
        ack(client, name, 0)  # below the cursor by now
        (second,) = claim(client, name, 1, max_records=1)
        assert second.offset > first.offset or second.attempts == 2
        # The rest comes without a further gap, but for what is taken meanwhile.
        got = worked_off(client, name, {sent - 1})
        assert min(got) > 0
    return f"{first.offset} of {sent} records gone"


main()
