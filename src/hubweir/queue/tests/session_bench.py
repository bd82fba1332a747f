"""A bench whose entity requires sessions, with those who hold and lose them."""

from __future__ import annotations

from typing import Any

from hubweir.errors import ServiceError
from hubweir.queue.fragment import FragmentReceiver, OnGiven, ReceivedMessages
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.sub_queue import ReceiveMode
from hubweir.queue.tests.conftest import PEEK_LOCK, Got, QueueBench, message, opened
from hubweir.testing.simulated_env import SimulatedEnv

NAMES = ("a", "b", "c")


class SessionBench(QueueBench):
    """A bench whose entity requires sessions."""

    lost: list[tuple[str | None, ServiceError]]

    def __init__(self, *, env: SimulatedEnv | None = None, **settings: Any) -> None:
        self.lost = []
        settled = FragmentSettings(requires_session=True, lock_duration_ms=10_000, **settings)
        super().__init__(settled, env=env or SimulatedEnv(7))

    def accept(
        self,
        session_id: str | None = None,
        *,
        wait_ms: int = 0,
        mode: ReceiveMode = PEEK_LOCK,
        on_given: OnGiven | None = None,
    ) -> FragmentReceiver:
        answers: list[Any] = []
        self.fragment.accept_session(
            session_id,
            mode,
            self.times(),
            wait_ms=wait_ms,
            on_done=answers.append,
            on_lost=self._lost,
            on_given=on_given,
        )
        self.run_for(wait_ms + 1)
        (answer,) = answers
        if isinstance(answer, ServiceError):
            raise answer
        assert isinstance(answer, FragmentReceiver)
        return answer

    def _lost(self, receiver: FragmentReceiver, error: ServiceError) -> None:
        self.lost.append((receiver.session_id, error))

    def close(self, receiver: FragmentReceiver) -> None:
        self.fragment.close_receiver(receiver)
        self.run_for(1)


def begin_to_accept(sessions: SessionBench, session_id: str | None, wait_ms: int = 60_000) -> list[Any]:
    """Begin to accept; the receiver, or why there is none, comes into the list."""
    answers: list[Any] = []
    sessions.fragment.accept_session(
        session_id, PEEK_LOCK, sessions.times(), wait_ms=wait_ms, on_done=answers.append, on_lost=sessions._lost
    )
    return answers


def set_state(bench: SessionBench, session_id: str, state: bytes | None) -> None:
    answer = bench.answer(lambda on_done: bench.fragment.set_session_state(session_id, state, bench.times(), on_done))
    assert answer is None


def waiting(sessions: SessionBench, *receivers: FragmentReceiver) -> list[list[Any]]:
    """Have each of them wait for messages; what it is answered."""
    answers: list[list[Any]] = [[] for _ in receivers]
    for receiver, its in zip(receivers, answers, strict=True):
        sessions.fragment.receive(receiver, max_count=10, max_bytes=1 << 20, on_done=its.append)
    return answers


def got_by(answers: list[Any]) -> list[Got]:
    [answer] = answers
    assert isinstance(answer, ReceivedMessages), answer
    return opened(answer)


def enqueue_in_turn(sessions: SessionBench, *texts: str) -> None:
    """Messages of all sessions in one run, each behind one of another session."""
    sessions.enqueue(*(message(f"{name}{text}", session=name) for text in texts for name in NAMES))
