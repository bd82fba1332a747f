"""control_link.py: requests of transactions, and what becomes of each, against a coordinator that a test plays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.message import decode_message
from hubweir.amqp.messaging.outcome import Accepted, Declared, DeliveryState, Rejected, Released
from hubweir.amqp.messaging.terminus import Coordinator
from hubweir.amqp.transactions.requests import Declare, Discharge, Request, request_of
from hubweir.amqp.transport.events import LinkAttached
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.types.values import Symbol
from hubweir.client.control_link import AnswerLost, ControlLink
from hubweir.client.tests.paired_connection import PairedConnection
from hubweir.errors import DETACH_FORCED, INTERNAL_ERROR, TIMED_OUT, TRANSACTION_ROLLED_BACK, ServiceError

ROLLED_BACK = Rejected(error=AmqpError(condition=Symbol("amqp:transaction:rollback"), description="it was spoilt"))


class PairedCoordinator(PairedConnection):
    """A connection whose other end takes requests, and answers when the test says so."""

    def __init__(self, *, timeout_s: float = 5.0, credit: int = 10) -> None:
        self.credit = credit
        super().__init__(timeout_s=timeout_s)

    def pump(self) -> None:
        self.pair.pump()
        for event in self.pair.server.events:
            if isinstance(event, LinkAttached) and not event.link.is_attached:
                assert isinstance(event.link, ReceiverLink) and isinstance(event.link.target, Coordinator)
                event.link.accept()
                event.link.grant(self.credit)
        self.pair.pump()

    @property
    def control(self) -> ReceiverLink:
        """The coordinator's half of the link."""
        [link] = self.pair.server.endpoint.sessions[0].links
        assert isinstance(link, ReceiverLink)
        return link

    @property
    def asked_for(self) -> list[Request]:
        return [request_of(decode_message(each.payload)) for each in self.pair.server.deliveries()]

    async def came(self, many: int) -> None:
        """Return when so many requests came."""
        while len(self.pair.server.deliveries()) < many:
            await asyncio.sleep(0)

    def says(self, state: DeliveryState | None, first: int, last: int | None = None) -> None:
        """The answer to the requests of these places, in the order in which they came."""
        ids = [each.delivery_id for each in self.pair.server.deliveries()]
        self.control.settle(ids[first], ids[first if last is None else last], state)
        self.pump()

    def detaches(self) -> None:
        self.control.detach(AmqpError(condition=Symbol("amqp:link:detach-forced"), description="moved"))
        self.pump()


