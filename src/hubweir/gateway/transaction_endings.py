"""Transactions over several logs: prepared, decided by one of them, and brought to an end whatever stops meanwhile.

A log that is sent to is the coordinator's; where none is, the first that something was done in. It begins, the
others prepare, it commits: what its log says then is the decision. The others are told in the same step, and when
all of them have noted it the coordinator's log forgets. What is sent to others is there when they have noted it, so a
commit of such is answered then. A log that hears nothing asks for itself: its broker says
TransactionOpen, and the answer is looked for here. Logs are found by their ids at any broker, for another process may
have them by then. (queue/logged_transactions.py, tests/models/transaction.py)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubweir.broker.commands.command import Answer, Command, OnAnswer, Owner, nobody_waits
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.commands.transaction import (
    AskTransaction,
    BeginDecision,
    CommitTransaction,
    EndTransaction,
    ForgetTransaction,
    PrepareTransaction,
    TransactionFate,
    TransactionOpen,
)
from hubweir.errors import ENTITY_MOVED
from hubweir.gateway.brokers import BrokerClient, Brokers
from hubweir.queue.transaction import Reserved, TransactedSettlement, Undelivered
from hubweir.queue.transaction_decisions import Fate

# Told whether all logs have noted an end, or are gone for good.
OnEnded = Callable[[bool], None]


@dataclass(frozen=True, slots=True)
class LogPart:
    """What a transaction does in one log, and its broker. The fields are those of TransactionEffects."""

    broker: BrokerClient
    log_id: str
    settlements: tuple[TransactedSettlement, ...]
    cancelled: bytes
    undelivered: tuple[Undelivered, ...]
    reserved: tuple[Reserved, ...]
    messages: int
    size_bytes: int
    run: bytearray

    def commit(self, transaction: bytes = b"", logs: tuple[str, ...] = ()) -> CommitTransaction:
        """The command that commits it, for the others too."""
        return CommitTransaction(
            self.log_id,
            self.settlements,
            self.cancelled,
            self.undelivered,
            self.reserved,
            self.messages,
            self.size_bytes,
            self.run,
            transaction,
            logs,
        )

    def prepare(self, transaction: bytes, coordinator: str) -> PrepareTransaction:
        """The command that prepares it."""
        return PrepareTransaction(
            self.log_id,
            self.settlements,
            self.cancelled,
            self.undelivered,
            self.reserved,
            self.messages,
            self.size_bytes,
            self.run,
            transaction,
            coordinator,
        )


class TransactionEndings:
    """Of one process. has_log: whether any catalog knows a log of this id."""

    def __init__(self, brokers: Brokers, process_id: int, has_log: Callable[[str], bool]) -> None:
        self._brokers = brokers
        self._owner = Owner(process_id, -1)
        self._has_log = has_log

    def commit(self, transaction: bytes, coordinator: LogPart, others: Sequence[LogPart], on_answer: OnAnswer) -> None:
        """Commit in all logs, or in none. on_answer: Done; or a refusal, known where it is rolled back for certain."""
        _Commit(self, transaction, coordinator, others, self._owner, on_answer).begin()

    def opened(self, push: TransactionOpen) -> None:
        """A transaction has not ended in a log: see to it."""
        if push.coordinator:
            self._ask(push)
        else:
            self.finish(push.log_id, push.transaction, push.logs, on_ended=_nobody_waits)

    def _ask(self, push: TransactionOpen) -> None:
        """What is in doubt in one log is ended as the coordinator's says."""

        def answered(answer: Answer) -> None:
            if isinstance(answer, TransactionFate) and answer.fate is not Fate.OPEN:
                is_committed = answer.fate is Fate.COMMITTED
                self.end(push.transaction, (push.log_id,), is_committed=is_committed, on_ended=_nobody_waits)
            elif isinstance(answer, Refusal) and self._is_gone(push.coordinator, answer):
                self.end(push.transaction, (push.log_id,), is_committed=False, on_ended=_nobody_waits)

        self.submit(push.coordinator, AskTransaction(push.coordinator, push.transaction), answered)

    def finish(self, coordinator: str, transaction: bytes, logs: Sequence[str], *, on_ended: OnEnded) -> None:
        """Tell logs that it is committed, and when all know the coordinator's; on_ended as `end` does."""

        def ended(all_know: bool) -> None:
            if all_know:
                self.submit(coordinator, ForgetTransaction(coordinator, transaction), nobody_waits)
            on_ended(all_know)

        self.end(transaction, logs, is_committed=True, on_ended=ended)

    def end(self, transaction: bytes, logs: Sequence[str], *, is_committed: bool, on_ended: OnEnded) -> None:
        """Tell logs how it ended; on_ended when each has answered."""
        left, all_know = len(logs), True

        def ended(log_id: str, answer: Answer) -> None:
            nonlocal left, all_know
            left -= 1
            all_know = all_know and (not isinstance(answer, Refusal) or self._is_gone(log_id, answer))
            if not left:
                on_ended(all_know)

        for log_id in logs:
            command = EndTransaction(log_id, transaction, is_committed)
            self.submit(log_id, command, lambda answer, log_id=log_id: ended(log_id, answer))  # type: ignore[misc]

    def submit(self, log_id: str, command: Command, on_answer: OnAnswer) -> None:
        """Ask one broker after the other until one of them has the log, and does it.

        Where none does, the answer is the first refusal that says more than that the log is elsewhere.
        """
        brokers = list(self._brokers)
        told: Refusal | None = None

        def ask(at: int) -> None:
            def answered(answer: Answer) -> None:
                nonlocal told
                if not isinstance(answer, Refusal):
                    on_answer(answer)
                    return
                if told is None or told.condition is ENTITY_MOVED:
                    told = answer
                if at + 1 < len(brokers):
                    ask(at + 1)
                else:
                    on_answer(told)

            brokers[at].submit(command, answered)

        ask(0)

    def _is_gone(self, log_id: str, refusal: Refusal) -> bool:
        """Whether a log that no broker has was deleted with its entity."""
        return refusal.condition is ENTITY_MOVED and not self._has_log(log_id)


