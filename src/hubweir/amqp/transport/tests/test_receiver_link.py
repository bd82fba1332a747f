from __future__ import annotations

import tracemalloc

import pytest

from hubweir.amqp.endpoint import EndpointSettings
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Rejected, TransactionalState
from hubweir.amqp.transport.events import (
    DeliveriesReceived,
    Drained,
    LinkDetached,
    OversizeReceived,
    TransactionalReceived,
)
from hubweir.amqp.transport.performatives import Detach, Disposition, Flow, Transfer
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import attached, frame, raw, transfer, written
from hubweir.testing.served import feed, served


def up(side: Side) -> ReceiverLink:
    link = side.link("up")
    assert isinstance(link, ReceiverLink)
    return link


def part(more: bool, *, delivery_id: int | None, payload: bytes, settled: bool | None = None) -> bytes:
    tag = None if delivery_id is None else b"t"
    return frame(
        Transfer(handle=0, delivery_id=delivery_id, delivery_tag=tag, message_format=5, more=more, settled=settled),
        payload,
    )


def test_the_deliveries_of_one_read_are_one_event() -> None:
    side = served()
    feed(side, b"".join(transfer(number, b"x" * number) for number in range(100)))
    (event,) = [event for event in side.events if isinstance(event, DeliveriesReceived)]
    assert event.count == 100
    assert [entry.delivery_id for entry in side.deliveries()] == list(range(100))
    assert [len(entry.payload) for entry in side.deliveries()] == list(range(100))


def test_deliveries_of_two_links_in_one_read_are_one_event_each() -> None:
    side = served(links=2)
    feed(side, b"".join(transfer(number, handle=number % 2) for number in range(40)))
    events = [event for event in side.events if isinstance(event, DeliveriesReceived)]
    assert [(event.link.name, event.count) for event in events] == [("up0", 20), ("up1", 20)]
    assert [link.unsettled_count for link in side.endpoint.sessions[0].links] == [20, 20]


def test_another_event_between_keeps_the_order() -> None:
    side = served(links=2)
    feed(side, transfer(0) + frame(Detach(handle=1, closed=True)) + transfer(1))
    kinds = [type(event).__name__ for event in side.events[-3:]]
    assert kinds == ["DeliveriesReceived", "LinkDetached", "DeliveriesReceived"]


@pytest.mark.parametrize("repeat_id", [True, False])
def test_a_split_delivery_is_joined_whether_or_not_its_id_is_repeated(repeat_id: bool) -> None:
    side = served()
    number = 4 if repeat_id else None
    feed(
        side,
        transfer(3)
        + part(True, delivery_id=4, payload=b"a" * 100)
        + part(True, delivery_id=number, payload=b"b" * 100)
        + part(False, delivery_id=number, payload=b"c" * 100)
        + transfer(5),
    )
    said = side.deliveries()
    assert [entry.delivery_id for entry in said] == [3, 4, 5]
    assert (said[1].payload, said[1].message_format) == (b"a" * 100 + b"b" * 100 + b"c" * 100, 5)
    assert up(side).unsettled_count == 3


def test_a_delivery_is_settled_when_any_of_its_frames_says_so() -> None:
    side = served()
    feed(
        side,
        part(True, delivery_id=0, payload=b"a", settled=False)
        + part(False, delivery_id=None, payload=b"b", settled=True),
    )
    assert side.deliveries()[0].settled
    assert up(side).unsettled_count == 0


def test_an_aborted_delivery_leaves_nothing_and_counts() -> None:
    side = served()
    feed(side, part(True, delivery_id=0, payload=b"a" * 1_000) + frame(Transfer(handle=0, aborted=True)) + transfer(1))
    assert [entry.delivery_id for entry in side.deliveries()] == [1]
    up(side).grant(1)
    ((_, flow),) = written(side.drain())
    assert isinstance(flow, Flow) and flow.delivery_count == 2


def test_a_payload_of_the_limit_is_taken_and_one_byte_more_is_reported_as_oversize() -> None:
    side = served(max_message_size=1_000)
    feed(side, transfer(0, b"x" * 1_000) + transfer(1, b"x" * 1_001) + transfer(2, b"y", settled=True))
    oversize = [event for event in side.events if isinstance(event, OversizeReceived)]
    assert [(event.delivery_id, event.size, event.settled) for event in oversize] == [(1, 1_001, False)]
    assert [entry.delivery_id for entry in side.deliveries()] == [0, 2]
    up(side).settle(1, 1, Rejected(error=AmqpError(condition="amqp:link:message-size-exceeded", description="big")))
    ((_, disposition),) = written(side.drain())
    assert isinstance(disposition, Disposition) and disposition.settled and disposition.first == 1