def scenario(step: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that runs on a loop of its own, a minute at most."""

    @wraps(step)
    def test(**fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(step(**fixtures), 60))

    return test


async def opened(there: PairedCoordinator) -> ControlLink:
    control = ControlLink(there)  # type: ignore[arg-type]  # what it asks of a connection
    await control.wait_attached(5)
    return control


async def failed(asking: asyncio.Task[Any]) -> ServiceError:
    with pytest.raises(ServiceError) as error:
        await asking
    return error.value


@scenario
async def test_a_declare_gives_the_id_and_a_discharge_says_which_and_how() -> None:
    there = PairedCoordinator()
    control = await opened(there)
    declaring = asyncio.create_task(control.declare())
    await there.came(1)
    there.says(Declared(txn_id=b"first"), 0)
    assert await declaring == b"first"
    ending = [asyncio.create_task(control.discharge(b"first", fail=fail)) for fail in (False, True)]
    await there.came(3)
    there.says(Accepted(), 1, 2)
    assert await asyncio.gather(*ending) == [None, None]
    assert there.asked_for == [Declare(), Discharge(txn_id=b"first"), Discharge(txn_id=b"first", fail=True)]


@scenario
async def test_answers_find_their_requests_in_whatever_order_they_come() -> None:
    there = PairedCoordinator()
    control = await opened(there)
    declaring = [asyncio.create_task(control.declare()) for _ in range(3)]
    await there.came(3)
    for place in (2, 0, 1):
        there.says(Declared(txn_id=b"%d" % place), place)
    assert await asyncio.gather(*declaring) == [b"0", b"1", b"2"]


@scenario
async def test_requests_wait_for_credit_and_go_out_in_their_order() -> None:
    there = PairedCoordinator(credit=1)
    control = await opened(there)
    ending = [asyncio.create_task(control.discharge(each, fail=False)) for each in (b"a", b"b", b"c")]
    await there.came(1)
    await asyncio.sleep(0)
    assert there.asked_for == [Discharge(txn_id=b"a")]
    there.control.grant(2)
    there.pump()
    await there.came(3)
    there.says(Accepted(), 0, 2)
    await asyncio.gather(*ending)
    assert there.asked_for == [Discharge(txn_id=each) for each in (b"a", b"b", b"c")]


@scenario
async def test_a_refusal_is_told_in_the_coordinators_words() -> None:
    there = PairedCoordinator()
    control = await opened(there)
    for place, asking in enumerate((control.declare(), control.discharge(b"t", fail=False))):
        task = asyncio.create_task(asking)
        await there.came(place + 1)
        there.says(ROLLED_BACK, place)
        error = await failed(task)
        assert (error.condition, error.text) == (TRANSACTION_ROLLED_BACK, "it was spoilt")
        assert not isinstance(error, AnswerLost)


@pytest.mark.parametrize("state", [Accepted(), Released(), Rejected(), None])
@scenario
async def test_a_declare_that_is_answered_with_no_id_has_declared_nothing(state: DeliveryState | None) -> None:
    there = PairedCoordinator()
    declaring = asyncio.create_task((await opened(there)).declare())
    await there.came(1)
    there.says(state, 0)
    error = await failed(declaring)
    assert error.condition is INTERNAL_ERROR and "declared no transaction" in error.text


@pytest.mark.parametrize("state", [Released(), None])
@pytest.mark.parametrize("fail", [False, True])
@scenario
async def test_a_discharge_is_not_done_because_its_delivery_was_settled(
    state: DeliveryState | None, fail: bool
) -> None:
    there = PairedCoordinator()
    control = await opened(there)
    ending = asyncio.create_task(control.discharge(b"t", fail=fail))
    await there.came(1)
    there.says(state, 0)
    assert isinstance(await failed(ending), AnswerLost)


@scenario
async def test_a_link_that_ends_loses_the_answers_and_asks_for_nothing_more() -> None:
    there = PairedCoordinator(credit=1)
    control = await opened(there)
    sent, waiting = (asyncio.create_task(control.discharge(each, fail=False)) for each in (b"sent", b"waiting"))
    await there.came(1)
    there.detaches()
    lost, refused = await failed(sent), await failed(waiting)
    assert isinstance(lost, AnswerLost) and lost.condition is DETACH_FORCED
    assert not isinstance(refused, AnswerLost) and refused.condition is DETACH_FORCED
    error = await failed(asyncio.create_task(control.declare()))
    assert not isinstance(error, AnswerLost) and error.condition is DETACH_FORCED
    assert len(there.asked_for) == 1


@scenario
async def test_without_an_answer_in_time_nobody_knows_and_a_late_one_disturbs_nothing() -> None:
    there = PairedCoordinator(timeout_s=0.02)
    control = await opened(there)
    error = await failed(asyncio.create_task(control.discharge(b"a", fail=False)))
    assert isinstance(error, AnswerLost) and error.condition is TIMED_OUT
    there.timeout_s = 5.0
    there.says(Accepted(), 0)
    declaring = asyncio.create_task(control.declare())
    await there.came(2)
    there.says(Declared(txn_id=b"next"), 1)
    assert await declaring == b"next"


@scenario
async def test_a_request_that_was_given_up_before_there_was_credit_is_never_sent() -> None:
    there = PairedCoordinator(timeout_s=0.02, credit=0)
    control = await opened(there)
    assert isinstance(await failed(asyncio.create_task(control.discharge(b"given up", fail=False))), AnswerLost)
    there.timeout_s = 5.0
    declaring = asyncio.create_task(control.declare())
    await asyncio.sleep(0)
    there.control.grant(2)
    there.pump()
    await there.came(1)
    there.says(Declared(txn_id=b"t"), 0)
    assert await declaring == b"t"
    assert there.asked_for == [Declare()]
