"""A fragment's parts of transactions (transaction.py): made, taken in when they are visible, or undone."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import Protocol

from hubweir.errors import ServiceError, StoreError
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_state import Data
from hubweir.queue.fragment_values import Times
from hubweir.queue.operation import SETTLED, SKIPPED, Operation
from hubweir.queue.settlements import Planned, Settlements
from hubweir.queue.transaction import Effects, Part


class OnDecided(Protocol):
    """Told what became of messages that were taken on."""

    def __call__(self, messages: int, skipped_ms: int, *, is_refused: bool) -> None: ...


class TransactionParts:
    """Of one fragment.

    scheduled: marks scheduled messages, by their numbers. admit: takes messages on, and says what the clock skipped;
    decided: told what became of them.
    """

    def __init__(
        self,
        core: FragmentCore,
        settlements: Settlements,
        scheduled: Callable[[array[int]], array[int]],
        admit: Callable[[bytearray, int, Times], int],
        decided: OnDecided,
    ) -> None:
        self._core = core
        self._settlements = settlements
        self._scheduled = scheduled
        self._admit = admit
        self._decided = decided

    def part(self, effects: Effects, times: Times) -> Part:
        """See Fragment.transact."""
        core = self._core
        # Counts of deliveries that are not in the log yet stand before what takes them back.
        core.flush_all(times)
        plans: list[Planned] = []
        cancelled = array("q")
        try:
            for settlement in effects.settlements:
                plans.append(self._settlements.plan(settlement, times))
            cancelled = self._scheduled(effects.cancelled)
            skipped_ms = self._admit(effects.run, effects.messages, times) if effects.messages else 0
        except ServiceError as error:
            self._undo(plans, cancelled, Refused(StoreError(str(error))))
            raise
        operations = [operation for plan in plans for operation in plan.operations]
        operations += core.ranged(SETTLED, cancelled) if cancelled else []
        if skipped_ms:
            operations.append(Operation(SKIPPED, time_ms=skipped_ms))
        number = core.begin_run(operations)
        done = partial(self._done, number, operations, plans, cancelled, effects.messages, skipped_ms)
        return Part(core.encoded(operations), effects.run, done)

    def _undo(self, plans: list[Planned], cancelled: array[int], refused: Refused) -> None:
        for plan in plans:
            self._settlements.done(plan, refused)
        self._core.unmark(cancelled, refused)

    def _done(
        self,
        number: int,
        operations: list[Operation],
        plans: list[Planned],
        cancelled: array[int],
        messages: int,
        skipped_ms: int,
        outcome: Data | Refused,
    ) -> None:
        core = self._core
        if messages:
            self._decided(messages, skipped_ms, is_refused=isinstance(outcome, Refused))
        if isinstance(outcome, Refused):
            self._undo(plans, cancelled, outcome)
        else:
            for operation in operations:
                locks = core.state.apply(operation, is_replay=False)
                if locks:
                    core.locks.end(locks)
            core.state.apply_run(outcome, is_replay=False)
            for plan in plans:
                self._settlements.done(plan, None)
        core.end_run(number)
        core.wake()
