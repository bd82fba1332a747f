"""A bench whose entity requires sessions, with those who hold and lose them."""

from __future__ import annotations

from typing import Any

from hubweir.errors import ServiceError
from hubweir.queue.fragment import FragmentReceiver, OnGiven
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.sub_queue import ReceiveMode
from hubweir.queue.tests.conftest import PEEK_LOCK, QueueBench
from hubweir.testing.simulated_env import SimulatedEnv


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


def set_state(bench: SessionBench, session_id: str, state: bytes | None) -> None:
    answer = bench.answer(lambda on_done: bench.fragment.set_session_state(session_id, state, bench.times(), on_done))
    assert answer is None
