"""Deletes logs: what lives on one is ended, then the log is closed and its files are removed.

Ending readers, producers and capture takes a while: one log a turn of the loop, as with openings. A deletion that is
asked for again while it is under way joins it: all who ask are answered at its end. After a crash whoever keeps the
catalog asks for it again, until the files are gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from hubweir.broker.commands.command import Answer, OnAnswer
from hubweir.broker.commands.process import Done
from hubweir.broker.openings import STOPPING, Openings
from hubweir.broker.refusals import refusal_of
from hubweir.broker.residents import Residents
from hubweir.env import Env, Result
from hubweir.errors import STORE_OFFLINE, HubweirError, ServiceError
from hubweir.messaging_store.log_store import LogStore


class Deletions:
    """Those of one broker."""

    def __init__(self, env: Env, store: LogStore, residents: Residents, openings: Openings) -> None:
        self._env = env
        self._store = store
        self._residents = residents
        self._openings = openings
        # Whoever waits for the end of a deletion, by log id.
        self._waiting: dict[str, list[OnAnswer]] = {}
        self._queue: deque[str] = deque()  # of those, the logs whose deletion has not begun
        self._ending = 0  # residents that are ended, and whose logs are not being closed yet
        self._on_stopped: Callable[[], None] | None = None

    def is_under_way(self, log_id: str) -> bool:
        return log_id in self._waiting

    def delete(self, log_id: str, on_answer: OnAnswer) -> None:
        """Answers Done when nothing of the log is left, also when there was nothing."""
        if log_id in self._waiting:
            self._waiting[log_id].append(on_answer)
            return
        self._waiting[log_id] = [on_answer]
        self._queue.append(log_id)
        if len(self._queue) == 1:
            self._env.call_soon(self._begin_next)

    def stop(self, on_stopped: Callable[[], None]) -> None:
        """Refuse what has not begun; on_stopped, maybe at once, when nothing is being ended."""
        self._on_stopped = on_stopped
        while self._queue:
            self._answer(self._queue.popleft(), refusal_of(ServiceError(STORE_OFFLINE, STOPPING)))
        self._stop_if_idle()

    # Steps

    def _begin_next(self) -> None:
        if not self._queue:
            return  # all were refused
        log_id = self._queue.popleft()
        if self._queue:
            self._env.call_soon(self._begin_next)
        self._ending += 1

        def idle() -> None:
            self._ending -= 1
            self._store.close_log(log_id, lambda: self._remove(log_id))
            self._stop_if_idle()

        resident = self._residents.drop(log_id)
        if resident is None:
            self._openings.end(log_id, idle)  # one that is under way uses the files
        else:
            resident.end(idle)

    def _remove(self, log_id: str) -> None:
        def removed(result: Result[None]) -> None:
            try:
                result.value()
            except (HubweirError, OSError) as error:
                self._answer(log_id, refusal_of(error))
            else:
                self._answer(log_id, Done())

        try:
            self._store.delete_log(log_id, removed)
        except HubweirError as error:
            self._answer(log_id, refusal_of(error))

    def _answer(self, log_id: str, answer: Answer) -> None:
        for on_answer in self._waiting.pop(log_id):
            on_answer(answer)

    def _stop_if_idle(self) -> None:
        if self._on_stopped is not None and not self._ending:
            on_stopped, self._on_stopped = self._on_stopped, None
            on_stopped()