class _Commit:
    """One that is on its way."""

    def __init__(
        self,
        endings: TransactionEndings,
        transaction: bytes,
        coordinator: LogPart,
        others: Sequence[LogPart],
        owner: Owner,
        on_answer: OnAnswer,
    ) -> None:
        self._endings = endings
        self._transaction = transaction
        self._coordinator = coordinator
        self._others = others
        self._owner = owner
        self._on_answer = on_answer
        self._unanswered = 0
        self._refusal: Refusal | None = None

    @property
    def _logs(self) -> tuple[str, ...]:
        return tuple(each.log_id for each in self._others)

    def begin(self) -> None:
        """First the coordinator's log knows of it: so that to ask it what became of it is to give it up."""
        log_id = self._coordinator.log_id
        self._coordinator.broker.submit(BeginDecision(log_id, self._owner, self._transaction), self._begun)

    def _begun(self, answer: Answer) -> None:
        if isinstance(answer, Refusal):
            self._on_answer(answer)
            return
        self._unanswered = len(self._others)
        for each in self._others:
            each.broker.submit(each.prepare(self._transaction, self._coordinator.log_id), self._prepared)

    def _prepared(self, answer: Answer) -> None:
        self._unanswered -= 1
        if isinstance(answer, Refusal):
            self._refusal = self._refusal or answer
        if self._unanswered:
            return
        if self._refusal is not None:
            self._roll_back(self._refusal)
            return
        part = self._coordinator
        part.broker.submit(part.commit(self._transaction, self._logs), self._decided)

    def _decided(self, answer: Answer) -> None:
        if isinstance(answer, Refusal):
            if answer.known:
                self._roll_back(answer)
            else:
                self._on_answer(answer)  # the logs that are prepared ask until somebody knows
            return
        # In this step, so that nobody sees a part of it.
        sends = any(each.messages for each in self._others)
        told = (lambda all_know: self._on_answer(Done())) if sends else _nobody_waits
        self._endings.finish(self._coordinator.log_id, self._transaction, self._logs, on_ended=told)
        if not sends:
            self._on_answer(Done())

    def _roll_back(self, refusal: Refusal) -> None:
        """Give it up where it would be decided, and only then where it is prepared."""

        def given_up(answer: Answer) -> None:
            is_over = isinstance(answer, TransactionFate) and answer.fate is Fate.ROLLED_BACK
            if is_over:
                self._endings.end(self._transaction, self._logs, is_committed=False, on_ended=_nobody_waits)
            self._on_answer(Refusal(refusal.condition, refusal.text, known=is_over))

        self._coordinator.broker.submit(AskTransaction(self._coordinator.log_id, self._transaction), given_up)


def _nobody_waits(all_know: bool) -> None:
    """For the end."""
