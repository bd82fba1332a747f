"""A store of replicated logs (replicated_log.py): LogStore on a service that other machines run.

    with running_namespace(open_store=ReplicatedStores().open) as namespace: ...

runs a whole service on it. There is no folder, so nobody has a folder's lock: a second owner takes over log by log, as
it opens them. After a crash of a process: what the service has, which is every log that was made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hubweir.env import Env, Result
from hubweir.errors import LogLost, LogOffline, StoreError
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.log_store import NotOpened, close_open_log
from hubweir.messaging_store.trusted_clock import TrustedClock
from hubweir.testing.replicated_log import ReplicatedLog
from hubweir.testing.shared_log import SharedLog, SharedLogs
from hubweir.testing.stepped_call import Outcome

OnOpened = Callable[[ReplicatedLog | NotOpened], None]


class ReplicatedStores:
    """The stores of one service, by name; what is in them stays when they are closed."""

    def __init__(self) -> None:
        self._shared: dict[str, SharedLogs] = {}

    def open(self, env: Env, folder: str, **settings: Any) -> ReplicatedStore:
        """As MessagingStore.open. folder: nothing is written there. settings: of segment files, so of none here."""
        return ReplicatedStore(env, self._shared.setdefault(folder, SharedLogs()))


class ReplicatedStore:
    """See LogStore, and the module's text."""

    def __init__(self, env: Env, shared: SharedLogs) -> None:
        self._env = env
        self._shared = shared
        self._logs: dict[str, ReplicatedLog] = {}
        self._opening: set[str] = set()
        self._closing: set[str] = set()  # logs that are in _logs, and not for long
        self._is_closing = False
        self._on_closed: list[Callable[[], None]] = []
        self.clock = TrustedClock(env)

    def keep_clock(self) -> None:
        """See LogStore.keep_clock. Ages are told by enqueued times here: a clock that was wrong is not found out."""

    def look_at_syncs(self) -> None:
        """See LogStore.look_at_syncs. No log of this store syncs."""

    def log_ids(self) -> Sequence[str]:
        """See LogStore.log_ids."""
        return sorted(self._shared.logs)

    def open_log(
        self, log_id: str, on_done: OnOpened, *, durability: Durability | None = None, name: str = "",
        makes: bool = False,
    ) -> None:  # fmt: skip
        """See LogStore.open_log. What is lost is lost for all: the service replicates, and nothing here repairs."""
        shared, known = self._shared.logs.get(log_id), self._logs.get(log_id)
        if log_id in self._closing:
            self._refuse(LogOffline(f"log {log_id} is being closed; open it again behind that"), on_done)
        elif known is not None:
            self._env.call_soon(lambda: on_done(known))
        elif log_id in self._opening:
            self._refuse(StoreError(f"log {log_id} is being opened; wait for the end of it"), on_done)
        elif self._is_closing:
            self._refuse(LogOffline(f"log {log_id} is not opened: its store is closed"), on_done)
        elif shared is None and not makes:
            self._refuse(LogLost(f"log {log_id} is lost: the service has none of this id"), on_done)
        else:
            if shared is None:
                shared = self._shared.logs[log_id] = SharedLog()
            self._open(log_id, shared, durability or Durability.DURABLE, on_done)

    def _open(self, log_id: str, shared: SharedLog, durability: Durability, on_done: OnOpened) -> None:
        self._opening.add(log_id)

        def opened(refused: Refused | None) -> None:
            self._opening.discard(log_id)
            if refused is None and self._is_closing:
                refused = Refused(LogOffline(f"log {log_id} is not opened: its store is closed"))
            if refused is None:
                self._logs[log_id] = log
                on_done(log)
            else:
                log.close(lambda: None)
                on_done(NotOpened(refused.error))
                self._end_if_over()

        log = ReplicatedLog(self._env, shared, log_id, durability, opened)

    def _refuse(self, error: StoreError, on_done: OnOpened) -> None:
        self._env.call_soon(lambda: on_done(NotOpened(error)))

    def close_log(self, log_id: str, on_done: Callable[[], None]) -> None:
        """See LogStore.close_log."""
        close_open_log(log_id, self._logs, self._closing, self._env, on_done)

    def delete_log(self, log_id: str, on_done: Callable[[Result[None]], None]) -> None:
        """See LogStore.delete_log."""
        if log_id in self._logs or log_id in self._opening:
            raise StoreError(f"log {log_id} is open; close it before it is deleted")
        self._shared.logs.pop(log_id, None)
        self._env.call_soon(lambda: on_done(Outcome(lambda: None)))

    def remove_unfinished(self) -> None:
        """See LogStore.remove_unfinished. No log moves between stores of this kind."""

    def raise_epoch(self, newest: int, on_done: Callable[[Result[int]], None]) -> None:
        """See LogStore.raise_epoch. The service that replicates fences by itself: there are no epochs."""
        self._env.call_soon(lambda: on_done(Outcome(lambda: newest + 1)))

    def look_for_owner(self) -> None:
        """See LogStore.look_for_owner. Every log follows the service, and finds out by itself."""

    def close(self, on_done: Callable[[], None]) -> None:
        """See LogStore.close."""
        self._is_closing = True
        self._on_closed.append(on_done)
        self._env.call_soon(self._end_if_over)
        for log_id in sorted(self._logs):
            self.close_log(log_id, self._end_if_over)

    def _end_if_over(self) -> None:
        if self._is_closing and not self._logs and not self._opening:
            waiting, self._on_closed = self._on_closed, []
            for callback in waiting:
                callback()
