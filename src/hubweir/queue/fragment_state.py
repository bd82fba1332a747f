"""The state of a fragment, as its log says it: messages, what receivers changed of them, settings, sessions.

`apply_run` is the only place where that changes, for a run that has just become visible and for one of a replay alike;
so a state is a function of the log. Marks and locks, which no log holds, are kept in the same rows by fragment.py, and
a delivery counts from the moment it is given out, before LOCKED is visible: so LOCKED and RELEASED change counts in a
replay alone.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import cast

from msgspec.structs import replace

from hubweir.errors import CorruptStore
from hubweir.kernels import read_fields
from hubweir.kernels.queue_contract import (
    ACTIVE,
    CHANGED,
    DEFERRED,
    I_SESSION,
    INCOMING_WIDTH,
    M_ENQUEUED,
    M_EXPIRES,
    M_FIRST,
    M_SESSION,
    M_STATE,
    QUEUE_WIDTH,
    STATE_BITS,
)
from hubweir.kernels.stored_batch import KIND_EVENTS, BatchHeader
from hubweir.messaging_store.operations import operations_in
from hubweir.messaging_store.record import headers_of
from hubweir.queue.arrived_records import ChangedRecord, Data, session_ids_of
from hubweir.queue.changed_properties import dead_letter_properties, merged_properties
from hubweir.queue.duplicate_window import DuplicateWindow
from hubweir.queue.forward_origin import FORWARDED
from hubweir.queue.logged_transactions import LoggedTransactions
from hubweir.queue.message_session import MessageSessions
from hubweir.queue.message_table import MessageTable, Ranges
from hubweir.queue.operation import (
    ACTIVATED,
    DEAD_LETTERED,
    EXPIRED,
    LOCKED,
    MODIFIED,
    MOVED,
    NUMBERED,
    OF_TRANSACTIONS,
    RECEIVED,
    REJECTED,
    RELEASED,
    RESERVED,
    RETURNED,
    SESSION_STATE,
    SETTINGS,
    SETTLED,
    SKIPPED,
    TRANSFERRED,
    TRANSFERRING,
    UNDELIVERED,
    LoggedSettings,
    Operation,
    counts_in,
    decode_operation,
)
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.transfers import Transfers
from hubweir.queue.window_clock import SLACK_MS

# Why a message that comes from elsewhere is a dead letter where sessions are required.
NO_SESSION = (
    "Session ID is null.",
    "Session enabled entity doesn't allow a message whose session identifier is null.",
)


class FragmentState:
    """See the module's text. changed: encoded maps of properties by count. settings: None before the first one.

    keeps_sessions: session ids are kept of messages that have one, though sessions are not required: for copies.
    """

    def __init__(self, *, keeps_sessions: bool = False) -> None:
        self.messages = MessageTable()
        self.sessions = MessageSessions(are_held=not keeps_sessions)
        self._keeps_sessions = keeps_sessions
        self.duplicates = DuplicateWindow()
        self.changed: dict[int, bytes] = {}
        self.changed_bytes = 0  # of all in it
        self.settings: LoggedSettings | None = None
        self.transfers = Transfers()
        self.transactions = LoggedTransactions()
        self._expected: deque[Operation] = deque()  # UNDELIVERED and NUMBERED: of which the next records are
        self._moving: list[int] = []  # the messages of which the next records are, the first of them last

    def apply_run(self, data: Data, *, is_replay: bool, from_index: int = 0) -> array[int]:
        """Take in every batch of a run that begins at an index or behind it; the numbers of locks that are over."""
        locks = array("q")
        for header in headers_of(data):
            if header.first_index < from_index:
                continue
            if header.kind == KIND_EVENTS:
                self.take_messages(data, header)
            else:
                for record in operations_in(data, header):
                    locks += self.apply(decode_operation(record), is_replay=is_replay)
        return locks

    def apply(self, operation: Operation, *, is_replay: bool) -> array[int]:
        """Take in one operation; the numbers of the locks that are over by it."""
        code, locks = operation.code, array("q")
        if self.transactions.gathers(operation):
            return locks
        if code in OF_TRANSACTIONS:
            for each in self.transactions.say(operation):
                locks += self.apply(each, is_replay=is_replay)
        elif code == SETTINGS:
            self.settings = operation.settings
        elif code == SESSION_STATE:
            self.sessions.set_state(operation.session_id, operation.state, operation.time_ms)
        elif code == SKIPPED:
            self.duplicates.skip(operation.time_ms)
        elif code == TRANSFERRING:
            self.transfers.begin(operation)
        elif code in (TRANSFERRED, RETURNED):
            ranges = self.transfers.end(operation.sub_queue, operation.number)
            if code == TRANSFERRED:
                locks += self._drop(_pairs(ranges))
        elif code == RECEIVED:
            self.transfers.expect(operation)
        elif code in (UNDELIVERED, NUMBERED):
            self._expected.append(operation)
        elif code == RESERVED:
            self.messages.reserve(operation.many)
        elif code == MOVED:
            self._moving = counts_in(operation.ranges)[::-1].tolist()
        elif code == ACTIVATED:
            self._activate(counts_in(operation.ranges))
        elif code in (SETTLED, EXPIRED):
            locks += self._drop(_pairs(operation.ranges))
        else:
            for first, many in _pairs(operation.ranges):
                if code == MODIFIED:
                    self._modify(first, many, operation.properties)
                elif code == DEAD_LETTERED:
                    self.sessions.leave(self.messages, [(first, many)])
                    locks += self.messages.place(first, many, ACTIVE, operation.sub_queue)
                elif code == REJECTED:
                    self.sessions.leave(self.messages, [(first, many)])
                    self.messages.count_deliveries(first, many, -1)
                    locks += self.messages.place(first, many, ACTIVE, SubQueue.DEAD_LETTERS)
                elif code in (LOCKED, RELEASED):
                    if is_replay:
                        self.messages.count_deliveries(first, many, 1 if code == LOCKED else -1)
                else:
                    self.messages.count_deliveries(first, many, -1)
                    locks += self.messages.place(first, many, DEFERRED, None)
        return locks

    @property
    def is_moving(self) -> bool:
        """Whether the next batch of messages has records of messages that are there."""
        return bool(self._moving)

    def take_messages(self, data: Data, header: BatchHeader) -> None:
        """The messages of a batch get the next counts; or they are moved ones, in doubt, or come a second time."""
        if self.transactions.holds(data, header):
            return
        if self._moving:
            if header.count > len(self._moving):
                raise CorruptStore(f"the batch of index {header.first_index} moves messages that nobody named")
            for place in range(header.count):
                self.messages.move(self._moving.pop(), header.first_index + place)
            return
        arrivals = self.transfers.arrive(header.count)
        if arrivals is not None and not arrivals.is_new:
            return
        settings = self.settings
        if settings is None:
            raise CorruptStore(f"the batch of index {header.first_index} has messages before there were settings")
        fields = array("q", bytes(8 * INCOMING_WIDTH * header.count))
        read_fields(data, header.position, fields)
        said = self._next_expected(header)
        undelivered = said if said is not None and said.code == UNDELIVERED else None
        dropped: list[int] = []
        if settings.duplicate_window_ms >= 0 and undelivered is None:
            dropped = self.duplicates.duplicates_in(
                data,
                fields,
                enqueued_ms=header.enqueued_time_ms,
                window_ms=settings.duplicate_window_ms + SLACK_MS,
                with_keys=settings.duplicates_have_keys,
            )
        first = self.messages.add(
            fields,
            header.count,
            first_index=header.first_index,
            enqueued_ms=header.enqueued_time_ms,
            default_ttl_ms=settings.default_ttl_ms,
            reserved=0 if said is None else said.number,
        )
        if undelivered is not None:
            self._modify(first, header.count, undelivered.properties)
            self.messages.place(first, header.count, ACTIVE, SubQueue.TRANSFER_DEAD_LETTERS)
            return
        if arrivals is not None:
            self.messages.arrived(first, arrivals.firsts, arrivals.ends_ms)
        if dropped:
            self.messages.drop([(first + place, 1) for place in dropped])
        if settings.requires_session or (self._keeps_sessions and max(fields[I_SESSION::INCOMING_WIDTH]) >= 0):
            counts, session_ids = list(range(first, first + header.count)), session_ids_of(data, fields)
            if dropped:
                left = sorted(set(range(header.count)).difference(dropped))
                counts, session_ids = [counts[place] for place in left], [session_ids[place] for place in left]
            if None in session_ids:
                counts, named = self._in_sessions(counts, session_ids, settings, is_forwarded=arrivals is not None)
            else:
                named = cast("list[bytes]", session_ids)
            self.sessions.enter(self.messages, named, counts)

    def _in_sessions(
        self, counts: list[int], session_ids: list[bytes | None], settings: LoggedSettings, *, is_forwarded: bool
    ) -> tuple[list[int], list[bytes]]:
        """Those of new messages that are in a session, and its id; what was forwarded without one is a dead letter."""
        found = list[int](), list[bytes]()
        for count, session_id in zip(counts, session_ids, strict=True):
            if session_id is None and settings.requires_session and is_forwarded:
                self._modify(count, 1, dead_letter_properties(*NO_SESSION))
                self.messages.place(count, 1, ACTIVE, SubQueue.DEAD_LETTERS)
            elif session_id is not None or settings.requires_session:
                found[0].append(count)
                found[1].append(session_id or b"")
        return found

    def _next_expected(self, header: BatchHeader) -> Operation | None:
        """What was said of the messages of the next batch; None: nothing. CorruptStore: they are more."""
        if not self._expected:
            return None
        said = self._expected.popleft()
        left = said.many - header.count
        if left < 0:
            raise CorruptStore(f"the batch of index {header.first_index} has messages that nobody named")
        if left:
            number = said.number and said.number + header.count
            self._expected.appendleft(replace(said, many=left, number=number))
        return said

    # Copies of another fragment's messages

    def copy_messages(self, origin: FragmentState, ranges: array[int], changed: dict[int, list[ChangedRecord]]) -> None:
        """Messages of another fragment in the same log are messages of this one, too, with the next counts.

        ranges: of the other's counts; those that are gone are passed over. changed: other records for copies, by the
        other's counts, which are used up in their order; a message that stands more often has its own record then.
        """
        for first, many in zip(ranges[::2], ranges[1::2], strict=True):
            if not changed:
                self._copy(origin, first, many)
                continue
            for count in range(first, first + many):
                others = changed.get(count)
                if others:
                    self._copy_changed(origin, count, others.pop(0))
                else:
                    self._copy(origin, count, 1)

    def _copy(self, origin: FragmentState, first: int, many: int) -> None:
        settings = self._known_settings
        for page, row, last_row in origin.messages.parts(first, many):
            count = self.messages.copy(page.rows, row, last_row, default_ttl_ms=settings.default_ttl_ms)
            if settings.requires_session:
                rows = page.rows[row * QUEUE_WIDTH : last_row * QUEUE_WIDTH]
                states, numbers = rows[M_STATE::QUEUE_WIDTH], rows[M_SESSION::QUEUE_WIDTH]
                there = [number for bits, number in zip(states, numbers, strict=True) if bits & STATE_BITS]
                named = [(count + place, number) for place, number in enumerate(there) if number >= 0]
                session_ids = [origin.sessions.by_number[number].session_id for _, number in named]
                self.sessions.enter(self.messages, session_ids, [count for count, _ in named])

    def _copy_changed(self, origin: FragmentState, count: int, record: ChangedRecord) -> None:
        settings, found = self._known_settings, origin.messages.find(count)
        if found is None:
            return
        page, at = found
        ttls = [each for each in (settings.default_ttl_ms, origin._known_settings.default_ttl_ms) if each >= 0]
        copy = self.messages.add(
            record.fields,
            1,
            first_index=record.first_index,
            enqueued_ms=page.rows[at + M_ENQUEUED],
            default_ttl_ms=min(ttls, default=-1),
        )
        first = page.rows[at + M_FIRST]
        if first >= FORWARDED:  # its time to live goes on from where it was sent, which its record does not say
            self.messages.arrived(copy, array("q", [first]), array("q", [page.rows[at + M_EXPIRES]]))
        else:
            self.messages.came_as(copy, first)
        if settings.requires_session and record.session_id is not None:
            self.sessions.enter(self.messages, [record.session_id], [copy])

    @property
    def _known_settings(self) -> LoggedSettings:
        if self.settings is None:
            raise CorruptStore("a fragment's log has copies of messages before there were settings")
        return self.settings

    # Parts of operations

    def _drop(self, ranges: Ranges) -> array[int]:
        self.sessions.leave(self.messages, ranges)
        if self.changed:
            for first, many in ranges:
                self._forget_changes(first, many)
        return self.messages.drop(ranges)

    def _activate(self, counts: array[int]) -> None:
        """They get the next counts. Nobody could change properties of theirs, as nobody was given them."""
        messages, new = self.messages, self.messages.next_count
        messages.activate(counts)
        if self.sessions.by_number:
            for count in range(new, messages.next_count):
                self.sessions.renumber(messages, count)

    def _modify(self, first: int, many: int, properties: bytes) -> None:
        for count in range(first, first + many):
            found = self.messages.find(count)
            if found is not None:
                page, at = found
                page.rows[at + M_STATE] |= CHANGED
                page.packed = None
                self.set_changed(count, merged_properties(self.changed.get(count, b""), properties))

    def set_changed(self, count: int, properties: bytes) -> None:
        """All that was changed of a message is this."""
        self.changed_bytes += len(properties) - len(self.changed.get(count, b""))
        self.changed[count] = properties

    def _forget_changes(self, first: int, many: int) -> None:
        counts = range(first, first + many)
        for count in counts if many < len(self.changed) else [each for each in self.changed if each in counts]:
            self.changed_bytes -= len(self.changed.pop(count, b""))


def _pairs(ranges: array[int]) -> Ranges:
    """First and number of each range."""
    return list(zip(ranges[::2], ranges[1::2], strict=True))
