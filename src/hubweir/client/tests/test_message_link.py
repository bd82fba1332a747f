"""message_link.py: credit, what is taken, and what settling is answered, against an engine that a test plays.

Long because each is a conversation in which every step of both ends is said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Modified, Rejected, Released
from hubweir.amqp.transport.delivery import IdRange
from hubweir.amqp.types.values import Symbol
from hubweir.client import message_link
from hubweir.client.message_link import UNSETTLED_LIMIT, MessageLink, NotSettled, SettlementUnknown
from hubweir.client.message_run import MessageRun
from hubweir.client.tests.paired_connection import LOST, PairedConnection
from hubweir.errors import DETACH_FORCED, INTERNAL_ERROR, MESSAGE_LOCK_LOST, NOT_FOUND, TIMED_OUT, ServiceError

SOON_S = 0.02


def scenario(step: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that runs on a loop of its own, a minute at most."""

    @wraps(step)
    def test(**fixtures: Any) -> None:
        asyncio.run(asyncio.wait_for(step(**fixtures), 60))

    return test


async def opened(connection: PairedConnection, **options: Any) -> MessageLink:
    link = MessageLink(connection, "orders", **options)  # type: ignore[arg-type]
    await link.wait_opened(5)
    connection.pump()
    return link


async def received(connection: PairedConnection, link: MessageLink, *bodies: bytes) -> MessageRun:
    """These messages, sent and taken; the rest of the credit is given back."""
    receiving = asyncio.create_task(link.receive(len(bodies), max_wait_s=5))
    await connection.asked()
    connection.send(*bodies)
    return await receiving


def all_of(run: MessageRun) -> list[IdRange[None]]:
    return [IdRange(span.first, span.last, None) for span in run.spans()]


@scenario
async def test_credit_is_granted_for_what_a_receive_wants_and_the_rest_is_taken_back() -> None:
    connection = PairedConnection()
    link = await opened(connection)
    assert connection.there.credit == 0
    receiving = asyncio.create_task(link.receive(5, max_wait_s=5))
    await connection.asked()
    assert connection.there.credit == 5
    connection.send(b"a", b"b")
    await connection.drains()
    run = await receiving
    assert run.bodies() == [b"a", b"b"]
    assert (connection.there.credit, link.has_messages) == (0, False)


@scenario
async def test_a_message_that_crosses_the_drain_is_part_of_the_next_receive() -> None:
    connection = PairedConnection()
    link = await opened(connection)
    receiving = asyncio.create_task(link.receive(5, max_wait_s=SOON_S))
    while not connection.there.drain:
        await asyncio.sleep(0)
    connection.send(b"late")
    await connection.drains()
    assert (await receiving).bodies() == [b"late"]
    assert not link.has_messages


@scenario
async def test_a_service_that_answers_no_drain_keeps_a_receive_no_longer_than_the_connection_waits() -> None:
    connection = PairedConnection(timeout_s=SOON_S)
    link = await opened(connection)
    assert len(await link.receive(5, max_wait_s=SOON_S)) == 0
    assert not link._is_draining  # the next receive does not wait for it again
    connection.send(b"still")
    assert (await link.receive(5, max_wait_s=1)).bodies() == [b"still"]


@scenario
async def test_a_receive_that_is_given_up_takes_its_credit_back() -> None:
    connection = PairedConnection()
    link = await opened(connection)
    receiving = asyncio.create_task(link.receive(5, max_wait_s=5))
    await connection.asked()
    receiving.cancel()
    while not connection.there.drain:
        await asyncio.sleep(0)
    following = asyncio.create_task(link.receive(2, max_wait_s=5))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (connection.there.drain, connection.there.credit) == (True, 5)  # it waits for the answer
    await connection.drains()
    await connection.asked()
    assert connection.there.credit == 2
    connection.send(b"next")
    await connection.drains()
    assert (await following).bodies() == [b"next"]
    assert receiving.cancelled()