def test_an_endless_delivery_holds_no_more_than_the_limit() -> None:
    side = served(max_message_size=100_000)
    feed(side, part(True, delivery_id=0, payload=b"x" * 60_000))
    tracemalloc.start()
    for _ in range(300):
        feed(side, part(True, delivery_id=None, payload=b"x" * 60_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    feed(side, part(False, delivery_id=None, payload=b"x") + transfer(1))
    assert side.said[-2:] == [("oversize", "up", 0, 301 * 60_000 + 1, False), side.deliveries()[-1]]


def test_unfinished_deliveries_of_all_links_share_one_budget() -> None:
    side = served(links=3, max_message_size=50_000, settings=EndpointSettings("server", max_partial_bytes=100_000))
    for handle in range(3):
        tag = handle.to_bytes(4, "big")
        begun = Transfer(handle=handle, delivery_id=handle, delivery_tag=tag, message_format=0, more=True)
        feed(side, frame(begun, b"x" * 40_000))
    detached = [event for event in side.events if isinstance(event, LinkDetached)]
    assert [event.link.name for event in detached] == ["up2"]
    assert detached[0].error is not None and detached[0].error.condition == "amqp:resource-limit-exceeded"
    feed(side, frame(Transfer(handle=0), b"") + frame(Transfer(handle=1), b""))
    assert len(side.deliveries()) == 2


def test_one_delivery_of_the_largest_size_of_its_link_fits_whatever_the_budget_of_all() -> None:
    side = served(links=2, max_message_size=200_000, settings=EndpointSettings("server", max_partial_bytes=100_000))
    begun = Transfer(handle=0, delivery_id=0, delivery_tag=b"0", message_format=0, more=True)
    for _ in range(4):
        feed(side, frame(begun, b"x" * 49_000))
    feed(side, frame(Transfer(handle=0), b""))
    assert [len(delivery.payload) for delivery in side.deliveries()] == [4 * 49_000]

    for handle in range(2):
        more = Transfer(handle=handle, delivery_id=handle + 1, delivery_tag=b"more", message_format=0, more=True)
        for _ in range(3):
            feed(side, frame(more, b"x" * 40_000))
    detached = [event for event in side.events if isinstance(event, LinkDetached)]
    assert [event.link.name for event in detached] == ["up1"]


def test_a_link_that_is_not_accepted_yet_may_begin_64_kib_only() -> None:
    side = served(accepts=False)
    feed(side, part(True, delivery_id=0, payload=b"x" * 40_000))
    assert side.link("up").state.name == "ATTACH_RECEIVED"
    feed(side, part(True, delivery_id=0, payload=b"x" * 20_000) + part(False, delivery_id=0, payload=b"x" * 10_000))
    assert side.said[-1] == ("oversize", "up", 0, 70_000, False)


def test_transfers_without_credit_are_taken_and_credit_never_falls_below_zero() -> None:
    side = served()
    assert up(side).credit == 0
    feed(side, transfer(0) + transfer(1))
    assert (len(side.deliveries()), up(side).credit) == (2, 0)
    up(side).grant(10)
    feed(side, transfer(2))
    assert up(side).credit == 9


def test_a_grant_goes_out_as_a_flow_with_all_its_fields() -> None:
    side = served()
    link = up(side)
    link.grant(10)
    feed(side, b"".join(transfer(number) for number in range(5)))
    side.drain()
    link.grant(10)
    ((_, flow),) = written(side.drain())
    assert isinstance(flow, Flow)
    assert (flow.handle, flow.link_credit, flow.delivery_count, flow.drain) == (link.handle, 10, 5, False)
    assert None not in (flow.next_incoming_id, flow.incoming_window, flow.next_outgoing_id, flow.outgoing_window)


def test_credit_granted_before_the_answer_goes_out_with_it() -> None:
    side = served(accepts=False)
    link = up(side)
    link.grant(7)
    assert written(side.drain()) == []
    link.accept(max_message_size=5)
    attach, flow = (performative for _, performative in written(side.drain()))
    assert isinstance(flow, Flow) and flow.link_credit == 7


def test_one_disposition_settles_a_range_and_only_what_this_link_has_open() -> None:
    side = served(links=2)
    feed(side, b"".join(transfer(number, handle=int(number == 3), settled=number == 5) for number in range(8)))
    first = side.endpoint.sessions[0].links[0]
    assert isinstance(first, ReceiverLink)
    first.settle(0, 7, Accepted())
    dispositions = [performative for _, performative in written(side.drain())]
    assert dispositions == [
        Disposition(role=True, first=low, last=high, settled=True, state=Accepted())
        for low, high in ((0, 2), (4, 4), (6, 7))
    ]
    first.settle(0, 7, Accepted())
    assert written(side.drain()) == [], "what is settled is forgotten"


def test_the_senders_own_settlement_is_counted() -> None:
    side = served()
    feed(side, b"".join(transfer(number) for number in range(6)))
    feed(side, frame(Disposition(role=False, first=1, last=4, settled=True)))
    assert up(side).unsettled_count == 2
    feed(side, frame(Disposition(role=False, first=0, settled=False)))
    assert up(side).unsettled_count == 2


def test_too_many_unsettled_deliveries_end_the_link() -> None:
    side = served(settings=EndpointSettings("server", max_unsettled=50))
    feed(side, b"".join(transfer(number) for number in range(50)))
    assert up(side).unsettled_count == 50
    feed(side, transfer(50, settled=True))
    feed(side, transfer(51))
    assert isinstance(side.events[-1], LinkDetached)
    assert side.events[-1].error is not None
    assert side.events[-1].error.condition == "amqp:resource-limit-exceeded"


def test_what_comes_after_our_detach_is_dropped_until_the_peer_answers() -> None:
    side = served()
    link = up(side)
    link.detach(AmqpError(condition="amqp:link:detach-forced", description="idle"))
    feed(side, transfer(0) + frame(Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=0)))
    assert side.deliveries() == []
    link.settle(0, 0, Accepted())
    link.grant(5)
    assert [type(performative) for _, performative in written(side.written)][-1] is Detach
    feed(side, frame(Detach(handle=0, closed=True)))
    assert side.said[-1] == ("detached", "up", None, True)
    feed(side, attached_again())
    assert side.said[-1] == ("attached", "up"), "handle and name are free again"


def attached_again() -> bytes:
    start = attached()
    attach = start[start.index(b"\x00\x53\x12") - 8 :]
    return attach[: int.from_bytes(attach[:4], "big")]


def test_a_drain_that_the_sender_answers_ends_the_credit() -> None:
    side = served()
    link = up(side)
    link.grant(10, drain=True)
    flow = Flow(
        incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=0, delivery_count=10, link_credit=0, drain=True
    )
    feed(side, transfer(0, settled=True) + frame(flow))
    assert link.credit == 0
    assert side.events[-1] == Drained(link), "behind the deliveries that came before"
    side.drain()
    link.grant(3)
    ((_, answer),) = written(side.drain())
    assert isinstance(answer, Flow) and answer.delivery_count == 10


def test_an_echo_of_the_sender_is_answered_with_the_links_credit() -> None:
    side = served()
    up(side).grant(10)
    feed(side, transfer(0))
    begun = len(side.written)
    flow = Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=0, link_credit=10_000, echo=True)
    feed(side, frame(flow) + raw(b""))
    ((_, answer),) = written(side.written[begun:])
    assert isinstance(answer, Flow)
    assert (answer.link_credit, answer.delivery_count, answer.echo) == (9, 1, False)


