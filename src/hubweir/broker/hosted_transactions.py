"""The transactions of a log at its owner: commits, parts that are in doubt here, and decisions that were made here.

Whatever does not end soon is told to gateways, again and again until it has: one of them asks the coordinator's log,
or tells the logs that took part (gateway/transaction_endings.py). To ask is to give up what is not decided yet, so
nothing is told that the look before had not seen, but for what is there at the start. A fragment that was opened with
something in doubt serves nobody before that has ended: else one log would show effects that another one has not.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from hubweir.broker.commands.command import LogCommand, OnAnswer, Owner
from hubweir.broker.commands.fragment import MessagesEnqueued
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.transaction import (
    ANYBODY,
    AskTransaction,
    BeginDecision,
    CommitTransaction,
    EndTransaction,
    ForgetTransaction,
    PrepareTransaction,
    ReserveNumbers,
    TransactionEffects,
    TransactionFate,
    TransactionOpen,
)
from hubweir.broker.deadlines import Deadline
from hubweir.broker.fragment_tools import FragmentTools
from hubweir.broker.refusals import refusal_of
from hubweir.errors import SERVER_BUSY, ServiceError, StoreError
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment import Effects, Fragment, NumberRange, Part, Times
from hubweir.queue.transaction import TransactedSettlement, commit_parts

TransactionStep = Callable[[Any, Any, OnAnswer], None]
# A transaction that goes well takes two syncs of each log.
LOOK_MS = 1_000


class FragmentsOfLog(Protocol):
    """The resident of a log, and the fragments that share it."""

    fragment: Fragment

    def fragments(self) -> list[Fragment]: ...

    def fragment_of(self, resident_id: str) -> Fragment: ...

    def note_stored(self, messages: int, size_bytes: int) -> None: ...

    def note_use(self) -> None: ...


class HostedTransactions:
    """Of one log; of a subscription, what is in doubt in it alone."""

    def __init__(self, tools: FragmentTools, resident_id: str, entity: str, shared: FragmentsOfLog) -> None:
        self._tools = tools
        self._resident_id = resident_id
        self._entity = entity
        self._shared = shared
        self._deadline: Deadline | None = None
        self._seen: set[TransactionOpen] = set()  # by the last look
        self._is_over = False

    # The resident's part

    def check_serves(self) -> None:
        """Raise ServiceError SERVER_BUSY while something is in doubt since before the start."""
        if self._shared.fragment.transactions.opened_in_doubt:
            text = f"'{self._entity}' waits to hear what became of a transaction: try again in a moment"
            raise ServiceError(SERVER_BUSY, text)

    def begin(self) -> None:
        """The log is there: whoever began what is open in it may be gone."""
        self._seen = set(self._open())
        self.look()

    def look(self) -> None:
        """Tell gateways what has not ended since the last look, and look again as long as there is any."""
        self._deadline = None
        if self._is_over or self._shared.fragment.log.log_id != self._resident_id:
            return  # of a subscription its topic does
        opened = self._open()
        for push in opened:
            if push in self._seen:
                self._tools.push(push)
        self._seen = set(opened)
        if opened:
            self._arm()

    def due(self, key: None, now_ms: int) -> None:
        """Some time has passed."""
        self.look()

    def owner_gone(self, owner: Owner) -> None:
        """Nobody is there any more who would decide what this owner began."""
        self._shared.fragment.decisions.forget_owner(owner.covers)

    def stop(self) -> None:
        """The log is closed, or about to be. Appends on their way may be answered behind this."""
        self._is_over = True
        if self._deadline is not None:
            self._tools.deadlines.cancel(self._deadline)
            self._deadline = None

    def _open(self) -> list[TransactionOpen]:
        log_id = self._resident_id
        doubts: dict[bytes, str] = {}
        for fragment in self._shared.fragments():
            doubts |= {each: prepared.coordinator for each, prepared in fragment.transactions.in_doubt.items()}
        found = [TransactionOpen(ANYBODY, log_id, each, coordinator, ()) for each, coordinator in doubts.items()]
        decided = self._shared.fragment.core.state.transactions.decided
        return found + [TransactionOpen(ANYBODY, log_id, each, "", logs) for each, logs in decided.items()]

    def _arm(self) -> None:
        if self._deadline is None and not self._is_over:
            self._deadline = self._tools.deadlines.arm_in(LOOK_MS, self)

    # One method a command; a HubweirError that is raised is the refusal

    def _commit(self, command: CommitTransaction, on_answer: OnAnswer) -> None:
        self.check_serves()
        self._shared.note_use()
        times, parts = self._tools.times(), []
        if command.transaction:
            parts.append(self._shared.fragment.decisions.decide(command.transaction, command.logs))
        try:
            parts += self._parts(command, times, lambda fragment, effects: fragment.transact(effects, times))
        except ServiceError as error:
            _undo(parts, error)
            raise
        self._append(command, parts, times, on_answer)

    def _prepare(self, command: PrepareTransaction, on_answer: OnAnswer) -> None:
        self.check_serves()
        self._shared.note_use()
        times = self._tools.times()

        def prepare(fragment: Fragment, effects: Effects) -> Part:
            return fragment.prepare(command.transaction, command.coordinator, effects, times)

        self._append(command, self._parts(command, times, prepare), times, on_answer)

    def _append(self, command: TransactionEffects, parts: Sequence[Part], times: Times, on_answer: OnAnswer) -> None:
        def appended(refused: Refused | None) -> None:
            if refused is not None:
                on_answer(refusal_of(refused.error, known=refused.known))
                return
            self._arm()
            if isinstance(command, CommitTransaction):
                self._tools.counters["broker.transactions_committed"] += 1
                self._count(command.messages, command.size_bytes)
            on_answer(Done())

        commit_parts(self._shared.fragment.core, parts, times, appended)

    def _count(self, messages: int, size_bytes: int) -> None:
        """These are stored."""
        self._tools.counters["broker.messages_enqueued"] += messages
        self._tools.counters["broker.bytes_enqueued"] += size_bytes
        self._shared.note_stored(messages, size_bytes)

    def _parts(
        self, effects: TransactionEffects, times: Times, make: Callable[[Fragment, Effects], Part]
    ) -> list[Part]:
        """The parts of all fragments that effects concern. Raises what they raise; nothing is marked then."""
        by_resident: dict[str, list[TransactedSettlement]] = {}
        if effects.messages or effects.cancelled:
            by_resident[self._resident_id] = []
        for settlement in effects.settlements:
            by_resident.setdefault(settlement.resident_id, []).append(settlement)
        parts: list[Part] = []
        try:
            for resident_id, settlements in by_resident.items():
                fragment = self._shared.fragment_of(resident_id)
                its = Effects(settlements)
                if fragment is self._shared.fragment:
                    its = Effects(
                        settlements,
                        array("q", effects.cancelled),
                        effects.run,
                        effects.messages,
                        effects.undelivered,
                        effects.reserved,
                    )
                parts.append(make(fragment, its))
        except ServiceError as error:
            _undo(parts, error)
            raise
        return parts

    def _end(self, command: EndTransaction, on_answer: OnAnswer) -> None:
        fragments, times = self._shared.fragments(), self._tools.times()
        left, first = len(fragments), None
        sent_to = self._shared.fragment.transactions
        prepared = sent_to.in_doubt.get(command.transaction)

        def ended(refused: Refused | ServiceError | None) -> None:
            nonlocal left, first
            left, first = left - 1, first if isinstance(first, Refused) else refused
            if left:
                return
            if isinstance(first, Refused):
                on_answer(refusal_of(first.error, known=first.known))
                return
            if prepared is not None and command.is_committed:
                self._count(prepared.messages, len(prepared.run))
            on_answer(Done())

        for fragment in fragments:
            fragment.end_transaction(
                command.transaction, is_committed=command.is_committed, times=times, on_done=ended
            )  # fmt: skip

    def _ask(self, command: AskTransaction, on_answer: OnAnswer) -> None:
        on_answer(TransactionFate(self._shared.fragment.decisions.fate(command.transaction)))

    def _begin(self, command: BeginDecision, on_answer: OnAnswer) -> None:
        self.check_serves()
        self._shared.fragment.decisions.begin(command.transaction, command.owner)
        on_answer(Done())

    def _forget(self, command: ForgetTransaction, on_answer: OnAnswer) -> None:
        def forgotten(refused: Refused | None) -> None:
            on_answer(Done() if refused is None else refusal_of(refused.error, known=refused.known))

        self._shared.fragment.decisions.forget(command.transaction, forgotten)

    def _reserve(self, command: ReserveNumbers, on_answer: OnAnswer) -> None:
        self.check_serves()
        self._shared.note_use()

        def reserved(outcome: NumberRange | Refused) -> None:
            if isinstance(outcome, Refused):
                on_answer(refusal_of(outcome.error, known=outcome.known))
            else:
                on_answer(MessagesEnqueued(outcome.first_number, outcome.next_number))

        self._shared.fragment.transactions.reserve_numbers(command.messages, self._tools.times(), reserved)

    steps: ClassVar[Mapping[type[LogCommand], TransactionStep]] = {
        AskTransaction: _ask,
        BeginDecision: _begin,
        CommitTransaction: _commit,
        EndTransaction: _end,
        ForgetTransaction: _forget,
        PrepareTransaction: _prepare,
        ReserveNumbers: _reserve,
    }


def _undo(parts: Sequence[Part], error: ServiceError) -> None:
    for part in parts:
        part.on_done(Refused(StoreError(str(error))))