@scenario
async def test_no_more_credit_is_granted_than_may_be_unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_link, "UNSETTLED_LIMIT", 3)
    connection = PairedConnection()
    link = await opened(connection)
    await received(connection, link, b"a", b"b")
    receiving = asyncio.create_task(link.receive(10, max_wait_s=5))
    await connection.asked()
    assert connection.there.credit == 1
    connection.send(b"c")
    assert len(await receiving) == 1
    assert len(await link.receive(10, max_wait_s=SOON_S)) == 0
    assert connection.there.credit == 0


@scenario
async def test_credit_of_a_prefetch_is_renewed_when_half_of_it_is_spent() -> None:
    connection = PairedConnection()
    link = await opened(connection, prefetch=10)
    for number, credit in ((1, 9), (2, 8), (3, 7), (4, 6), (5, 10)):
        connection.send(b"%d" % number)
        assert (await link.receive(1, max_wait_s=1)).bodies() == [b"%d" % number]
        connection.pump()
        assert connection.there.credit == credit


@scenario
async def test_more_than_is_wanted_waits_for_the_next_receive() -> None:
    connection = PairedConnection()
    link = await opened(connection, prefetch=10)
    assert connection.there.credit == 10
    connection.send(*(b"%d" % number for number in range(8)))
    assert (await link.receive(3, max_wait_s=1)).bodies() == [b"0", b"1", b"2"]
    assert link.has_messages
    assert (await link.receive(9, max_wait_s=1)).bodies() == [b"3", b"4", b"5", b"6", b"7"]
    connection.pump()
    assert connection.there.credit == 10


@scenario
async def test_what_is_told_is_done_when_all_of_it_is_answered() -> None:
    connection = PairedConnection()
    link = await opened(connection)
    run = await received(connection, link, b"a", b"b", b"c")
    settling = asyncio.create_task(link.settle(all_of(run), Accepted()))
    while not connection.told:
        await asyncio.sleep(0)
    assert connection.told == [(0, 2, Accepted())]
    connection.answer(0, 1, Accepted())
    await asyncio.sleep(0)
    assert not settling.done()
    connection.answer(2, 2, Accepted())
    await settling


@scenario
async def test_a_refusal_names_the_messages_that_are_not_settled_and_the_service_s_reason() -> None:
    connection = PairedConnection()
    link = await opened(connection)
    run = await received(connection, link, b"a", b"b", b"c")
    settling = asyncio.create_task(link.settle(all_of(run), Modified(delivery_failed=True)))
    while not connection.told:
        await asyncio.sleep(0)
    connection.answer(0, 0, Modified(delivery_failed=True))
    connection.answer(1, 2, LOST)
    with pytest.raises(NotSettled) as refused:
        await settling
    assert (refused.value.condition, refused.value.delivery_ids) == (MESSAGE_LOCK_LOST, [1, 2])
    assert refused.value.text == "2 of 3 messages are not settled: it is lost"


@scenario
async def test_a_dead_letter_is_done_by_a_rejection_without_an_error_and_by_nothing_else() -> None:
    connection = PairedConnection()
    link = await opened(connection)
    told = Rejected(error=AmqpError(condition=Symbol("com.microsoft:dead-letter")))
    for answer, is_done in ((Rejected(error=None), True), (Accepted(), False)):
        run = await received(connection, link, b"x")
        before = len(connection.told)
        settling = asyncio.create_task(link.settle(all_of(run), told))
        while len(connection.told) == before:
            await asyncio.sleep(0)
        [span] = run.spans()
        connection.answer(span.first, span.last, answer)
        if is_done:
            await settling
        else:
            with pytest.raises(NotSettled) as refused:
                await settling
            assert refused.value.condition is INTERNAL_ERROR


