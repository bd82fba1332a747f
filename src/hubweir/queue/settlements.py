"""Settlements by lock token: which locks are good, and what becomes of their messages."""

from __future__ import annotations

from array import array
from functools import partial

from msgspec import Struct

from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, ServiceError, StoreError
from hubweir.kernels.queue_contract import LOCKED, M_LOCK, M_SESSION, M_STATE, SETTLING, SUB_QUEUE_BITS
from hubweir.messaging_store.log import Refused
from hubweir.queue.changed_properties import (
    CHANGES_LIMIT_BYTES,
    dead_letter_properties,
    is_property_map,
    merged_properties,
)
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_values import OnDone, Times
from hubweir.queue.message_giving import release_messages
from hubweir.queue.operation import DEFERRED, MODIFIED, REJECTED, Operation
from hubweir.queue.operation import SETTLED as LOGGED_SETTLED
from hubweir.queue.settle_outcome import (
    LOCK_LOST,
    SESSION_LOCK_LOST,
    TOKEN_BYTES,
    SettleDetails,
    SettleOutcome,
    lost_error,
)
from hubweir.queue.transaction import TransactedSettlement

_NOTHING = SettleDetails()


class Planned(Struct, frozen=True):
    """A settlement of a transaction. counts: of all its messages. operations: what the log says of it.

    abandoned: ordinals of the locks whose messages are active again when that is visible; active: their counts.
    """

    counts: array[int]
    operations: list[Operation]
    abandoned: array[int]
    active: array[int]


