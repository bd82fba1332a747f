"""A fragment's parts of transactions (transaction.py): made, taken in when they are visible, or undone."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import Protocol

from msgspec import Struct

from hubweir.errors import RESOURCE_LIMIT, SERVER_BUSY, ServiceError, StoreError
from hubweir.kernels.queue_contract import SETTLING
from hubweir.messaging_store.log import Appended, Refused, call_all
from hubweir.messaging_store.operations import pack_operations
from hubweir.queue.arrived_records import Data
from hubweir.queue.changed_properties import dead_letter_properties
from hubweir.queue.fragment_core import FragmentCore, OnLogged
from hubweir.queue.fragment_values import NumberRange, Times
from hubweir.queue.logged_transactions import PreparedTransaction
from hubweir.queue.operation import (
    ENDED,
    HELD,
    NUMBERED,
    PREPARED,
    RANGES_LIMIT,
    RESERVED,
    SETTLED,
    SKIPPED,
    UNDELIVERED,
    Operation,
)
from hubweir.queue.settlements import Planned, Settlements
from hubweir.queue.transaction import Effects, Part, Reserved


class Senders(Protocol):
    """What the fragment does with messages that are sent in transactions."""

    def take_on(self, run: bytearray, messages: int, times: Times) -> int:
        """They are on their way until `decided`; what the clock skipped before them. Raises as Fragment.enqueue."""

    def reserve(self, run: bytearray, messages: int, times: Times) -> int:
        """They have room until `decided`, but are none yet: 0. Raises as Fragment.enqueue."""

    def decided(self, messages: int, skipped_ms: int, *, is_refused: bool) -> None:
        """What became of them."""

    def store_held(self, run: bytearray, operation: Operation, times: Times, on_done: OnLogged) -> None:
        """Store what was reserved and is held since, behind an operation; on_done when the state has both."""


class _PlannedPart(Struct, frozen=True):
    """What is marked for a transaction, and of messages that are taken on how many, and what the clock skipped."""

    plans: list[Planned]
    cancelled: array[int]
    messages: int = 0
    skipped_ms: int = 0


class TransactionParts:
    """Of one fragment.

    scheduled: marks scheduled messages, by their numbers.
    """

    def __init__(
        self,
        core: FragmentCore,
        settlements: Settlements,
        scheduled: Callable[[array[int]], array[int]],
        senders: Senders,
    ) -> None:
        self._core = core
        self._settlements = settlements
        self._scheduled = scheduled
        self._senders = senders
        # Prepared since the start, with the run's number; ended, and not in the log yet.
        self._live: dict[bytes, tuple[int, _PlannedPart]] = {}
        self._unlogged: dict[bytes, Operation] = {}
        self._storing: dict[bytes, list[OnLogged]] = {}  # ENDED is on its way with messages: who waits for it
        self.opened_in_doubt: set[bytes] = set()  # found at the start: nobody is served before they end

    # Of one log

    def part(self, effects: Effects, times: Times) -> Part:
        """See Fragment.transact."""
        planned, operations = self._planned(effects, times, self._senders.take_on)
        number = self._core.begin_run(operations)
        return Part(self._core.encoded(operations), effects.run, partial(self._done, number, operations, planned))

    def _planned(
        self, effects: Effects, times: Times, admit: Callable[[bytearray, int, Times], int]
    ) -> tuple[_PlannedPart, list[Operation]]:
        """Everything is marked, and what the log is to say. Raises as Fragment.transact, and nothing is marked.

        admit: of the senders, for what is sent.
        """
        core = self._core
        # Counts of deliveries that are not in the log yet stand before what takes them back. A log that is almost full
        # may refuse them and take the rest, which is smaller.
        core.flush_all(times)
        if core.lacks_counts:
            text = f"'{core.entity}' cannot store which messages it delivered: commit again when its log takes that"
            raise ServiceError(SERVER_BUSY, text)
        plans: list[Planned] = []
        cancelled = array("q")
        try:
            for settlement in effects.settlements:
                plans.append(self._settlements.plan(settlement, times))
            cancelled = self._scheduled(effects.cancelled)
            numbered = [self._numbered(each) for each in effects.reserved]
            messages, skipped_ms = effects.taken_messages, 0
            if effects.undelivered:
                self._core.check_room(len(effects.run))
            if messages:
                skipped_ms = admit(effects.taken_run, messages, times)
        except ServiceError as error:
            self._undo(_PlannedPart(plans, cancelled), Refused(StoreError(str(error))))
            raise
        operations = [operation for plan in plans for operation in plan.operations]
        operations += core.ranged(SETTLED, cancelled) if cancelled else []
        if skipped_ms:
            operations.append(Operation(SKIPPED, time_ms=skipped_ms))
        for each in effects.undelivered:
            properties = dead_letter_properties(each.reason, each.description)
            operations.append(Operation(UNDELIVERED, many=each.messages, properties=properties))
        operations += numbered
        return _PlannedPart(plans, cancelled, messages, skipped_ms), operations

    def _numbered(self, reserved: Reserved) -> Operation:
        """What gives the next messages these numbers. Raises ServiceError SERVER_BUSY where they cannot have them."""
        core = self._core
        count, table = core.count_of(reserved.first_number), core.state.messages
        end = count + reserved.messages
        if not count or end > table.next_count or any(table.find(each) is not None for each in range(count, end)):
            text = f"'{core.entity}' has not reserved the numbers of messages that are scheduled: schedule them again"
            raise ServiceError(SERVER_BUSY, text)
        return Operation(NUMBERED, number=count, many=reserved.messages)

    def reserve_numbers(self, many: int, times: Times, on_done: Callable[[NumberRange | Refused], None]) -> None:
        """Sequence numbers that no other message gets: for messages that a transaction may schedule. Durable then."""
        core = self._core
        run = pack_operations(core.encoded([Operation(RESERVED, many=many)]))

        def appended(outcome: Appended | Refused) -> None:
            if isinstance(outcome, Refused):
                on_done(outcome)
                return
            first = core.number_base + core.state.messages.next_count
            core.state.apply_run(run, is_replay=False)
            on_done(NumberRange(first, first + many))

        core.append(run, times, appended)

    def _undo(self, planned: _PlannedPart, refused: Refused) -> None:
        for plan in planned.plans:
            self._settlements.done(plan, refused)
        self._core.unmark(planned.cancelled, refused)

    def _done(self, number: int, operations: list[Operation], planned: _PlannedPart, outcome: Data | Refused) -> None:
        core = self._core
        self._sent(planned, outcome)
        if isinstance(outcome, Refused):
            self._undo(planned, outcome)
        else:
            for operation in operations:
                self._apply(operation)
            core.state.apply_run(outcome, is_replay=False)
            for plan in planned.plans:
                self._settlements.done(plan, None)
        core.end_run(number)
        core.wake()

    def _sent(self, planned: _PlannedPart, outcome: Data | Refused) -> None:
        if planned.messages:
            self._senders.decided(planned.messages, planned.skipped_ms, is_refused=isinstance(outcome, Refused))

    def _apply(self, operation: Operation) -> None:
        locks = self._core.state.apply(operation, is_replay=False)
        if locks:
            self._core.locks.end(locks)

    # Of several logs: as one that takes part

    @property
    def in_doubt(self) -> dict[bytes, PreparedTransaction]:
        """What is prepared here, and not ended."""
        return self._core.state.transactions.prepared

    def opened(self) -> None:
        """The state was read from the log: nobody may have what is in doubt in it."""
        self.opened_in_doubt = set(self.in_doubt)
        for prepared in self.in_doubt.values():
            there = array("q", [each for each in prepared.counts if self._core.state.messages.find(each) is not None])
            self._core.state.messages.mark_settling(there)

    def prepare(self, transaction: bytes, coordinator: str, effects: Effects, times: Times) -> Part:
        """See Fragment.prepare."""
        planned, operations = self._planned(effects, times, self._senders.reserve)
        counts = array("q", [count for plan in planned.plans for count in plan.counts])
        counts += planned.cancelled
        if len(counts) > RANGES_LIMIT:
            error = ServiceError(RESOURCE_LIMIT, f"More than {RANGES_LIMIT} messages of '{self._core.entity}' at once.")
            refused = Refused(StoreError(error.text))
            self._sent(planned, refused)
            self._undo(planned, refused)
            raise error
        if effects.messages:
            operations.append(Operation(HELD, many=effects.messages))
        ranges = array("q", [each for count in sorted(counts) for each in (count, 1)])
        said = Operation(PREPARED, ranges, transaction=transaction, many=len(operations), logs=(coordinator.encode(),))
        number = self._core.begin_run([])

        def prepared(outcome: Data | Refused) -> None:
            self._sent(planned, outcome)
            if isinstance(outcome, Refused):
                self._undo(planned, outcome)
                self._core.end_run(number)
                return
            for operation in (said, *operations):
                self._apply(operation)
            self._core.state.apply_run(outcome, is_replay=False)
            self._live[transaction] = number, planned

        return Part(self._core.encoded([said, *operations]), effects.run, prepared)

    def end(self, transaction: bytes, *, is_committed: bool, times: Times, on_done: OnLogged) -> None:
        """See Fragment.end_transaction."""
        core = self._core
        prepared = self.in_doubt.get(transaction)
        if prepared is not None:
            said = Operation(ENDED, transaction=transaction, is_committed=is_committed)
            if is_committed and prepared.messages:
                self._store(prepared, said, times, on_done)
                return
            self._unlogged[transaction] = said
            self._apply(said)
            self._let_go(transaction, prepared, is_committed=is_committed)
            self.opened_in_doubt.discard(transaction)
            core.wake()
        noted = self._unlogged.get(transaction)
        if noted is None:
            on_done(None)  # it was never prepared here, or has ended for good
            return

        def logged(refused: Refused | None) -> None:
            if refused is None:
                self._unlogged.pop(transaction, None)
            on_done(refused)

        core.gather([noted], logged)

    def _store(self, prepared: PreparedTransaction, said: Operation, times: Times, on_done: OnLogged) -> None:
        """Messages get their numbers in the log's order: so all that was prepared is done when they are visible.

        It stays prepared where that is refused, and whoever ends it again has it tried again.
        """
        transaction = said.transaction
        waiting = self._storing.setdefault(transaction, [])
        waiting.append(on_done)
        if len(waiting) > 1:
            return

        def stored(refused: Refused | None) -> None:
            if refused is None:
                self._let_go(transaction, prepared, is_committed=True)
                self.opened_in_doubt.discard(transaction)
            self._core.wake()
            call_all(partial(done, refused) for done in self._storing.pop(transaction))

        try:
            self._senders.store_held(bytearray(prepared.run), said, times, stored)
        except ServiceError:
            del self._storing[transaction]
            raise

    def _let_go(self, transaction: bytes, prepared: PreparedTransaction, *, is_committed: bool) -> None:
        """Marks of what is in doubt no longer go, and locks of what is done."""
        refused = None if is_committed else Refused(StoreError("the transaction was rolled back"))
        live = self._live.pop(transaction, None)
        if live is None:
            # Of before a start: nobody has a lock. What the operations did carries no mark any more.
            messages = self._core.state.messages
            left = [count for count in prepared.counts if messages.find(count) is not None]
            self._core.unlock(array("q", left), marks=SETTLING, change=0)
            return
        number, planned = live
        if refused is not None:
            self._undo(planned, refused)
        else:
            for plan in planned.plans:
                self._settlements.done(plan, None)
        self._core.end_run(number)
