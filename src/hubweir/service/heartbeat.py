"""Whether a process answers: asked again and again, and one that says nothing for long is stalled.

Silence is counted in questions, not in time: whoever asks may have been stopped itself meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.commands.broker_process import AskProcess, ProcessState
from hubweir.broker.commands.command import Answer
from hubweir.env import Env, Timer
from hubweir.gateway.brokers import BrokerClient

BEAT_MS = 500
STALLED_BEATS = 20  # 10 s, as the failure table promises
SILENT_BEATS = 3
START_BEATS = 120  # a process reads its program, and a store its epoch, from a disk that is busy


class Heartbeat:
    """Of one life of a process. on_stalled: called once."""

    def __init__(self, env: Env, door: BrokerClient, on_stalled: Callable[[], None]) -> None:
        self._env = env
        self._door = door
        self._on_stalled = on_stalled
        self._is_asked = False
        self._silent = 0
        self._timer: Timer | None = None
        self.state: ProcessState | None = None  # as of the last answer

    def start(self) -> None:
        """Ask from now on."""
        self._timer = self._env.call_later(BEAT_MS, self._beat)

    def stop(self) -> None:
        """Ask no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def is_silent(self) -> bool:
        """Whether it did not answer the last questions; one that is busy misses one now and then."""
        return self._silent > SILENT_BEATS

    def _beat(self) -> None:
        self._silent += 1
        if self._silent > (START_BEATS if self.state is None else STALLED_BEATS):
            self._timer = None
            self._on_stalled()
            return
        self._timer = self._env.call_later(BEAT_MS, self._beat)
        if not self._is_asked:
            self._is_asked = True
            self._door.submit(AskProcess(), self._answered)

    def _answered(self, answer: Answer) -> None:
        self._is_asked = False
        if isinstance(answer, ProcessState):
            self._silent, self.state = 0, answer