class Settlements:
    """Of one fragment."""

    def __init__(self, core: FragmentCore) -> None:
        self._core = core

    def settle(
        self, tokens: bytes, outcome: SettleOutcome, times: Times, on_done: OnDone[bytes], details: SettleDetails | None
    ) -> None:
        """See Fragment.settle."""
        said = details or _NOTHING
        self._check(tokens, said)
        core, many = self._core, len(tokens) // TOKEN_BYTES
        ordinals, counts = core.locks.find(tokens, times.monotonic_ms)
        self._check_changes(counts, said)
        codes = bytearray(many)
        core.state.messages.mark(counts, many, ordinals, core.locks.first_number, codes)
        answer = self._answer(codes)
        if not any(counts):
            on_done(answer)
            return
        properties = said.properties if outcome is not SettleOutcome.COMPLETE else b""
        if outcome is SettleOutcome.RELEASE:
            core.locks.end_ordinals(_of(ordinals, counts))
            release_messages(core, counts, partial(_told, answer, on_done))
        elif outcome is SettleOutcome.COMPLETE:
            core.gather_joined(LOGGED_SETTLED, counts, partial(self._settled, counts, answer, on_done))
        elif outcome is SettleOutcome.DEFER:
            operations = core.ranged(MODIFIED, counts, properties=properties) if properties else []
            operations += core.ranged(DEFERRED, counts)
            core.gather(operations, partial(self._settled, counts, answer, on_done))
        else:
            # In a dead-letter sub-queue there is nowhere further to go: it is as if they were abandoned.
            main = array("q", [count if self._is_main(count) else 0 for count in counts])
            if outcome is SettleOutcome.ABANDON or not any(main):
                self._abandon(ordinals, counts, properties, answer, on_done)
            elif main == counts:
                self._dead_letter(counts, said, answer, on_done)
            else:
                others = array("q", [a - b for a, b in zip(counts, main, strict=True)])
                self._dead_letter(main, said, answer, on_done)
                self._abandon(ordinals, others, properties, answer, _nobody_asks)

    def plan(self, settlement: TransactedSettlement, times: Times) -> Planned:
        """Mark messages that a transaction settles: none is anybody's until the plan is done.

        Raises ServiceError MESSAGE_LOCK_LOST or SESSION_LOCK_LOST for the first lock that is lost, and marks none;
        NOT_ALLOWED for a release.
        """
        said, outcome, tokens = settlement.details or _NOTHING, settlement.outcome, settlement.tokens
        if outcome is SettleOutcome.RELEASE:
            raise ServiceError(NOT_ALLOWED, "A message is not released in a transaction: abandon it, or do so outside.")
        self._check(tokens, said)
        core, many = self._core, len(tokens) // TOKEN_BYTES
        ordinals, counts = core.locks.find(tokens, times.monotonic_ms)
        self._check_changes(counts, said)
        codes = bytearray(many)
        core.state.messages.mark(counts, many, ordinals, core.locks.first_number, codes)
        lost = [code for code in self._answer(codes) if code]
        if lost:
            core.unmark(counts, Refused(StoreError("a lock is lost")))
            raise lost_error(lost[0])
        rejected = array("q")
        if outcome is SettleOutcome.DEAD_LETTER:
            # As ever: in a dead-letter sub-queue it is as if they were abandoned.
            rejected = array("q", [count for count in counts if self._is_main(count)])
        abandoned, active = array("q"), array("q")
        if outcome in (SettleOutcome.ABANDON, SettleOutcome.DEAD_LETTER):
            there = set(rejected)
            pairs = zip(ordinals, counts, strict=True)
            for ordinal, count in pairs:
                if count not in there:
                    abandoned.append(ordinal)
                    active.append(count)
            core.state.sessions.hold_back(core.state.messages, active)
        return Planned(counts, self._operations(outcome, counts, rejected, active, said), abandoned, active)

    def _operations(
        self,
        outcome: SettleOutcome,
        counts: array[int],
        rejected: array[int],
        active: array[int],
        said: SettleDetails,
    ) -> list[Operation]:
        """What the log says of a plan."""
        core = self._core
        if outcome is SettleOutcome.COMPLETE:
            return core.ranged(LOGGED_SETTLED, counts)
        operations: list[Operation] = []
        for its, properties in (
            (rejected, merged_properties(said.properties, dead_letter_properties(said.reason, said.description))),
            (active if active or rejected else counts, said.properties),
        ):
            if its and properties:
                operations += core.ranged(MODIFIED, its, properties=properties)
        if outcome is SettleOutcome.DEFER:
            operations += core.ranged(DEFERRED, counts)
        elif rejected:
            operations += core.ranged(REJECTED, rejected)
        return operations

    def done(self, plan: Planned, refused: Refused | None) -> None:
        """A plan's operations are visible and taken in, or refused."""
        core = self._core
        core.state.sessions.let_go(plan.active)
        if refused is None and plan.active:
            core.locks.end_ordinals(plan.abandoned)
            core.unlock(plan.active, marks=LOCKED | SETTLING, change=0)
        core.unmark(plan.counts, refused)

    def renew(self, tokens: bytes, times: Times) -> array[int]:
        """See Fragment.renew."""
        self._check(tokens, _NOTHING)
        core = self._core
        ordinals, counts = core.locks.find(tokens, times.monotonic_ms)
        duration_ms = core.settings.lock_duration_ms
        until = array("q", bytes(8 * len(counts)))
        for place, count in enumerate(counts):
            found = core.state.messages.find(count) if count else None
            if found is None:
                continue
            page, at = found
            bits, lock = page.rows[at + M_STATE], page.rows[at + M_LOCK]
            if bits & (LOCKED | SETTLING) != LOCKED or lock != core.locks.first_number + ordinals[place]:
                continue
            session = core.state.sessions.by_number.get(page.rows[at + M_SESSION])
            if session is not None and session.holder is not None and not bits & SUB_QUEUE_BITS:
                until[place] = session.until_ms - times.monotonic_ms + times.stamp_ms
            else:
                core.locks.renew(ordinals[place], times.monotonic_ms + duration_ms)
                until[place] = times.stamp_ms + duration_ms
        return until

    def _check(self, tokens: bytes, said: SettleDetails) -> None:
        if len(tokens) % TOKEN_BYTES:
            raise ServiceError(ARGUMENT_ERROR, f"{len(tokens)} bytes are no lock tokens of {TOKEN_BYTES}")
        if said.properties and not is_property_map(said.properties):
            raise ServiceError(ARGUMENT_ERROR, "the properties to modify are no map whose keys are strings")

    def _check_changes(self, counts: array[int], said: SettleDetails) -> None:
        """Raise ServiceError ARGUMENT_ERROR where properties to modify make those of a message too many."""
        changed = self._core.state.changed
        for before in {changed.get(count, b"") for count in counts if count} if said.properties else ():
            if len(merged_properties(before, said.properties)) > CHANGES_LIMIT_BYTES:
                text = (
                    f"a message of '{self._core.entity}' may have {CHANGES_LIMIT_BYTES} bytes of properties that "
                    "receivers modified: modify fewer, or the same ones again"
                )
                raise ServiceError(ARGUMENT_ERROR, text)

    def _answer(self, codes: bytearray) -> bytes:
        if self._core.settings.requires_session:
            return bytes(codes.replace(bytes((LOCK_LOST,)), bytes((SESSION_LOCK_LOST,))))
        return bytes(codes)

    def _is_main(self, count: int) -> bool:
        found = self._core.state.messages.find(count) if count else None
        return found is not None and not found[0].rows[found[1] + M_STATE] & SUB_QUEUE_BITS

    def _abandon(
        self, ordinals: array[int], counts: array[int], properties: bytes, answer: bytes, on_done: OnDone[bytes]
    ) -> None:
        core = self._core
        if not properties:
            core.locks.end_ordinals(_of(ordinals, counts))
            core.unlock(counts, marks=LOCKED | SETTLING, change=0)
            on_done(answer)
        else:
            operations = core.ranged(MODIFIED, counts, properties=properties)
            core.state.sessions.hold_back(core.state.messages, counts)
            core.gather(operations, partial(self._modified, _of(ordinals, counts), counts, answer, on_done))

    def _modified(
        self,
        ordinals: array[int],
        counts: array[int],
        answer: bytes,
        on_done: OnDone[bytes],
        refused: Refused | None,
    ) -> None:
        core = self._core
        core.state.sessions.let_go(counts)
        if refused is None:
            core.locks.end_ordinals(ordinals)
            core.unlock(counts, marks=LOCKED | SETTLING, change=0)
        self._settled(counts, answer, on_done, refused)

    def _dead_letter(self, counts: array[int], said: SettleDetails, answer: bytes, on_done: OnDone[bytes]) -> None:
        core = self._core
        reasons = dead_letter_properties(said.reason, said.description)
        properties = merged_properties(said.properties, reasons)
        operations = core.ranged(MODIFIED, counts, properties=properties) if properties else []
        operations += core.ranged(REJECTED, counts)
        core.gather(operations, partial(self._dead_lettered, counts, answer, on_done))

    def _dead_lettered(
        self, counts: array[int], answer: bytes, on_done: OnDone[bytes], refused: Refused | None
    ) -> None:
        self._core.wake()  # somebody may wait for dead letters
        self._settled(counts, answer, on_done, refused)

    def _settled(self, counts: array[int], answer: bytes, on_done: OnDone[bytes], refused: Refused | None) -> None:
        self._core.unmark(counts, refused)
        on_done(answer if refused is None else refused)


def _of(ordinals: array[int], counts: array[int]) -> array[int]:
    """The ordinals of those locks whose messages are settled."""
    return array("q", [ordinal for ordinal, count in zip(ordinals, counts, strict=True) if count])


def _told(answer: bytes, on_done: OnDone[bytes], refused: Refused | None) -> None:
    on_done(answer if refused is None else refused)


def _nobody_asks(answer: object) -> None:
    """The answer comes with another part of the same settlement."""