IN_TRANSACTION = TransactionalState(txn_id=b"txn")


def transactional(delivery_id: int, *, more: bool = False, settled: bool = False) -> Transfer:
    return Transfer(
        handle=0, delivery_id=delivery_id, delivery_tag=b"t", message_format=0, more=more, settled=settled,
        state=IN_TRANSACTION,
    )  # fmt: skip


def test_a_delivery_of_a_transaction_is_an_event_of_its_own_between_those_before_and_behind_it() -> None:
    side = served()
    feed(
        side,
        transfer(0)
        + frame(transactional(1), b"whole")
        + transfer(2)
        + frame(transactional(3, more=True), b"in ")
        + part(False, delivery_id=None, payload=b"two frames")
        + transfer(4),
    )
    said = [
        event if isinstance(event, TransactionalReceived) else event.rows[0]
        for event in side.events
        if isinstance(event, DeliveriesReceived | TransactionalReceived)
    ]
    whole, parted = said[1], said[3]
    assert isinstance(whole, TransactionalReceived) and isinstance(parted, TransactionalReceived)
    assert [said[0], said[2], said[4]] == [0, 2, 4]
    assert (whole.state, bytes(whole.data), whole.rows[0]) == (IN_TRANSACTION, b"whole", 1)
    assert (parted.state, bytes(parted.data), parted.rows[0]) == (IN_TRANSACTION, b"in two frames", 3)
    up(side).settle(0, 4, TransactionalState(txn_id=b"txn", outcome=Accepted()))
    assert up(side).unsettled_count == 0


def test_an_oversize_delivery_of_a_transaction_says_so() -> None:
    side = served(max_message_size=100)
    feed(side, frame(transactional(0, settled=True), b"x" * 101))
    (event,) = [event for event in side.events if isinstance(event, OversizeReceived)]
    assert (event.settled, event.transaction) == (True, IN_TRANSACTION)
