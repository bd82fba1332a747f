"""Messages on their way to who receives them: read, handed over, or taken back."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from hubweir.errors import CorruptStore
from hubweir.messaging_store.log import Refused
from hubweir.queue.message_giving import locks_of, release_messages
from hubweir.queue.message_reads import MessageReads
from hubweir.queue.operation import RELEASED
from hubweir.queue.settle_outcome import SETTLED, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import QueueBench, logged
from hubweir.queue.tests.session_bench import NAMES, SessionBench, enqueue_in_turn, got_by, waiting


@pytest.fixture
def sessions() -> SessionBench:
    return SessionBench()


def test_a_receiver_that_an_answer_before_its_own_closes_takes_nothing(sessions: SessionBench) -> None:
    """An answer may end a connection, and with it the receivers that stand behind in this turn."""
    first, second = sessions.accept("a"), sessions.accept("b")
    answers: list[Any] = []

    def close_second(answer: Any) -> None:
        sessions.fragment.close_receiver(second)

    sessions.fragment.receive(first, max_count=1, max_bytes=1 << 20, on_done=close_second)
    sessions.fragment.receive(second, max_count=1, max_bytes=1 << 20, on_done=answers.append)
    enqueue_in_turn(sessions, "1")
    assert [len(each.rows) for each in answers] == [0]
    [again] = sessions.receive(sessions.accept("b"))
    assert (again.body, again.deliveries) == (b"b1", 0)
    assert sessions.settle([again]) == [SETTLED]


@pytest.mark.parametrize("mode", ReceiveMode)
def test_a_record_that_is_damaged_keeps_nobody_from_other_messages(sessions: SessionBench, mode: ReceiveMode) -> None:
    for name in NAMES:
        for _ in range(12):  # more than the log's tail has in memory
            sessions.send(name * 3_000, session=name)
    path = next(path for path in sessions.env.files.paths() if path.endswith(".log"))
    data = sessions.env.files.bytes_of(path)
    data[data.index(b"b" * 100)] ^= 1
    sessions.env.files.set_bytes(path, bytes(data))
    answers = waiting(sessions, *(sessions.accept(name, mode=mode) for name in NAMES))
    sessions.run_for(3_000)
    assert not any(isinstance(its[0], Refused) for its in answers)
    assert [len(got_by(its)) for its in answers] == [10, 10, 10]


@pytest.mark.parametrize("mode", ReceiveMode)
@pytest.mark.parametrize("in_session", [False, True])
def test_a_receive_whose_record_is_lost_waits_for_other_messages_unless_it_was_cancelled(
    mode: ReceiveMode, in_session: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = SessionBench() if in_session else QueueBench()
    receiver = bench.accept("a", mode=mode) if isinstance(bench, SessionBench) else bench.receiver(mode=mode)
    held: list[Any] = []
    for is_cancelled in (False, True, False):
        bench.send("tea", session="a" if in_session else None)
        with monkeypatch.context() as patch:
            patch.setattr(MessageReads, "begin", lambda reads, indexes, *given: held.append((indexes[0], given[-1])))
            [answers] = waiting(bench, receiver)
            bench.run_for(1)
        if is_cancelled:
            bench.fragment.cancel_receive(receiver)
        index, on_read = held.pop()
        assert held == answers == []
        on_read(Refused(CorruptStore("damaged", first_index=index, resume_index=index + 1)))
        bench.run_for(1)
        assert [len(each.rows) for each in answers] == [0] * is_cancelled
        if is_cancelled:
            [answers] = waiting(bench, receiver)
        bench.send("coffee", session="a" if in_session else None)
        bench.run_for(50)
        assert [each.body for each in got_by(answers)] == [b"coffee"]


@pytest.mark.parametrize("dead", [0, 1, 2])
def test_a_release_is_logged_of_messages_whose_deliveries_count(dead: int) -> None:
    """Those of dead letters do not: where there are no others nothing is logged, and whoever waits is told at once."""
    bench = QueueBench()
    bench.send("tea")
    bench.send("coffee")
    receiver = bench.receiver()
    assert (
        bench.settle(bench.receive(receiver, max_count=dead) if dead else [], SettleOutcome.DEAD_LETTER)
        == [SETTLED] * dead
    )
    taken = [bench.receive(bench.receiver(sub_queue)) for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS)]
    core, counts = bench.fragment.core, array("q", [1, 2])
    assert all(locks_of(core, counts)) and [len(its) for its in taken] == [2 - dead, dead]
    operations = logged(bench, RELEASED)
    answers: list[Any] = []
    release_messages(core, counts, answers.append)
    assert answers == [None] * (dead == 2) and list(locks_of(core, counts)) == [0, 0]
    bench.run_for(50)
    assert answers == [None]
    assert [operation.ranges for operation in operations] == [array("q", [1 + dead, 2 - dead])] * (dead < 2)
