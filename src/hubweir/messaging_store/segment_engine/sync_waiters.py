"""Holds what waits for the sync of all that is visible now: snapshots cover durable records only (rule R11)."""

from __future__ import annotations

from collections.abc import Callable

from hubweir.messaging_store.segment_engine.log_state import LogState


class SyncWaiters:
    """The waiters of one log. A callback gets True when it is synced, False when it cannot be."""

    __slots__ = ("_state", "_waiting")

    def __init__(self, state: LogState) -> None:
        self._state = state
        self._waiting: list[tuple[int, Callable[[bool], None]]] = []

    def add(self, callback: Callable[[bool], None]) -> bool:
        """Call back in time, never inside this call; whether a sync has to be seen to."""
        state = self._state
        is_online = state.offline is None
        if is_online and state.synced.number < state.visible.number:
            self._waiting.append((state.visible.number, callback))
            return True
        state.steps.soon(lambda: callback(is_online))
        return False

    def release(self) -> None:
        """Something was synced, or the log went offline."""
        if not self._waiting:
            return
        state = self._state
        waiting, self._waiting = self._waiting, []
        is_online = state.offline is None
        for number, callback in waiting:
            if is_online and state.synced.number < number:
                self._waiting.append((number, callback))
            else:
                state.steps.soon(lambda callback=callback: callback(is_online))  # type: ignore[misc]
