from __future__ import annotations

import pytest

from hubweir.amqp.messaging.outcome import Accepted
from hubweir.amqp.transport.faults import SessionFault
from hubweir.amqp.transport.performatives import Disposition
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.testing.frames import transfer, written
from hubweir.testing.served import served, take


def test_a_range_that_ends_before_it_begins_is_a_fault_also_over_the_wrap() -> None:
    session = served().endpoint.sessions[0]
    session.settlement.receive(session, Disposition(role=True, first=2**32 - 1, last=3, settled=True))
    with pytest.raises(SessionFault):
        session.settlement.receive(session, Disposition(role=True, first=3, last=2**32 - 1, settled=True))


def test_the_widest_range_there_is_costs_nothing() -> None:
    side = served()
    take(side, b"".join(transfer(number) for number in range(10)))
    session = side.endpoint.sessions[0]
    session.settlement.receive(session, Disposition(role=False, first=0, last=2**31 - 1, settled=True))
    assert len(session.settlement.received) == 0


def test_an_outcome_that_is_not_settled_leaves_the_delivery_open() -> None:
    side = served()
    take(side, transfer(0) + transfer(1))
    link = side.link("up")
    assert isinstance(link, ReceiverLink)
    link.settle(0, 1, Accepted(), settled=False)
    link.settle(0, 1, Accepted())
    first, second = (performative for _, performative in written(side.drain()))
    assert isinstance(first, Disposition) and isinstance(second, Disposition)
    assert (first.settled, second.settled) == (False, True)
    assert link.unsettled_count == 0
