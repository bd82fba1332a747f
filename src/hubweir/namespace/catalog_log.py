"""The catalog on its log: loaded at start, changed one operation at a time, each answered when it is durable.

Where other processes follow the catalog, a change is answered when they have applied it, too (catalog_followers.py).
Changes wait in a queue, so that every one is judged against the state that all before it left. They are rare; the
queue is bounded. After a crash an answered change is there; one whose outcome was unknown is there whole or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from hubweir.env import Env
from hubweir.errors import SERVER_BUSY, STORE_OFFLINE, TIMED_OUT, ServiceError, StoreError
from hubweir.messaging_store.log import Appended, Log, Refused, Replayed, Run
from hubweir.messaging_store.operations import operations_of, pack_operations
from hubweir.namespace.catalog import Catalog
from hubweir.namespace.catalog_followers import CatalogFollowers
from hubweir.namespace.catalog_operation import Operation, PutRule, RemoveRule, decode_operation, encode

T = TypeVar("T")

WAITING_LIMIT = 1_000
# A start replays at most about this many operations; each is some hundred bytes. Of a catalog that holds more entities
# and rules, a quarter of their number, so that writing snapshots costs little for each operation.
OPERATIONS_PER_SNAPSHOT = 256
SNAPSHOT_SHARE = 4


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """A change that waits. plan: the operation, judged against the catalog of that moment, or a ServiceError raised.

    result: what on_done is told once the operation is applied.
    """

    plan: Callable[[], Operation]
    result: Callable[[], T]
    on_done: Callable[[T | ServiceError], None]


@dataclass(frozen=True, slots=True)
class LoggedOperation:
    """One record of the catalog's log. Numbers may be skipped between two of them."""

    index: int
    operation: Operation


@dataclass(frozen=True, slots=True)
class LoadedCatalog:
    """A catalog as its log holds it below next_index. replayed: operations behind its snapshot."""

    catalog: Catalog
    next_index: int = 0
    replayed: int = 0


def load_catalog(log: Log, on_done: Callable[[LoadedCatalog | Refused], None]) -> None:
    """Read a catalog from its newest snapshot and the log behind it; on_done comes later.

    Damage anywhere behind the snapshot is refused: nobody knows what the operations there did.
    """

    def restored(found: LoadedCatalog | None | Refused) -> None:
        if isinstance(found, Refused):
            on_done(found)
            return
        begun = LoadedCatalog(Catalog()) if found is None else found

        def read(operations: Sequence[LoggedOperation] | Refused) -> None:
            if isinstance(operations, Refused):
                on_done(operations)
                return
            next_index = begun.next_index
            for logged in operations:
                begun.catalog.apply(logged.operation)
                next_index = logged.index + 1
            on_done(LoadedCatalog(begun.catalog, next_index, len(operations)))

        _read_operations(log, begun.next_index, read)

    log.load_snapshot(lambda snapshot: LoadedCatalog(Catalog.restore(snapshot.state), snapshot.index), restored)


def _read_operations(log: Log, start: int, on_done: Callable[[Sequence[LoggedOperation] | Refused], None]) -> None:
    """The visible operations from an index on."""
    found: list[LoggedOperation] = []

    def visit(run: Run) -> None:
        each = ((index, data) for index, data in operations_of(run.data) if index >= start)
        found.extend(LoggedOperation(index, decode_operation(data)) for index, data in each)

    def replayed(outcome: Replayed | Refused) -> None:
        if isinstance(outcome, Refused):
            on_done(outcome)
        elif outcome.damage:
            on_done(Refused(outcome.damage[0]))
        else:
            on_done(found)

    log.replay(start, visit, replayed)


class CatalogLog:
    """See the module's text. Holds the one catalog that `submit` changes. followers: who else has a copy of it.

    on_applied is called after every change but those of rules of subscriptions.
    """

    def __init__(self, log: Log, env: Env, loaded: LoadedCatalog) -> None:
        """loaded: what load_catalog read from this log, which nobody else uses."""
        self._log = log
        self._env = env
        self._waiting: deque[Change[object]] = deque()
        self._busy = False
        self._in_doubt = False
        self._since_snapshot = loaded.replayed
        self._next_index = loaded.next_index
        self.catalog = loaded.catalog
        self.followers = CatalogFollowers(env)
        self.on_applied: Callable[[], None] | None = None

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
            if self._in_doubt:
                self._busy = True
                _read_operations(self._log, self._next_index, self._settle_doubt)
                return
            change = self._waiting.popleft()
            refusal = self._start(change)
            if refusal is not None:
                self._answer(change, refusal)

    def _start(self, change: Change[object]) -> ServiceError | None:
        """Append the change's operation; return why not, when it is refused at once."""
        try:
            operation = change.plan()
            run = pack_operations([encode(operation)])
            self._log.append(
                run, now_ms=self._env.now_ms(), on_done=lambda outcome: self._on_stored(change, operation, outcome)
            )
        except ServiceError as refusal:
            return refusal
        except StoreError as error:  # offline, or fenced
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
            self._applied(operation, outcome.next_index)
            result = change.result()
            self.followers.when_applied(self.catalog.version, lambda: change.on_done(result))
            self._save_if_due()
        self._next()

    def _save_if_due(self) -> None:
        if self._since_snapshot >= max(OPERATIONS_PER_SNAPSHOT, self.catalog.size // SNAPSHOT_SHARE):
            self._since_snapshot = 0
            # Without it a start replays more; the next one is tried as soon.
            self._log.save_snapshot(self.catalog.snapshot(), lambda _: None)

    def _settle_doubt(self, operations: Sequence[LoggedOperation] | Refused) -> None:
        """What the log shows behind the known end did happen. While it cannot be read, who waits is refused in turn."""
        self._busy = False
        if isinstance(operations, Refused):
            self._answer(self._waiting.popleft(), _offline(operations.error))
        else:
            self._in_doubt = False
            for logged in operations:
                self._applied(logged.operation, logged.index + 1)
        self._next()

    def _applied(self, operation: Operation, next_index: int) -> None:
        self.catalog.apply(operation)
        self._next_index = next_index
        self._since_snapshot += 1
        if not self.followers.is_empty:
            self.followers.tell(self.catalog.version, encode(operation))
        # No connection stands on a rule of a subscription, and there may be a hundred thousand of them.
        if self.on_applied is not None and not isinstance(operation, PutRule | RemoveRule):
            self.on_applied()

    def _answer(self, change: Change[object], answer: object) -> None:
        """Tell of a refusal when every process has applied what it was judged against: whoever is told may look."""
        told = partial(self._env.call_soon, lambda: change.on_done(answer))
        self.followers.when_applied(self.catalog.version, told)


def _offline(error: Exception) -> ServiceError:
    return ServiceError(STORE_OFFLINE, f"The catalog cannot be written now ({error}): nothing was changed. Try again.")


def _unknown(error: Exception) -> ServiceError:
    return ServiceError(
        TIMED_OUT,
        f"The catalog's log failed while the change was written ({error}): it is unknown whether it holds. Look first, "
        "then try again.",
    )
