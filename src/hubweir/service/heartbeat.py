"""Asks again and again whether a process answers and follows the keeper, and tells it how the others are.

One that says nothing for long is stalled. One that answers, takes clients and does not have the newest catalogs goes by
rights that may be over; it is lost, too, and so is one that answers and does not come to take clients. All of this is
counted in questions, not in time: whoever asks may have been stopped itself meanwhile.
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
UNFOLLOWED_BEATS = 10  # 5 s: what a right that was taken away may still do
START_BEATS = 120  # a process reads its program, and a store its epoch, from a disk that is busy
UNSERVED_BEATS = 120  # 60 s: it reads every catalog, which is done in one where there are few entities
NOT_FOLLOWED = "does not follow the keeper"


class Heartbeat:
    """Of one life of a process. on_lost: called once, with what is wrong with it, for a log line.

    lost: that, from then on.
    """

    def __init__(
        self,
        env: Env,
        door: BrokerClient,
        on_lost: Callable[[str], None],
        *,
        on_state: Callable[[], None] = lambda: None,
        is_kept: Callable[[], bool] = lambda: True,
        is_asked: Callable[[], bool] = lambda: False,
        question: Callable[[], AskProcess] = AskProcess,
    ) -> None:
        """on_state: called whenever it answered. is_kept: the keeper can be followed. is_asked: to take clients, and it
        has not said yet that it does. question: tells it of others.
        """
        self._env = env
        self._door = door
        self._on_lost = on_lost
        self._on_state = on_state
        self._is_kept = is_kept
        self._is_asked_to_serve = is_asked
        self._question = question
        self._unfollowed = 0
        self._unserved = 0
        self._is_asked = False
        self._silent = 0
        self._timer: Timer | None = None
        self.state: ProcessState | None = None  # as of the last answer
        self.lost = ""

    def start(self) -> None:
        """Ask from now on."""
        self._timer = self._env.machine.call_later(BEAT_MS, self._beat)

    def stop(self) -> None:
        """Ask no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def is_silent(self) -> bool:
        """Whether it answered once, and not the last questions; one that is busy misses one now and then."""
        return self.state is not None and self._silent > SILENT_BEATS

    @property
    def is_unserved(self) -> bool:
        """Whether it was asked for long to take clients, and does not."""
        return self._unserved > UNSERVED_BEATS

    def _beat(self) -> None:
        self._silent += 1
        if self._silent > (START_BEATS if self.state is None else STALLED_BEATS):
            self._lose("answers no more")
            return
        if self._unfollowed > UNFOLLOWED_BEATS:
            self._lose(NOT_FOLLOWED)
            return
        if self.state is not None and self.is_unserved:
            self._lose("does not take clients" if self.state.follows else NOT_FOLLOWED)
            return
        self._timer = self._env.machine.call_later(BEAT_MS, self._beat)
        if not self._is_asked:
            self._is_asked = True
            self._door.submit(self._question(), self._answered)

    def _lose(self, why: str) -> None:
        self._timer, self.lost = None, why
        self._on_lost(why)

    def _answered(self, answer: Answer) -> None:
        self._is_asked = False
        if isinstance(answer, ProcessState):
            self._silent, self.state = 0, answer
            is_behind = answer.is_serving and not answer.follows and self._is_kept()
            self._unfollowed = self._unfollowed + 1 if is_behind else 0
            self._unserved = self._unserved + 1 if self._is_asked_to_serve() else 0
            self._on_state()