@scenario
async def test_what_was_told_before_is_lost_and_is_not_told_again() -> None:
    connection = PairedConnection()
    link = await opened(connection)
    run = await received(connection, link, b"a", b"b")
    first = asyncio.create_task(link.settle([IdRange(0, 0, None)], Accepted()))
    while not connection.told:
        await asyncio.sleep(0)
    second = asyncio.create_task(link.settle(all_of(run), Accepted()))
    while len(connection.told) < 2:
        await asyncio.sleep(0)
    assert connection.told == [(0, 0, Accepted()), (1, 1, Accepted())]
    connection.answer(0, 1, Accepted())
    await first
    with pytest.raises(NotSettled, match="settled before") as lost:
        await second
    assert lost.value.condition is MESSAGE_LOCK_LOST


@scenario
async def test_the_end_of_the_link_leaves_open_what_was_not_answered_and_gives_out_what_had_come() -> None:
    connection = PairedConnection()
    link = await opened(connection, prefetch=10)
    connection.send(b"a", b"b")
    run = await link.receive(1, max_wait_s=1)
    settling = asyncio.create_task(link.settle(all_of(run), Accepted()))
    while not connection.told:
        await asyncio.sleep(0)
    connection.there.detach(AmqpError(condition=Symbol("amqp:link:detach-forced"), description="idle"))
    connection.pump()
    with pytest.raises(SettlementUnknown, match="whether the messages were settled is not known") as unknown:
        await settling
    assert unknown.value.condition is DETACH_FORCED
    assert (await link.receive(5, max_wait_s=1)).bodies() == [b"b"]
    with pytest.raises(ServiceError, match="idle"):
        await link.receive(5, max_wait_s=1)
    with pytest.raises(ServiceError, match="idle") as over:
        await link.settle(all_of(run), Accepted())
    assert not isinstance(over.value, NotSettled | SettlementUnknown)


@scenario
async def test_a_close_gives_back_what_nobody_took_and_not_what_somebody_did() -> None:
    connection = PairedConnection()
    link = await opened(connection, prefetch=4)
    connection.send(b"taken", b"left", b"behind")
    await link.receive(1, max_wait_s=1)
    closing = asyncio.create_task(link.close())
    await connection.drains()
    await closing
    assert connection.told == [(1, 2, Released())]
    assert len(connection.detached) == 1
    with pytest.raises(ServiceError, match="closed here"):
        await link.receive(1, max_wait_s=1)


@scenario
async def test_receive_and_delete_comes_settled_and_has_nothing_to_settle() -> None:
    connection = PairedConnection()
    link = await opened(connection, deletes=True, prefetch=4)
    attach = connection.there.attach
    assert attach is not None
    assert (attach.snd_settle_mode, attach.rcv_settle_mode) == (1, 0)
    connection.send(b"a", b"b", settled=True)
    run = await link.receive(1, max_wait_s=1)
    with pytest.raises(NotSettled):
        await link.settle(all_of(run), Accepted())
    await link.close()
    assert connection.told == []


@scenario
async def test_a_link_that_gets_no_answer_or_is_refused_is_given_up() -> None:
    silent = PairedConnection(accepts=False)
    link = MessageLink(silent, "orders")  # type: ignore[arg-type]
    with pytest.raises(ServiceError) as late:
        await link.wait_opened(SOON_S)
    assert late.value.condition is TIMED_OUT
    assert len(silent.detached) == 1
    refusing = PairedConnection(accepts=False)
    link = MessageLink(refusing, "nowhere")  # type: ignore[arg-type]
    waiting = asyncio.create_task(link.wait_opened(5))
    await asyncio.sleep(0)
    refusing.pump()
    refusing.there.refuse(AmqpError(condition=Symbol("amqp:not-found"), description="no queue"))
    refusing.pump()
    with pytest.raises(ServiceError, match="the attach of nowhere was refused: no queue") as refused:
        await waiting
    assert refused.value.condition is NOT_FOUND


@scenario
async def test_what_a_link_gave_up_is_remembered_up_to_a_limit_the_newest_of_it() -> None:
    link = await opened(PairedConnection())
    link.gave_up([IdRange(0, 1, None), IdRange(2, UNSETTLED_LIMIT, None)])
    assert list(link.given_up) == list(range(1, UNSETTLED_LIMIT + 1))
