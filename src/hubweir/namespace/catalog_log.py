"""The catalog on its log: loaded at start, changed one operation at a time, each answered when it is durable.

Changes wait in a queue, so that every one is judged against the state that all before it left. They are rare; the
queue is bounded. After a crash an answered change is there; one whose outcome was unknown is there whole or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hubweir.env import Env
from hubweir.errors import SERVER_BUSY, STORE_OFFLINE, TIMED_OUT, ServiceError, StoreError
from hubweir.messaging_store.log import Appended, Log, Refused
from hubweir.messaging_store.operations import operations_of, pack_operations
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_operation import Operation, decode_operation, encode

T = TypeVar("T")

WAITING_LIMIT = 1_000
# A start replays at most about this many operations; each is some hundred bytes.
OPERATIONS_PER_SNAPSHOT = 256


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A change that waits. plan: the operation, judged against the catalog of that moment, or a ServiceError raised.

    result: what on_done is told once the operation is applied.
    """

    plan: Callable[[], Operation]
    result: Callable[[], T]
    on_done: Callable[[T | ServiceError], None]


class CatalogLog:
    """See the module's text. Holds the one catalog that `submit` changes; on_applied is told after every change."""

    def __init__(self, log: Log, env: Env) -> None:
        self._log = log
        self._env = env
        self._waiting: deque[Change[object]] = deque()
        self._busy = False
        self._in_doubt = False
        self._since_snapshot = 0
        self.on_applied: Callable[[], None] | None = None
        saved = log.load_snapshot()
        self._next_index, self.catalog = (0, Catalog()) if saved is None else (saved[0], Catalog.restore(saved[1]))
        self._catch_up()

    def submit(self, change: Change[T]) -> None:
        """Queue a change. on_done comes once, on the loop, never inside this call."""
        if len(self._waiting) >= WAITING_LIMIT:
            busy = ServiceError(
                SERVER_BUSY, f"{WAITING_LIMIT} changes of the namespace are waiting already: try again later."
            )
            self._env.call_soon(lambda: change.on_done(busy))
            return
        self._waiting.append(change)  # type: ignore[arg-type]  # result and on_done of one Change agree
        self._next()

    def _next(self) -> None:
        """Start changes until one is on its way to the log, or none waits."""
        while self._waiting and not self._busy:
            change = self._waiting.popleft()
            refusal = self._start(change)
            if refusal is not None:
                self._answer(change, refusal)

    def _start(self, change: Change[object]) -> ServiceError | None:
        """Append the change's operation; return why not, when it is refused at once."""
        try:
            if self._in_doubt:
                self._catch_up()
                self._in_doubt = False
            operation = change.plan()
            run = pack_operations([encode(operation)])
            self._log.append(
                run, now_ms=self._env.now_ms(), on_done=lambda outcome: self._on_stored(change, operation, outcome)
            )
        except ServiceError as refusal:
            return refusal
        except (StoreError, OSError) as error:
            # Offline, fenced, or unreadable when what is in doubt was looked up.
            return _offline(error)
        self._busy = True
        return None

    def _on_stored(self, change: Change[object], operation: Operation, outcome: Appended | Refused) -> None:
        self._busy = False
        if isinstance(outcome, Refused):
            # Not known: it may show in the log later, so the next change first reads what is there.
            self._in_doubt = not outcome.known
            change.on_done(_offline(outcome.error) if outcome.known else _unknown(outcome.error))
        else:
            self.catalog.apply(operation)
            self._next_index = outcome.next_index
            self._since_snapshot += 1
            if self.on_applied is not None:
                self.on_applied()
            change.on_done(change.result())
            self._save_if_due()
        self._next()

    def _save_if_due(self) -> None:
        if self._since_snapshot >= OPERATIONS_PER_SNAPSHOT:
            self._since_snapshot = 0
            # Without it a start replays more; the next one is tried as soon.
            self._log.save_snapshot(self.catalog.snapshot(), lambda _: None)

    def _catch_up(self) -> None:
        """Apply every visible operation that was not applied yet. Blocking: at start, and after an unknown outcome."""
        start = self._next_index
        for run in self._log.replay(start):
            for index, data in operations_of(run.data):
                if index >= start:
                    self.catalog.apply(decode_operation(data))
                    self._next_index = index + 1
                    self._since_snapshot += 1

    def _answer(self, change: Change[object], answer: object) -> None:
        self._env.call_soon(lambda: change.on_done(answer))


def _offline(error: Exception) -> ServiceError:
    return ServiceError(STORE_OFFLINE, f"The catalog cannot be written now ({error}): nothing was changed. Try again.")


def _unknown(error: Exception) -> ServiceError:
    return ServiceError(
        TIMED_OUT,
        f"The catalog's log failed while the change was written ({error}): it is unknown whether it holds. Look first, "
        "then try again.",
    )
