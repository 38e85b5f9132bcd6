"""Queues of a node that ends and comes back: what was finished stays so, the rest comes again."""

import threading
import time

import felix

from kit import (
    MAX_ATTEMPTS,
    NAMESPACE,
    TENANT,
    ack,
    ask,
    bury,
    claim,
    connect,
    equal,
    expect,
    filled,
    letters,
    main,
    nack,
    nothing,
    scenario,
    until,
)


@scenario("queue.finished_records_stay_finished")
def finished():
    with connect() as client:
        name = filled(client, 20)
        claim(client, name, 20)
        for n in range(10):
            ack(client, name, n)
    ask("restart")
    with connect() as client:
        # Nobody holds the others now; that they went out once is known.
        got = claim(client, name, 10)
        equal([(r.offset, r.payload, r.attempts) for r in got], [(n, b"%d" % n, 2) for n in range(10, 20)])
        for n in range(20):
            ack(client, name, n)
        nothing(client, name)
    ask("restart")
    with connect() as client:
        nothing(client, name)
        equal(client.publish(TENANT, NAMESPACE, name, b"next"), 20)
        equal([(r.offset, r.attempts) for r in claim(client, name, 1)], [(20, 1)])


@scenario("queue.claims_of_the_node_before_may_be_settled")
def late_settles():
    """The worker lived, the node did not: what it finished in between counts."""
    with connect() as client:
        name = filled(client, 4)
        records = claim(client, name, 4)
    ask("restart")
    with connect() as client:
        ack(client, name, 1)
        ack(client, name, 0)
        # Of its delivery nobody knows any more.
        error = expect(
            felix.FelixError, lambda: client.group_nack(TENANT, NAMESPACE, name, 0, "g", records[2]), "stale_claim", "fatal"
        )
        equal([r.offset for r in claim(client, name, 2)], [2, 3])
    return str(error)


@scenario("queue.dead_letters_and_redrives_are_there")
def dead_letters():
    with connect() as client:
        name = filled(client, 3)
        for offset in range(3):
            bury(client, name, offset)
        equal(letters(client, name), [0, 1, 2])
    ask("restart")
    with connect() as client:
        equal(letters(client, name), [0, 1, 2])
        nothing(client, name)
        client.group_discard(TENANT, NAMESPACE, name, 0, "g", 1)
        client.group_redrive(TENANT, NAMESPACE, name, 0, "g", 2)
        equal(letters(client, name), [0])
        equal([(r.offset, r.payload, r.attempts) for r in claim(client, name, 1)], [(2, b"2", 1)])
    ask("restart")
    with connect() as client:
        # It went out and was not finished: it is still owed.
        equal(letters(client, name), [0])
        equal([r.offset for r in claim(client, name, 1)], [2])
        ack(client, name, 2)
    ask("restart")
    with connect() as client:
        equal(letters(client, name), [0])
        nothing(client, name)


@scenario("queue.poison_and_a_node_that_dies_of_it")
def poison():
    """Deliveries are counted across the node's ends, or one record would go on ending it for ever."""
    with connect() as client:
        name = filled(client, 1)
        for attempt in (1, 2, 3):
            (record,) = claim(client, name, 1)
            equal(record.attempts, attempt)
            if attempt < 3:
                nack(client, name, record)
    for attempt in range(4, MAX_ATTEMPTS + 1):
        ask("restart")
        with connect() as client:
            equal([(r.offset, r.attempts) for r in claim(client, name, 1)], [(0, attempt)])
    ask("restart")
    with connect() as client:
        nothing(client, name)
        equal(letters(client, name), [0])
        nothing(client, name)


@scenario("queue.a_poll_that_waits_when_the_node_ends")
def waiting():
    """Answered empty, or its connection is lost; it takes nothing along either way."""
    with connect() as client:
        name = filled(client, 1)
        claim(client, name, 1)
        ack(client, name, 0)
        outcome = []

        def wait():
            try:
                outcome.append([r.offset for r in client.group_poll(TENANT, NAMESPACE, name, 0, "g", wait=30)])
            except felix.ConnectionError as error:
                outcome.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.5)
        ask("restart")
        with connect() as other:
            equal(other.publish(TENANT, NAMESPACE, name, b"next"), 1)
            equal([(r.offset, r.attempts) for r in claim(other, name, 1)], [(1, 1)])
            ack(other, name, 1)
        thread.join()
        assert outcome[0] == [] or isinstance(outcome[0], str), f"the poll of before got {outcome}"
        # The client of before finds the node by itself.
        until(lambda: nothing(client, name))
    return str(outcome[0])


@scenario("queue.workers_go_on")
def workers():
    count, lock = 120, threading.Lock()
    seen, failures = {}, []
    with connect() as client:
        name = filled(client, 1)

    def work(n):
        try:
            with connect() as client:
                while True:
                    with lock:
                        if len(seen) >= count:
                            return
                    records = until(lambda: client.group_poll(TENANT, NAMESPACE, name, 0, "g", max_records=4, wait=1))
                    for r in records:
                        with lock:
                            seen.setdefault(r.payload, []).append(r.attempts)
                        until(lambda: ack(client, name, r.offset))
        except BaseException as error:
            failures.append(f"worker {n}: {type(error).__name__}: {error}")

    def write():
        try:
            with connect() as client:
                for n in range(1, count):
                    client.publish(TENANT, NAMESPACE, name, b"%d" % n, at_least_once=True)
                    time.sleep(0.005)
        except BaseException as error:
            failures.append(f"writer: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)] + [threading.Thread(target=write)]
    for thread in threads:
        thread.start()
    while len(seen) < 20 and not failures:
        time.sleep(0.01)
    ask("restart")
    for thread in threads:
        thread.join()
    equal(failures, [])
    equal(sorted(seen, key=int), [b"%d" % n for n in range(count)])
    return f"{sum(len(a) for a in seen.values())} deliveries of {count} records"


main()
