"""The core that all parts of a fragment work on: its log, its state, its locks, and operations on their way to the log.

Operations of one turn are gathered and appended as one run. What is on its way is marked in the rows, so that nobody
settles or locks it again; it changes the state when it is visible, and a refused append takes the marks away.

A run that ended unknown may be there after a crash, until something behind it is visible. For a message that is
enough: its sender or receiver was told that nobody knows. For a session's state it is not: behind a receiver that was
told the old one, another would be told the new one, though nobody set it in between. Such states are *undecided*: the
core appends an operation that says nothing, as soon as the log takes one, and that decides them when it is visible.
Long because what is gathered, on its way and refused is one list in three states.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from hubweir.errors import RESOURCE_LIMIT, ServiceError, StoreError
from hubweir.kernels import number_ranges
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_ENQUEUE_NUMBER, Q_ID_NUMBER
from hubweir.kernels.queue_contract import M_LOCK, SETTLING, T_SIZE
from hubweir.messaging_store.log import Appended, Log, Refused, call_all
from hubweir.messaging_store.operations import pack_operations
from hubweir.queue.changed_properties import dead_letter_properties
from hubweir.queue.forward_origin import FORWARDED, number_of
from hubweir.queue.fragment_number import NUMBER_SHIFT, first_number
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.fragment_values import Times
from hubweir.queue.lock_table import LockTable
from hubweir.queue.message_reads import MessageReads
from hubweir.queue.operation import (
    DEAD_LETTERED,
    LOCKED,
    MODIFIED,
    RANGES_LIMIT,
    RELEASED,
    SESSION_STATE,
    SETTLED,
    Operation,
    encode_operation,
)
from hubweir.queue.sub_queue import SubQueue

# Told that an operation is visible, or why not.
OnLogged = Callable[[Refused | None], None]
# Behind a refused append: until the log may take another one.
RETRY_MS = 1_000
# How much later operations are appended for which nobody waits: mostly a settlement comes first, and they go with it.
UNAWAITED_MS = 20
# Operations that change nothing but counts of deliveries: what they say holds in memory already.
_COUNTS = (LOCKED, RELEASED)
# It settles no message. For where something has to be visible behind a run that ended unknown.
_NOTHING = Operation(SETTLED)


class FragmentCore:
    """See the module's text. wake: asks the owner for a turn.

    log_prefix: what each of its operations begins with, in a log that it shares with the fragment whose messages are
    copied to it; its messages go out with the numbers that they had there, too. b"": the log is its own.
    unawaited_ms: when operations that nobody waits for have waited long enough, on the monotonic clock, or had those
    that went with something meanwhile; None: there were none.
    other_bytes: what others hold of the entity's quota; None: nothing.
    """

    def __init__(
        self,
        log: Log,
        settings: FragmentSettings,
        *,
        entity: str,
        secret: bytes,
        wake: Callable[[], None],
        fragment_number: int = 0,
        log_prefix: bytes = b"",
    ) -> None:
        self.log = log
        self.settings = settings
        self.entity = entity
        self.fragment_number = fragment_number
        self.number_base = first_number(fragment_number)
        self._log_prefix = log_prefix
        self._tells_origins = bool(log_prefix)
        self.state = FragmentState()
        self.locks = LockTable(self.number_base, secret)
        self.reads = MessageReads(log)
        self.retry_ms = 0  # nothing is tried before, on the monotonic clock: the log has just refused
        self._wake: Callable[[], None] | None = wake
        self._is_woken = False
        self._flush_comes = False  # at the end of the turn that is there
        self._gathered: list[Operation] = []
        self._joined = array("q")  # behind them: the messages of one more operation, of this code
        self._joined_code = 0
        self._gathered_dones: list[OnLogged] = []
        self.unawaited_ms: int | None = None
        self._last_run = 0
        self._awaited_run = 0  # there is a turn when it is decided
        self._under_way: dict[int, list[Operation]] = {}  # appended, not visible yet, by the number of the run
        # Counts of deliveries that the log refused, and has not got yet; by the number of their run, too.
        self._again: dict[int, list[Operation]] = {}
        self.undecided_states: set[bytes] = set()  # ids of their sessions; see the module's text
        self.bytes_under_way = 0
        self._times_under_way: deque[int] = deque()  # enqueued times of runs, in the order of their appends
        self.other_bytes: Callable[[], int] | None = None
        self.over = array("q")  # were delivered too often, and could not be dead-lettered yet

    # Turns

    def wake(self) -> None:
        """Have a turn."""
        if not self._is_woken and self._wake is not None:
            self._is_woken = True
            self._wake()

    def begin_turn(self) -> None:
        """It is there, and `flush` ends it; what else comes from now on asks for another."""
        self._is_woken, self._flush_comes = False, True

    def _have_flushed(self) -> None:
        """Have a turn, if this one does not append what was gathered."""
        if not self._flush_comes:
            self.wake()

    def end(self, times: Times) -> None:
        """Append what is gathered, and ask for no turns any more."""
        self._wake = None
        self.flush_all(times)

    # Operations

    def gather(self, operations: Sequence[Operation], on_done: OnLogged | None = None) -> None:
        """Log these at the end of the turn; on_done when they are visible, and the state is as they say."""
        self._end_joined()
        self._gathered += operations
        if on_done is not None:
            self._gathered_dones.append(on_done)
        self._have_flushed()

    def gather_joined(self, code: int, counts: array[int], on_done: OnLogged | None = None) -> None:
        """The same of one operation on these messages (0: none): those of one code in a row become one, so that a
        turn of many receivers says what one with as many messages would."""
        if code != self._joined_code:
            self._end_joined()
            self._joined_code = code
        self._joined += counts
        if on_done is not None:
            self._gathered_dones.append(on_done)
        self._have_flushed()

    def _end_joined(self) -> None:
        """What comes next is another operation."""
        if self._joined:
            counts, self._joined = self._joined, array("q")
            self._gathered += self.ranged(self._joined_code, array("q", sorted(counts)))

    def flush(self, times: Times) -> None:
        """Append what is gathered. What nobody waits for, as counts of deliveries, stays until something goes with it.

        It stays for UNAWAITED_MS at most. A run of its own would cost a sync.
        """
        self._flush_comes = False
        is_awaited = bool(self._gathered_dones) or self._last_run < self._awaited_run
        is_due = self._has_refused and times.monotonic_ms >= self.retry_ms
        has_waited = self.unawaited_ms is not None and times.monotonic_ms >= self.unawaited_ms
        if has_waited:
            self.unawaited_ms = None
        if is_awaited or is_due or has_waited:
            self._append_gathered(times, is_due=is_due)
        elif self.unawaited_ms is None and (self._gathered or self._joined):
            self.unawaited_ms = times.monotonic_ms + UNAWAITED_MS

    def _append_gathered(self, times: Times, *, is_due: bool) -> None:
        """is_due: what the log refused is tried again."""
        self._end_joined()
        if self._again and (is_due or self._gathered_dones):
            # Counts stay in their order, and in front of what takes one back (RELEASED, DEFERRED, REJECTED): a message
            # without a count has none to take.
            self._gathered[:0] = [each for number in sorted(self._again) for each in self._again[number]]
            self._again = {}
        if self.undecided_states and is_due and not self._gathered:
            self._gathered.append(_NOTHING)
        operations, dones = self._gathered, self._gathered_dones
        if not operations:
            return
        self._gathered, self._gathered_dones = [], []
        self._last_run = number = self._last_run + 1
        if self._again:
            self._keep_counts(number, operations)
            self.wake()
            return
        self._under_way[number] = operations
        run = pack_operations(self.encoded(operations))
        self.append(run, times, partial(self._logged, number, dones))

    def flush_all(self, times: Times) -> None:
        """Append all that is gathered, and counts that the log refused, whenever it did. See `lacks_counts`."""
        if self._again or self._gathered or self._joined:
            self._gathered_dones.append(_nobody_waits)
        self.flush(times)

    @property
    def lacks_counts(self) -> bool:
        """Whether the log refused counts of deliveries and has not got them since: what takes one back has to wait."""
        return bool(self._again)

    def encoded(self, operations: Iterable[Operation]) -> list[bytes]:
        """The records of these operations in this fragment's log."""
        return [self._log_prefix + encode_operation(each) for each in operations]

    def append(self, run: bytearray, times: Times, on_done: Callable[[Appended | Refused], None]) -> None:
        """Append a run; a refusal at once is told in the same way as a later one."""
        size = len(run)
        self.bytes_under_way += size

        def answered(outcome: Appended | Refused) -> None:
            self._times_under_way.popleft()
            done(outcome)

        def done(outcome: Appended | Refused) -> None:
            self.bytes_under_way -= size
            if isinstance(outcome, Refused):
                self.retry_ms = times.monotonic_ms + RETRY_MS
                self.wake()
            elif self.undecided_states:
                self.undecided_states.clear()  # the log dropped what ended unknown before it took this (Log.append)
                self.wake()
            on_done(outcome)

        try:
            appended = self.log.append(run, now_ms=times.stamp_ms, on_done=answered)
            self._times_under_way.append(appended.enqueued_time_ms)
        except StoreError as error:
            done(Refused(error))

    def _logged(self, number: int, dones: list[OnLogged], outcome: Appended | Refused) -> None:
        operations = self._under_way.pop(number)
        refused = outcome if isinstance(outcome, Refused) else None
        if refused is None:
            for operation in operations:
                locks = self.state.apply(operation, is_replay=False)
                if locks:
                    self.locks.end(locks)
        elif refused.known:
            # These count already. Where it is not known, they might count twice.
            self._keep_counts(number, operations)
        else:
            self.undecided_states.update(each.session_id for each in operations if each.code == SESSION_STATE)
        if self._again or number <= self._awaited_run:
            self.wake()
        call_all(partial(done, refused) for done in dones)

    def _keep_counts(self, number: int, operations: list[Operation]) -> None:
        counting = [each for each in operations if each.code in _COUNTS]
        if counting:
            self._again[number] = counting

    def begin_run(self, operations: list[Operation]) -> int:
        """The number of a run that somebody else is about to append, with these operations among others.

        `flush_all` goes before it; none is begun while the log `lacks_counts`. `end_run` says that it is decided.
        """
        self._last_run = number = self._last_run + 1
        self._under_way[number] = operations
        return number

    def end_run(self, number: int) -> None:
        """The run of this number is visible and taken in, or refused."""
        del self._under_way[number]
        if self._again or number <= self._awaited_run:
            self.wake()

    def await_run(self) -> int:
        """The number of the newest run, on its way or still gathered; there is a turn when it is decided."""
        self._awaited_run = self._last_run + bool(self._gathered or self._joined)
        return self._awaited_run

    def is_decided(self, number: int) -> bool:
        """Whether all runs up to this number are visible, or refused."""
        return number <= self._last_run and number < next(iter(self._under_way), number + 1)

    def operations_under_way(self) -> list[Operation]:
        """Those that are not visible yet, in the order in which they came."""
        self._end_joined()
        runs = self._under_way | self._again
        return [*(each for number in sorted(runs) for each in runs[number]), *self._gathered]

    @property
    def newest_ms(self) -> int:
        """The highest enqueued time in the log, and of what is on its way there; 0: it has none. What was refused has
        left nothing."""
        return self._times_under_way[-1] if self._times_under_way else self.log.bounds.last_time_ms or 0

    @property
    def held_bytes(self) -> int:
        """What counts for the quota of the entity's size: what transactions hold, too."""
        return self.stored_bytes + self.bytes_under_way + self.state.transactions.held_bytes

    def check_room(self, size: int) -> None:
        """Raise ServiceError RESOURCE_LIMIT where so many bytes more are over the quota of the entity's size."""
        held, most = self.held_bytes, self.settings.max_size_bytes
        if most is not None and held + size > most:
            text = (
                f"'{self.entity}' may hold {most} bytes and has {held}: receive messages, dead letters as well, "
                "clear states of sessions, or enlarge it"
            )
            raise ServiceError(RESOURCE_LIMIT, text)

    @property
    def stored_bytes(self) -> int:
        """The records of all messages that the entity holds, what receivers changed of them, and states of sessions."""
        state, others = self.state, 0 if self.other_bytes is None else self.other_bytes()
        return state.messages.tally[T_SIZE] + state.changed_bytes + state.sessions.state_bytes + others

    @property
    def has_to_retry(self) -> bool:
        """Whether something that the log refused can be tried again at retry_ms."""
        return bool(self.over) or self._has_refused

    @property
    def _has_refused(self) -> bool:
        """The same of what the core keeps itself: what is under way comes first.

        A run without operations is nothing to wait for: each prepared transaction has one until it ends.
        """
        return bool(self._again or self.undecided_states) and not any(self._under_way.values())

    def ranged(self, code: int, counts: array[int], *, sub_queue: int = 0, properties: bytes = b"") -> list[Operation]:
        """An operation on these messages (0: none); more than one where one would be too long."""
        ranges = array("q", bytes(16 * len(counts)))
        pairs = number_ranges(counts, 0, len(counts), ranges)
        return [
            Operation(code, ranges[2 * at : 2 * min(at + RANGES_LIMIT, pairs)], sub_queue, properties)
            for at in range(0, pairs, RANGES_LIMIT)
        ]

    # Marks

    def unmark(self, counts: array[int], refused: Refused | None) -> None:
        """What was to become of these messages was refused (None: it was not): they are as before, locked or not."""
        if refused is not None:
            self.take_marks_away(counts)

    def take_marks_away(self, counts: array[int]) -> None:
        """Nothing is to become of these messages (0: none) after all: they are as before, locked or not.

        Those whose session has ended since have no lock: their delivery failed, and may have been the last one.
        """
        messages = self.state.messages
        self.unlock(counts, marks=SETTLING, change=0)
        for count in counts:
            found = messages.find(count) if count else None
            if found is not None:
                page, at = found
                messages.look_again(page)
                if page.rows[at + M_LOCK]:
                    self.locks.look_again(page.rows[at + M_LOCK])

    def dead_letter(
        self, counts: array[int], reason: str | None, description: str | None, on_done: OnLogged | None = None
    ) -> None:
        """Messages of the main sub-queue, which carry the mark SETTLING, go to the dead letters."""
        properties = dead_letter_properties(reason, description)
        operations = self.ranged(MODIFIED, counts, properties=properties) if properties else []
        operations += self.ranged(DEAD_LETTERED, counts, sub_queue=SubQueue.DEAD_LETTERS)
        self.gather(operations, on_done or partial(self.unmark, counts))

    def unlock(self, counts: array[int], *, marks: int, change: int) -> None:
        """These messages are active again; those that were delivered too often go to the dead letters."""
        most = self.settings.max_delivery_count
        state = self.state
        over = state.messages.unlock(counts, len(counts), marks=marks, change=change, most_deliveries=most)
        state.sessions.look_again(state.messages, counts)
        self.dead_letter_over(over)
        self.wake()

    def dead_letter_over(self, over: array[int]) -> None:
        """These were delivered too often. A refusal does not make them active again: it is tried again (`over`)."""
        if over:
            text = f"Message could not be consumed after {self.settings.max_delivery_count} delivery attempts."
            self.dead_letter(over, "MaxDeliveryCountExceeded", text, partial(self._over_done, over))

    def _over_done(self, over: array[int], refused: Refused | None) -> None:
        if refused is not None:
            self.over += over
        self.wake()  # somebody may wait for dead letters

    def tell_origins(self, rows: array[int]) -> None:
        """Say in message rows which numbers copies, and what was forwarded, had where they were sent."""
        firsts = rows[Q_ID_NUMBER::MESSAGE_WIDTH]
        if self._tells_origins:
            rows[Q_ENQUEUE_NUMBER::MESSAGE_WIDTH] = firsts
        forwarded = FORWARDED + self.number_base
        if max(firsts) >= forwarded:
            for place, first in enumerate(firsts):
                if first >= forwarded:
                    at = place * MESSAGE_WIDTH + Q_ENQUEUE_NUMBER
                    rows[at] = number_of(first - self.number_base)

    def count_of(self, number: int) -> int:
        """The count of a sequence number; 0 where it is of another fragment."""
        count = number - self.number_base
        return count if 0 < count < 1 << NUMBER_SHIFT else 0


def _nobody_waits(refused: Refused | None) -> None:
    """Counts of deliveries that are refused again are kept by the core."""
