"""A transaction over two logs: decided by one record, in the log of its coordinator. Promise P12.

The model. There are two fragments with a log each. The first log is the coordinator's; the other fragment is the
participant; a transaction has effects in both. Effects are gathered in memory. At the discharge the participant
appends a PREPARE with its effects, which names the coordinator's log and the transaction; nobody sees them, and their
locks hold. When the PREPARE is synced, the participant votes. Then the coordinator appends the one record that
decides: DECIDE, with its own effects. When that is synced, both fragments show their effects in the same turn of the
loop, and the client is answered. The participant notes the END when it has time; when that is synced, the coordinator
may FORGET. No DECIDE means no: nobody writes an abort but the participant, to be rid of its PREPARE. A client
declares transactions one after the other, so many of them at once.

A transaction of one log is the DECIDE alone: one operation.

Atomic steps. A request, a vote that arrives, a question with its answer, a sync of the oldest operation of one log, a
deadline. A vote travels: it may arrive late, or never; then the coordinator's deadline ends the transaction.

A crash. Each fragment can stop alone (rule R4), with its own memory. Two stops with nothing in between are a crash of
the process. A kill keeps the tail of the log, a power cut some of its oldest operations. A fragment that opens reads
its log and settles with the other one before it serves anybody: the participant asks about each PREPARE without an
END, and the coordinator hands out its decisions. A participant may ask at any other time, too. The answer to a
question is "committed" if DECIDE is synced, "wait" if it is in flight, and otherwise "aborted"; the last also ends a
transaction that is still being prepared. A sync that fails takes the tail of one log back.

Promises that must hold.
P12  A transaction that is decided in one log is prepared in the other, and never aborted there. Whenever both
     fragments serve, both show the effects of a transaction or neither does, and shown effects stay. A transaction
     whose commit was answered is decided. A transaction whose rollback was answered, or that lost its connection
     before the discharge, is never decided. When all is done both logs say the same.

Left out: several participants (the coordinator treats each as this one), and the effects themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.models.explorer import Action, put

# A transaction in the coordinator's log.
NO_RECORD, DECIDED, FORGOTTEN = range(3)

# A transaction in the participant's log, and in its memory. Its effects are hidden until it is committed.
NOTHING, PREPARED, COMMITTED, ABORTED = range(4)

# How far the coordinator is, in memory.
IDLE, GATHERING, PREPARING, DECIDING, OVER = range(5)

# A fragment.
OPENING, SERVING = range(2)

# The answer to the client.
UNTOLD, TOLD_COMMITTED, TOLD_ROLLED_BACK, UNKNOWN = range(4)

COORDINATOR, PARTICIPANT = range(2)


class Record(NamedTuple):
    """An operation in the tail of a log. says: the state of the transaction in that log when it is synced."""

    transaction: int
    says: int


class Transaction(NamedTuple):
    """decision, part: its states in the two logs, synced. phase, mine: in the memory of coordinator and participant.

    vote: it is on its way. shown: somebody saw the effects.
    """

    decision: int
    part: int
    phase: int
    mine: int
    vote: int
    told: int
    shown: int


class State(NamedTuple):
    """fragments: the coordinator's, the participant's. tails: of their logs."""

    transactions: tuple[Transaction, ...]
    tails: tuple[tuple[Record, ...], tuple[Record, ...]]
    fragments: tuple[int, int]
    faults: int
    wrong: str


@dataclass(frozen=True, slots=True)
class TwoLogs:
    """The model; behind its bounds, mistakes to plant."""

    transactions: int = 2
    at_once: int = 1
    tail_limit: int = 2
    faults: int = 2

    vote_before_durable: bool = False
    answer_before_durable: bool = False
    abort_while_open: bool = False  # a question looks at synced records only, and the transaction goes on
    forget_early: bool = False  # the decision is forgotten before the participant's end is synced
    ids_used_again: bool = False  # transactions are counted from the beginning behind each start
    serve_in_doubt: bool = False  # a fragment that opens serves first and asks later
    deadline_while_deciding: bool = False  # the deadline rolls back a transaction that is being decided
    two_commits: bool = False  # no prepare: each log gets its part of the commit

    FAULTS = ("kill", "power_cut", "sync_fails", "refuse", "lose_connection")

    def start(self) -> State:
        new = Transaction(NO_RECORD, NOTHING, IDLE, NOTHING, 0, UNTOLD, 0)
        return State((new,) * self.transactions, ((), ()), (SERVING, SERVING), faults=0, wrong="")

    def steps(self, state: State) -> Iterator[tuple[Action, State]]:
        if state.wrong:
            return
        for number, transaction in enumerate(state.transactions):
            yield from self._of_client(state, number, transaction)
            yield from self._of_coordinator(state, number, transaction)
            yield from self._of_participant(state, number, transaction)
        for side in (COORDINATOR, PARTICIPANT):
            if state.fragments[side] == OPENING and (self.serve_in_doubt or self._has_settled(state, side)):
                yield ("serve", side), shown(state._replace(fragments=put(state.fragments, side, SERVING)))
            if state.tails[side]:
                yield ("sync", side), self._synced(state, side)
            if state.faults < self.faults:
                yield from self._faults(state, side)

    def broken(self, state: State) -> str | None:
        if state.wrong:
            return state.wrong
        for transaction in state.transactions:
            text = self._broken(state, transaction)
            if text:
                return text
        return None

    def _broken(self, state: State, transaction: Transaction) -> str | None:
        decision, part, phase, mine, _, told, shown_before = transaction
        if decision:
            if ABORTED in (part, mine):
                return "P12: a decided transaction is aborted in the other log"
            if part == NOTHING and not self.two_commits:
                return "P12: a decided transaction is not prepared in the other log"
            if told == TOLD_ROLLED_BACK:
                return "P12: a decided transaction was answered as rolled back"
        elif told == TOLD_COMMITTED and phase != DECIDING:
            return "P12: a transaction that was answered as committed is not decided"
        elif COMMITTED in (part, mine):
            return "P12: one log has the effects, and nothing is decided"
        if state.fragments == (SERVING, SERVING):
            if (decision != NO_RECORD) != (mine == COMMITTED):
                return "P12: one fragment shows the effects, the other does not"
            if shown_before and mine != COMMITTED:
                return "P12: effects that were shown are gone"
        return None

    def is_quiet(self, state: State) -> bool:
        return (
            state.tails == ((), ())
            and state.fragments == (SERVING, SERVING)
            and all(
                transaction.told and transaction.part != PREPARED and transaction.decision != DECIDED
                for transaction in state.transactions
            )
        )

    def view(self, state: State) -> list[tuple[bool, bool]]:
        """Of each transaction, whether its effects are seen in the one fragment and in the other."""
        is_up = [fragment == SERVING for fragment in state.fragments]
        return [
            (is_up[COORDINATOR] and one.decision != NO_RECORD, is_up[PARTICIPANT] and one.mine == COMMITTED)
            for one in state.transactions
        ]

    def _of_client(self, state: State, number: int, one: Transaction) -> Iterator[tuple[Action, State]]:
        if state.fragments[COORDINATOR] != SERVING:
            return
        earlier = state.transactions[:number]
        is_next = one.phase == IDLE and one.told == UNTOLD and all(before.phase != IDLE for before in earlier)
        if is_next and sum(before.told == UNTOLD for before in earlier) < self.at_once:
            yield ("declare", number), changed(state, number, phase=GATHERING)
        if one.phase == GATHERING:
            yield ("lose_connection", number), changed(state, number, phase=OVER, told=TOLD_ROLLED_BACK)
            yield ("roll_back", number), changed(state, number, phase=OVER, told=TOLD_ROLLED_BACK)
            if state.fragments[PARTICIPANT] == SERVING:
                yield from self._discharged(state, number)
        if one.phase in (PREPARING, DECIDING) and one.told == UNTOLD:
            yield ("lose_connection", number), changed(state, number, told=UNKNOWN)

    def _discharged(self, state: State, number: int) -> Iterator[tuple[Action, State]]:
        """The participant checks its effects and prepares, or refuses them: a lock is over, there is no room."""
        yield ("refuse", number), changed(state, number, phase=OVER, told=TOLD_ROLLED_BACK)
        if self.two_commits:
            if self._has_room(state, PARTICIPANT) and self._has_room(state, COORDINATOR):
                after = appended(changed(state, number, phase=DECIDING), PARTICIPANT, number, COMMITTED)
                yield ("discharge", number), appended(after, COORDINATOR, number, DECIDED)
        elif self._has_room(state, PARTICIPANT):
            after = changed(state, number, phase=PREPARING, mine=PREPARED, vote=int(self.vote_before_durable))
            yield ("discharge", number), appended(after, PARTICIPANT, number, PREPARED)

    def _of_coordinator(self, state: State, number: int, one: Transaction) -> Iterator[tuple[Action, State]]:
        if one.vote:
            yield from self._vote(state, number, one)
        ends = (GATHERING, PREPARING, DECIDING) if self.deadline_while_deciding else (GATHERING, PREPARING)
        if state.fragments[COORDINATOR] == SERVING and one.phase in ends:
            told = one.told or TOLD_ROLLED_BACK
            yield ("deadline", number), changed(state, number, phase=OVER, told=told)
        if one.decision == DECIDED and state.fragments == (OPENING, SERVING) and one.mine == PREPARED:
            yield ("hand_out", number), changed(state, number, mine=COMMITTED)
        is_done = one.part == COMMITTED or self.forget_early
        is_due = one.decision == DECIDED and is_done and Record(number, FORGOTTEN) not in state.tails[COORDINATOR]
        if is_due and self._has_room(state, COORDINATOR):
            yield ("forget", number), appended(state, COORDINATOR, number, FORGOTTEN)

    def _vote(self, state: State, number: int, one: Transaction) -> Iterator[tuple[Action, State]]:
        after = changed(state, number, vote=0)
        if state.fragments[COORDINATOR] != SERVING or one.phase != PREPARING:
            yield ("vote", number, "too late"), after
        elif self._has_room(state, COORDINATOR):
            after = appended(changed(after, number, phase=DECIDING), COORDINATOR, number, DECIDED)
            if self.answer_before_durable and one.told == UNTOLD:
                after = changed(after, number, told=TOLD_COMMITTED)
            yield ("vote", number, "decides"), after

    def _of_participant(self, state: State, number: int, one: Transaction) -> Iterator[tuple[Action, State]]:
        if one.mine == PREPARED:
            yield from self._asked(state, number, one)
        noted = (one.part, *(record.says for record in state.tails[PARTICIPANT] if record.transaction == number))
        if one.mine in (COMMITTED, ABORTED) and one.mine != noted[-1] and self._has_room(state, PARTICIPANT):
            yield ("end", number), appended(state, PARTICIPANT, number, one.mine)

    def _asked(self, state: State, number: int, one: Transaction) -> Iterator[tuple[Action, State]]:
        """The coordinator's log must have been read; whether it serves others does not matter."""
        decided = one.decision == DECIDED
        if self.ids_used_again and state.faults:
            decided = any(other.decision == DECIDED for other in state.transactions)
        if decided:
            yield ("ask", number, "committed"), changed(state, number, mine=COMMITTED)
        elif self.abort_while_open:
            yield ("ask", number, "aborted"), changed(state, number, mine=ABORTED)
        elif one.phase == DECIDING:
            yield ("ask", number, "wait"), state
        else:
            told = TOLD_ROLLED_BACK if one.phase == PREPARING and one.told == UNTOLD else one.told
            yield ("ask", number, "aborted"), changed(state, number, phase=OVER, mine=ABORTED, told=told)

    def _has_settled(self, state: State, side: int) -> bool:
        """Whether a fragment that opens may serve: none of its transactions is in doubt at the other one."""
        for one in state.transactions:
            if side == PARTICIPANT and one.mine == PREPARED:
                return False
            is_served = state.fragments[PARTICIPANT] == SERVING
            if side == COORDINATOR and one.decision == DECIDED and one.mine == PREPARED and is_served:
                return False
        return True

    def _has_room(self, state: State, side: int) -> bool:
        return len(state.tails[side]) < self.tail_limit

    def _synced(self, state: State, side: int) -> State:
        number, says = state.tails[side][0]
        after = state._replace(tails=put(state.tails, side, state.tails[side][1:]))
        one = state.transactions[number]
        if side == PARTICIPANT:
            after = changed(after, number, part=says)
            if says == PREPARED and one.mine == PREPARED and not self.vote_before_durable:
                after = changed(after, number, vote=1)
            if says == COMMITTED and self.two_commits:
                after = changed(after, number, mine=COMMITTED)
            return after
        after = changed(after, number, decision=says)
        if says == DECIDED:
            told = TOLD_COMMITTED if one.told == UNTOLD else one.told
            after = changed(after, number, phase=OVER, told=told)
            if state.fragments[PARTICIPANT] == SERVING and one.mine == PREPARED:
                after = changed(after, number, mine=COMMITTED)  # in the same turn
        return shown(after)

    def _faults(self, state: State, side: int) -> Iterator[tuple[Action, State]]:
        tail = state.tails[side]
        yield ("kill", side), self._stopped(state, side, len(tail))
        for kept in range(len(tail)):
            yield ("power_cut", side, kept), self._stopped(state, side, kept)
        if tail:
            yield ("sync_fails", side), self._sync_failed(state, side)

    def _stopped(self, state: State, side: int, kept: int) -> State:
        """The fragment's memory is gone, its log is read, and it begins to open."""
        after = state._replace(
            tails=put(state.tails, side, ()),
            fragments=put(state.fragments, side, OPENING),
            faults=state.faults + 1,
        )
        says = dict(state.tails[side][:kept])  # the newest record of each transaction
        if side == PARTICIPANT:
            parts = (says.get(number, one.part) for number, one in enumerate(state.transactions))
            transactions = (
                one._replace(part=part, mine=part) for one, part in zip(state.transactions, parts, strict=True)
            )
        else:
            transactions = (
                forgotten(one, says.get(number, one.decision)) for number, one in enumerate(state.transactions)
            )
        return after._replace(transactions=tuple(transactions))

    def _sync_failed(self, state: State, side: int) -> State:
        """Nothing of the tail is stored, and that is known: a decision or a prepare in it is a rollback."""
        after = state._replace(tails=put(state.tails, side, ()), faults=state.faults + 1)
        for number, says in state.tails[side]:
            one = after.transactions[number]
            is_rollback = says == (DECIDED if side == COORDINATOR else PREPARED)
            if is_rollback and one.phase in (PREPARING, DECIDING):
                after = changed(after, number, phase=OVER, told=one.told or TOLD_ROLLED_BACK)
            if is_rollback and side == PARTICIPANT:
                after = changed(after, number, mine=NOTHING)
        return after


def forgotten(one: Transaction, decision: int) -> Transaction:
    """The transaction when the coordinator's memory is gone."""
    if one.phase == IDLE:
        return one
    lost = TOLD_ROLLED_BACK if one.phase == GATHERING else UNKNOWN
    return one._replace(decision=decision, phase=OVER, told=one.told or lost)


def changed(state: State, number: int, **fields: int) -> State:
    one = state.transactions[number]._replace(**fields)
    return state._replace(transactions=put(state.transactions, number, one))


def appended(state: State, side: int, number: int, says: int) -> State:
    return state._replace(tails=put(state.tails, side, (*state.tails[side], Record(number, says))))


def shown(state: State) -> State:
    """Anybody may look now, and sees the effects that both fragments show."""
    if state.fragments != (SERVING, SERVING):
        return state
    transactions = (one._replace(shown=1) if one.mine == COMMITTED else one for one in state.transactions)
    return state._replace(transactions=tuple(transactions))
