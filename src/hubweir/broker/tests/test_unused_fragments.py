"""A fragment of a queue at its broker: what is a use of it, and for how long nobody used it."""

from __future__ import annotations

from typing import Any

import pytest

from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Command, Owner
from hubweir.broker.commands.forwarding import TakeTransfer
from hubweir.broker.commands.fragment import (
    AskFragmentInfo,
    CancelScheduled,
    ChangeFragment,
    CloseReceiver,
    CreateFragment,
    DeleteMessages,
    EnqueueMessages,
    FragmentInfo,
    ListSessions,
    MessagesEnqueued,
    OpenReceiver,
    PeekMessages,
    ReceiverOpened,
    RenewLocks,
    SettleMessages,
)
from hubweir.broker.commands.process import CloseOwner, Done, Refusal
from hubweir.counters import Counters
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import message, run_of
from hubweir.testing.simulated_env import SimulatedEnv

QUEUE, SESSIONS, ME = "a" * 32, "b" * 32, Owner(1, 7)
MAIN, LOCK = SubQueue.MAIN, ReceiveMode.PEEK_LOCK
MINUTE = 60_000
ASKED_MS = 500  # what a question takes


class Queues:
    """A broker with two queues, one of them with sessions."""

    def __init__(self) -> None:
        self.env = SimulatedEnv(7)
        self.broker = Broker(self.env, MessagingStore.open(self.env, "store-0"), Counters())
        self.broker.start()
        assert self.ask(CreateFragment(QUEUE, "orders", FragmentSettings())) == Done()
        assert self.ask(CreateFragment(SESSIONS, "sessions", FragmentSettings(requires_session=True))) == Done()

    def ask(self, command: Command) -> Any:
        """Its answer; None when it did not come at once."""
        answers: list[Any] = []
        self.broker.submit(command, answers.append)
        self.env.run_for(ASKED_MS)
        return answers[0] if answers else None

    def unused_ms(self, log_id: str = QUEUE) -> int:
        info = self.ask(AskFragmentInfo(log_id))
        assert isinstance(info, FragmentInfo)
        return info.unused_ms

    def send(self, **said: Any) -> None:
        assert isinstance(self.ask(EnqueueMessages(QUEUE, run_of(message("tea", **said)), 1, 10)), MessagesEnqueued)

    def open_receiver(self, log_id: str = QUEUE, **said: Any) -> Any:
        return self.ask(OpenReceiver(log_id, ME, MAIN, LOCK, **said))


@pytest.fixture
def queues() -> Queues:
    return Queues()


USES = {
    "a send": EnqueueMessages(QUEUE, run_of(message("tea")), 1, 10),
    "a peek": PeekMessages(QUEUE, MAIN, 1, 1, 1_000),
    "a settlement": SettleMessages(QUEUE, bytes(16), SettleOutcome.COMPLETE),
    "a renewal": RenewLocks(QUEUE, bytes(16)),
    "a cancellation that finds nothing": CancelScheduled(QUEUE, bytes(8)),
    "a deletion of messages": DeleteMessages(QUEUE, MAIN, 1, 1),
    "a list of sessions": ListSessions(QUEUE, None, 0, 1),
    "other settings": ChangeFragment(QUEUE, FragmentSettings(max_delivery_count=3)),
}


@pytest.mark.parametrize("what", USES)
def test_whatever_is_asked_of_a_fragment_is_a_use_of_it(queues: Queues, what: str) -> None:
    queues.env.run_for(MINUTE)
    assert queues.unused_ms() >= MINUTE
    queues.ask(USES[what])
    assert queues.unused_ms() < 1_000
    queues.env.run_for(MINUTE)
    assert queues.unused_ms() == MINUTE + 2 * ASKED_MS


def test_a_queue_whose_messages_are_forwarded_is_used_until_that_ends(queues: Queues) -> None:
    queues.ask(TakeTransfer(QUEUE, ME, SubQueue.DEAD_LETTERS, b"1/elsewhere"))
    queues.env.run_for(MINUTE)
    assert queues.unused_ms() >= MINUTE, "messages are not received where dead letters are forwarded"
    queues.ask(TakeTransfer(QUEUE, ME, MAIN, b"1/elsewhere"))
    queues.env.run_for(MINUTE)
    assert queues.unused_ms() == 0
    queues.ask(TakeTransfer(QUEUE, ME, MAIN, b""))
    queues.env.run_for(MINUTE)
    assert queues.unused_ms() >= MINUTE
    queues.ask(TakeTransfer(QUEUE, ME, MAIN, b"1/elsewhere"))
    queues.ask(CloseOwner(ME))
    queues.env.run_for(MINUTE)
    assert queues.unused_ms() >= MINUTE, "who forwards is gone"


def test_to_ask_what_a_fragment_holds_is_no_use_and_a_new_one_is_unused_from_its_making(queues: Queues) -> None:
    queues.env.run_for(MINUTE)
    assert all(queues.unused_ms() >= MINUTE + ASKED_MS * each for each in range(5))


def test_a_fragment_is_used_while_a_receiver_is_open_and_counts_from_its_end(queues: Queues) -> None:
    receiver = queues.open_receiver()
    assert isinstance(receiver, ReceiverOpened)
    queues.env.run_for(MINUTE)
    assert queues.unused_ms() == 0
    queues.env.run_for(MINUTE)
    queues.ask(CloseReceiver(QUEUE, receiver.receiver_id))
    assert queues.unused_ms() == ASKED_MS
    queues.open_receiver()
    queues.env.run_for(MINUTE)
    queues.ask(CloseOwner(ME))
    assert queues.unused_ms() == ASKED_MS, "the connection's end is the receiver's"


def test_a_fragment_is_used_while_a_session_is_waited_for_or_held(queues: Queues) -> None:
    assert queues.open_receiver(SESSIONS, with_session=True, wait_ms=MINUTE) is None
    queues.env.run_for(MINUTE // 2)
    assert queues.unused_ms(SESSIONS) == 0
    queues.env.run_for(MINUTE)
    assert queues.unused_ms(SESSIONS) == MINUTE // 2 + 2 * ASKED_MS, "nothing came until the wait ended"
    assert isinstance(queues.open_receiver(SESSIONS, with_session=True, session_id="s"), ReceiverOpened)
    queues.env.run_for(MINUTE // 2)
    assert queues.unused_ms(SESSIONS) == 0
    queues.env.run_for(MINUTE)
    assert MINUTE // 2 <= queues.unused_ms(SESSIONS) < MINUTE, "the lock of the session ended after a minute"


def test_a_fragment_counts_from_when_its_last_scheduled_message_became_active(queues: Queues) -> None:
    queues.send(scheduled_ms=queues.env.now_ms() + 10 * MINUTE)
    queues.env.run_for(5 * MINUTE)
    assert queues.unused_ms() == 0
    queues.env.run_for(6 * MINUTE)
    assert MINUTE - 1_000 < queues.unused_ms() <= MINUTE + 1_000


def test_jumps_of_the_wall_clock_are_not_time_without_use(queues: Queues) -> None:
    for jump_ms in (1_000 * MINUTE, -2_000 * MINUTE):
        queues.env.jump(jump_ms)
        queues.env.run_for(MINUTE)
    assert 2 * MINUTE <= queues.unused_ms() < 2 * MINUTE + 1_000


def test_a_refused_question_tells_of_no_use(queues: Queues) -> None:
    assert isinstance(queues.ask(AskFragmentInfo("c" * 32)), Refusal)
