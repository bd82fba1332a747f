"""The asking end of a broker's stream by itself: every command is answered once, whatever becomes of the stream.

The stream is a list of what was written. With a broker behind it, it is in test_server.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.partition import AppendEvents
from hubweir.broker.commands.process import AskCounters, CapPartitions, CloseOwner, CountersTaken, Done, Refusal
from hubweir.broker.commands.producer import CloseProducer
from hubweir.broker.commands.reader import CancelRead, CloseReader, ConfirmReaderClosed, ReaderClosed, ReadEvents
from hubweir.broker.socket_broker import SocketBroker
from hubweir.broker.wire import FRAME_LIMIT_BYTES, decode_command
from hubweir.errors import LINK_STOLEN, NOT_FOUND, DecodeError
from hubweir.testing.broker_frames import parts_of, sent


class Stream:
    """Stands where the transport would, and keeps what was written."""

    def __init__(self) -> None:
        self.written = b""
        self.is_closed = False

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        """There is no limit."""

    def is_closing(self) -> bool:
        return self.is_closed

    def writelines(self, buffers: list[Any]) -> None:
        self.written += b"".join(bytes(buffer) for buffer in buffers)

    def close(self) -> None:
        self.is_closed = True


class Asked:
    """A broker end whose stream stands, and what its commands were answered."""

    def __init__(self, **limits: int) -> None:
        self.broker = SocketBroker(**limits)
        self.driver = self.broker.driver()
        self.stream = Stream()
        self.driver.connection_made(self.stream)  # type: ignore[arg-type]  # as much of a transport as it asks for
        self.answers: list[list[Answer]] = []

    def submit(self, command: Any = None) -> list[Answer]:
        """Send a command; the list of its answers, which grows."""
        answers: list[Answer] = []
        self.broker.submit(command or CapPartitions(False), answers.append)
        self.answers.append(answers)
        return answers

    def frame(self, request_id: int, message: Any) -> None:
        self.broker.on_frame(*sent(request_id, message))


def on_a_loop(test: Callable[[], None]) -> Callable[[], None]:
    """A driver wants a running loop; nothing of these tests waits for it."""

    def run() -> None:
        async def scenario() -> None:
            test()

        asyncio.run(scenario())

    run.__name__ = test.__name__
    return run


@on_a_loop
def test_answers_find_their_commands_in_any_order() -> None:
    asked = Asked()
    first, second = asked.submit(AskCounters()), asked.submit()
    asked.frame(2, Done())
    assert (first, second) == ([], [Done()])
    asked.frame(1, CountersTaken({"a": 1}))
    assert first == [CountersTaken({"a": 1})]


@on_a_loop
def test_an_answer_that_nobody_waits_for_breaks_the_stream_and_a_second_one_too() -> None:
    asked = Asked()
    answers = asked.submit()
    with pytest.raises(DecodeError, match="request 7, which nobody made"):
        asked.frame(7, Done())
    asked.frame(1, Done())
    with pytest.raises(DecodeError):
        asked.frame(1, Done())
    assert answers == [Done()]


@on_a_loop
def test_an_answer_of_another_command_breaks_the_stream_and_a_refusal_answers_every_one() -> None:
    asked = Asked()
    answers = asked.submit(AskCounters())
    with pytest.raises(DecodeError, match="AskCounters was answered with a Done"):
        asked.frame(1, Done())
    assert answers == []
    asked.frame(1, Refusal(NOT_FOUND, "gone"))
    assert answers == [Refusal(NOT_FOUND, "gone")]


@on_a_loop
def test_what_was_not_answered_at_the_end_may_have_happened_and_is_told_once() -> None:
    asked = Asked()
    answered, waiting = asked.submit(), asked.submit()
    asked.frame(1, Done())
    asked.driver.connection_lost(None)
    assert answered == [Done()]
    (refusal,) = waiting
    assert isinstance(refusal, Refusal) and not refusal.known
    assert refusal.condition.symbol == "com.microsoft:timeout"


@on_a_loop
def test_after_the_end_nothing_is_sent_and_that_is_known() -> None:
    asked = Asked()
    asked.driver.connection_lost(None)
    (refusal,) = asked.submit()
    assert isinstance(refusal, Refusal) and refusal.known
    before_any = SocketBroker()
    answers: list[Answer] = []
    before_any.submit(AskCounters(), answers.append)
    assert isinstance(answers[0], Refusal) and answers[0].known
    assert asked.stream.written == b""


@on_a_loop
def test_one_command_too_many_is_refused_and_room_comes_with_an_answer() -> None:
    asked = Asked(outstanding_limit=2)
    asked.submit(), asked.submit()
    (refusal,) = asked.submit()
    assert isinstance(refusal, Refusal) and refusal.known
    assert refusal.condition.symbol == "com.microsoft:server-busy", "not as a broker whose disk or quota is full"
    asked.frame(1, Done())
    assert asked.submit() == []


@on_a_loop
def test_readers_that_wait_keep_no_command_out_and_ends_are_never_refused() -> None:
    asked = Asked(outstanding_limit=2)
    for reader_id in range(5):
        assert asked.submit(ReadEvents("a", reader_id, 1_000, 60_000)) == []
    asked.submit(), asked.submit()
    assert asked.submit() != []
    for end in (
        CancelRead("a", 1),
        CloseReader("a", 1),
        CloseProducer("a", 1),
        CloseOwner(Owner(1, 2)),
        ConfirmReaderClosed("a", 1),
    ):
        assert asked.submit(end) == []


@on_a_loop
def test_a_command_over_the_limit_of_a_frame_is_refused_and_uses_no_number_up() -> None:
    asked = Asked()
    (refusal,) = asked.submit(AppendEvents("log", bytearray(FRAME_LIMIT_BYTES)))
    assert isinstance(refusal, Refusal) and refusal.known
    answers = asked.submit()
    asked.frame(1, Done())
    assert answers == [Done()]


@on_a_loop
def test_pushes_go_to_who_listens_and_are_nobodys_answer() -> None:
    asked, pushed = Asked(), []
    answers = asked.submit()
    push = ReaderClosed(Owner(1, 2), "a", 5, LINK_STOLEN, "another reader came")
    asked.frame(0, push)  # nobody listens yet
    asked.broker.listen(pushed.append)
    asked.frame(0, push)
    assert (pushed, answers) == ([push], [])


@on_a_loop
def test_commands_that_wait_are_written_before_the_stream_is_closed() -> None:
    asked = Asked()
    asked.submit()
    asked.broker.close()
    assert asked.stream.is_closed
    assert decode_command(*parts_of(asked.stream.written)) == (1, CapPartitions(False))


@on_a_loop
def test_who_made_it_hears_of_the_end_once_and_behind_all_refusals() -> None:
    seen: list[object] = []
    broker = SocketBroker(on_gone=lambda: seen.append(("gone", broker.is_up)))
    assert not broker.is_up
    driver = broker.driver()
    driver.connection_made(Stream())  # type: ignore[arg-type]  # as much of a transport as it asks for
    broker.submit(CapPartitions(False), lambda answer: seen.append(type(answer)))
    assert broker.is_up
    driver.connection_lost(None)
    assert seen == [Refusal, ("gone", False)]
