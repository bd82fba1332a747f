from __future__ import annotations

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Rejected
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.transport.events import Answered, Settled
from hubweir.amqp.transport.faults import SessionFault
from hubweir.amqp.transport.frame import SHORT_STATE_LIMIT_BYTES
from hubweir.amqp.transport.performatives import Attach, Detach, Disposition, Flow
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Symbol
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import frame, transfer, written
from hubweir.testing.served import feed, served


def test_a_range_that_ends_before_it_begins_is_a_fault_also_over_the_wrap() -> None:
    session = served().endpoint.sessions[0]
    session.settlement.receive(session, Disposition(role=True, first=2**32 - 1, last=3, settled=True))
    with pytest.raises(SessionFault):
        session.settlement.receive(session, Disposition(role=True, first=3, last=2**32 - 1, settled=True))


def test_the_widest_range_there_is_costs_nothing() -> None:
    side = served()
    feed(side, b"".join(transfer(number) for number in range(10)))
    session = side.endpoint.sessions[0]
    session.settlement.receive(session, Disposition(role=False, first=0, last=2**31 - 1, settled=True))
    assert len(session.settlement.received) == 0


def test_an_outcome_that_is_not_settled_leaves_the_delivery_open() -> None:
    side = served()
    feed(side, transfer(0) + transfer(1))
    link = side.link("up")
    assert isinstance(link, ReceiverLink)
    link.settle(0, 1, Accepted(), settled=False)
    link.settle(0, 1, Accepted())
    first, second = (performative for _, performative in written(side.drain()))
    assert isinstance(first, Disposition) and isinstance(second, Disposition)
    assert (first.settled, second.settled) == (False, True)
    assert link.unsettled_count == 0


def test_the_answers_of_a_sender_are_told_to_the_receiver_link_by_link() -> None:
    side = served(links=2)
    feed(side, b"".join(transfer(number, handle=number // 3) for number in range(6)))
    first, second = (side.link(name) for name in ("up0", "up1"))
    assert isinstance(first, ReceiverLink) and isinstance(second, ReceiverLink)
    first.settle(0, 2, Accepted(), settled=False)
    assert (first.unsettled_count, second.unsettled_count) == (3, 3)
    feed(side, frame(Disposition(role=False, first=1, last=4, settled=True, state=Accepted())))
    answers = [event for event in side.events if isinstance(event, Answered)]
    assert answers == [Answered(first, 1, 2, Accepted()), Answered(second, 3, 4, Accepted())]
    assert (first.unsettled_count, second.unsettled_count) == (1, 1)
    feed(side, frame(Disposition(role=False, first=1, last=4, settled=True, state=Accepted())))
    assert [event for event in side.events if isinstance(event, Answered)] == answers, "an answer counts once"


UNKNOWN = Rejected(error=None)


def sent_five(*, host_answers: bool) -> tuple[Side, SenderLink]:
    """A link to a receiver that settles second, with deliveries 0 to 4 unsettled."""
    side = served(
        attach=Attach(
            name="down", handle=0, role=True, rcv_settle_mode=1, source=Source(address="q"), target=Target(address="r")
        )
    )
    link = side.link("down")
    assert isinstance(link, SenderLink)
    if host_answers:
        link.answer_by_host(lambda: UNKNOWN)
    feed(
        side,
        frame(
            Flow(
                next_incoming_id=0,
                incoming_window=2048,
                next_outgoing_id=0,
                outgoing_window=2048,
                handle=0,
                link_credit=9,
                delivery_count=0,
            )
        ),
    )
    for number in range(5):
        link.send(b"m%d" % number, settled=False)
    side.drain()
    return side, link


def dispositions(side: Side, begun: int) -> list[Disposition]:
    found = [performative for _, performative in written(side.written[begun:])]
    assert all(isinstance(each, Disposition) for each in found)
    return found  # type: ignore[return-value]


def test_the_host_answers_what_a_receiver_said_and_the_engine_does_not() -> None:
    side, link = sent_five(host_answers=True)
    begun = len(side.written)
    feed(side, frame(Disposition(role=True, first=1, last=2, state=Accepted())))
    assert dispositions(side, begun) == []
    assert side.events[-1] == Settled(link, 1, 2, Accepted(), False)
    link.answer([(1, 2)], Accepted())
    side.drain()
    assert dispositions(side, begun) == [Disposition(role=False, first=1, last=2, settled=True, state=Accepted())]
    assert link.unsettled_count == 3


@pytest.mark.parametrize("text", ["short", "x" * SHORT_STATE_LIMIT_BYTES, "é" * 60_000])
def test_an_answer_of_any_length_says_what_a_disposition_says(text: str) -> None:
    side, link = sent_five(host_answers=True)
    feed(side, frame(Disposition(role=True, first=0, last=4, state=Accepted())))
    begun = len(side.written)
    link.answer([(0, 1), (3, 4)], Rejected(error=AmqpError(condition=Symbol("a:b"), description=text)))
    side.drain()
    told = dispositions(side, begun)
    assert [(each.first, each.last, each.role, each.settled) for each in told] == [
        (0, 1, False, True),
        (3, 4, False, True),
    ]
    for each in told:
        assert isinstance(each.state, Rejected) and each.state.error is not None
        assert text.startswith(each.state.error.description) and each.state.error.description


def test_an_answer_on_a_link_that_is_over_is_not_sent() -> None:
    side, link = sent_five(host_answers=True)
    feed(side, frame(Disposition(role=True, first=0, state=Accepted())) + frame(Detach(handle=0, closed=True)))
    begun = len(side.written)
    link.answer([(0, 0)], Accepted())
    side.drain()
    assert side.written[begun:] == b""


def test_what_is_not_unsettled_any_more_is_answered_at_once_where_the_host_answers() -> None:
    side, _ = sent_five(host_answers=True)
    feed(side, frame(Disposition(role=True, first=2, settled=True, state=Accepted())))
    begun = len(side.written)
    feed(side, frame(Disposition(role=True, first=2**32 - 1, last=6, state=Accepted())))
    assert dispositions(side, begun) == [
        Disposition(role=False, first=first, last=last, settled=True, state=UNKNOWN)
        for first, last in ((2**32 - 1, 2**32 - 1), (2, 2), (5, 6))
    ]
    settled = [(each.first_id, each.last_id) for each in side.events if isinstance(each, Settled)]
    assert settled == [(2, 2), (0, 1), (3, 4)]


def test_what_is_settled_already_and_what_the_engine_answers_get_no_answer_about_the_unknown() -> None:
    side, _ = sent_five(host_answers=True)
    begun = len(side.written)
    feed(side, frame(Disposition(role=True, first=40, last=50, settled=True, state=Accepted())))
    assert dispositions(side, begun) == []
    side, _ = sent_five(host_answers=False)
    begun = len(side.written)
    feed(side, frame(Disposition(role=True, first=4, last=9, state=Accepted())))
    assert dispositions(side, begun) == [Disposition(role=False, first=4, last=4, settled=True, state=Accepted())]
