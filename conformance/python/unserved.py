"""Requests no node serves yet: the client refuses them itself and goes on working."""

from kit import NAMESPACE, TENANT, connect, fresh, main, refused, scenario, still_works


@scenario("unserved.queues")
def queues():
    stream = fresh()
    with connect() as client:
        text = refused(
            [
                lambda: client.group_poll(TENANT, NAMESPACE, stream, 0, "g", wait=0),
                lambda: client.group_ack(TENANT, NAMESPACE, stream, 0, "g", 0),
                lambda: client.group_dead_letters(TENANT, NAMESPACE, stream, 0, "g"),
                lambda: client.group_discard(TENANT, NAMESPACE, stream, 0, "g", 0),
                lambda: client.group_redrive(TENANT, NAMESPACE, stream, 0, "g", 0),
            ]
        )
        still_works(client)
    return text


main()
