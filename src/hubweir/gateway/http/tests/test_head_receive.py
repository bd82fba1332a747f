"""One receive for one request, however it ends: its receiver is closed, and nothing stays locked for nobody."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable

import pytest

from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.fragment import (
    CancelReceive,
    CloseReceiver,
    MessagesReceived,
    OpenReceiver,
    ReceiveMessages,
    ReceiverOpened,
    SettleMessages,
)
from hubweir.broker.commands.process import Refusal
from hubweir.errors import INTERNAL_ERROR, NOT_FOUND, TIMED_OUT, ServiceError
from hubweir.gateway.brokers import OnPush
from hubweir.gateway.fragments import FragmentPlace
from hubweir.gateway.http.head_receive import HeadReceive
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCK_CHECK
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

NOTHING = MessagesReceived(b"", b"")
TOKEN = bytes(range(1, 17))


def one_message() -> MessagesReceived:
    rows = array("q", bytes(8 * MESSAGE_WIDTH))
    rows[Q_LOCK], rows[Q_LOCK_CHECK] = int.from_bytes(TOKEN[:8], "big"), int.from_bytes(TOKEN[8:], "big")
    return MessagesReceived(b"run", rows.tobytes())


class HeldBroker:
    """A broker that answers when a test says so."""

    def __init__(self) -> None:
        self.asked: list[tuple[Command, OnAnswer]] = []

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        self.asked.append((command, on_answer))

    def listen(self, on_push: OnPush) -> None:
        raise AssertionError("nobody listens")

    def answer(self, kind: type[Command], answer: Answer) -> None:
        """Answer the one command of this kind that was asked."""
        [on_answer] = [on_answer for command, on_answer in self.asked if isinstance(command, kind)]
        on_answer(answer)

    def kinds(self) -> list[type]:
        return [type(command) for command, _ in self.asked]


def play(scenario: Callable[[HeldBroker, HeadReceive], None], mode: ReceiveMode = ReceiveMode.PEEK_LOCK) -> HeldBroker:
    broker = HeldBroker()

    async def run() -> None:
        receive = HeadReceive(FragmentPlace("orders", "log", broker, "log"), SubQueue.DEAD_LETTERS, mode)
        receive.start(7)
        scenario(broker, receive)

    asyncio.run(run())
    return broker


def released(broker: HeldBroker) -> list[bytes]:
    return [
        command.tokens
        for command, _ in broker.asked
        if isinstance(command, SettleMessages) and command.outcome is SettleOutcome.RELEASE
    ]


def test_a_message_is_asked_for_once_and_the_receiver_closed_behind_it() -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        broker.answer(OpenReceiver, ReceiverOpened(3))
        assert not receive.done.done()
        broker.answer(ReceiveMessages, one_message())
        assert receive.done.result() == one_message()
        receive.taken()
        receive.give_up()

    broker = play(scenario)
    assert broker.kinds() == [OpenReceiver, ReceiveMessages, CloseReceiver]
    opened, asked, closed = (command for command, _ in broker.asked)
    assert isinstance(opened, OpenReceiver) and opened.owner.process == 7 and opened.owner.connection < 0
    assert (opened.log_id, opened.sub_queue, opened.mode) == ("log", SubQueue.DEAD_LETTERS, ReceiveMode.PEEK_LOCK)
    assert isinstance(asked, ReceiveMessages) and (asked.receiver_id, asked.max_count) == (3, 1)
    assert closed == CloseReceiver("log", 3)


def test_what_nobody_takes_is_released() -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        broker.answer(OpenReceiver, ReceiverOpened(3))
        broker.answer(ReceiveMessages, one_message())
        receive.give_up()
        receive.give_up()

    assert released(play(scenario)) == [TOKEN]


def test_what_comes_after_it_was_given_up_is_released() -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        broker.answer(OpenReceiver, ReceiverOpened(3))
        receive.give_up()
        assert broker.kinds()[2:] == [CloseReceiver]
        broker.answer(ReceiveMessages, one_message())

    broker = play(scenario)
    assert released(broker) == [TOKEN]
    assert broker.kinds().count(CloseReceiver) == 1


def test_a_receiver_that_opens_after_it_was_given_up_is_closed_and_not_asked() -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        receive.give_up()
        broker.answer(OpenReceiver, ReceiverOpened(3))

    assert play(scenario).kinds() == [OpenReceiver, CloseReceiver]


def test_under_receive_and_delete_nothing_is_released() -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        broker.answer(OpenReceiver, ReceiverOpened(3))
        receive.give_up()
        broker.answer(ReceiveMessages, one_message())

    assert released(play(scenario, ReceiveMode.RECEIVE_AND_DELETE)) == []


def test_when_the_time_is_over_the_receive_is_cancelled_and_what_is_on_its_way_is_taken() -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        broker.answer(OpenReceiver, ReceiverOpened(3))
        receive.stop_waiting()
        assert broker.kinds() == [OpenReceiver, ReceiveMessages, CancelReceive]
        broker.answer(ReceiveMessages, one_message())
        assert receive.done.result() == one_message()
        receive.taken()
        receive.give_up()

    assert released(play(scenario)) == []


def test_a_receiver_that_opens_too_late_is_closed_and_nothing_came() -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        receive.stop_waiting()
        broker.answer(OpenReceiver, ReceiverOpened(3))
        assert receive.done.result() == NOTHING

    assert play(scenario).kinds() == [OpenReceiver, CloseReceiver]


@pytest.mark.parametrize(
    ("refusal", "condition"),
    [
        (Refusal(NOT_FOUND, "It is gone."), NOT_FOUND),
        (Refusal(INTERNAL_ERROR, "The broker went away.", known=False), TIMED_OUT),
    ],
)
def test_a_refused_receive_ends_with_its_error_and_an_unknown_outcome_is_told(
    refusal: Refusal, condition: object
) -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        broker.answer(OpenReceiver, ReceiverOpened(3))
        broker.answer(ReceiveMessages, refusal)
        error = receive.done.result()
        assert isinstance(error, ServiceError) and error.condition is condition
        receive.give_up()

    broker = play(scenario)
    assert released(broker) == []
    assert broker.kinds()[-1] is CloseReceiver


def test_a_receiver_that_cannot_be_opened_is_told() -> None:
    def scenario(broker: HeldBroker, receive: HeadReceive) -> None:
        broker.answer(OpenReceiver, Refusal(NOT_FOUND, "It is gone."))
        error = receive.done.result()
        assert isinstance(error, ServiceError) and error.condition is NOT_FOUND
        receive.give_up()

    assert play(scenario).kinds() == [OpenReceiver]
