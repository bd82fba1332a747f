"""Message sessions: messages with one session id, received in order by one holder at a time; and a state of each.

A session is there while it has messages in the main sub-queue, a state, or a holder. Which messages it has and its
state are what the log says; who holds it, and until when, is in memory alone: after a crash nobody does.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

from hubweir.kernels.queue_contract import (
    ACTIVE,
    LOCKED,
    M_EXPIRES,
    M_SESSION,
    M_STATE,
    QUEUE_WIDTH,
    SETTLING,
    SIZE_SHIFT,
    STATE_BITS,
    SUB_QUEUE_BITS,
)
from hubweir.queue.message_table import MessageTable, Ranges

# Of a message that is ready ACTIVE alone is set, of these.
_NOT_READY = STATE_BITS | SUB_QUEUE_BITS | LOCKED | SETTLING
_COMPACT_AT = 256
_ABOVE_ALL = 2**62  # no count is as large


class MessageSession:
    """One session. counts: of its messages in order, also of some that are gone. live: how many are not.

    ready_from: no message before this place is ready. state_ms: when its state was set, 0 for never. holder, until_ms
    (monotonic clock): who has its lock. is_ending: nobody has it, and what its last holder did is not decided yet.
    listed: the count under which the heap of free sessions has it, 0: it has not. last_given: no message of a higher
    count was given to the holder. returning: counts of messages that may be ready again in a moment.
    """

    __slots__ = (
        "counts", "holder", "is_ending", "last_given", "listed", "live", "number", "ready_from", "returning",
        "session_id", "state", "state_ms", "until_ms",
    )  # fmt: skip

    def __init__(self, session_id: bytes, number: int) -> None:
        self.session_id = session_id
        self.number = number
        self.counts = array("q")
        self.live = 0
        self.ready_from = 0
        self.state: bytes | None = None
        self.state_ms = 0
        self.holder: Any = None
        self.is_ending = False
        self.until_ms = 0
        self.listed = 0
        self.last_given = 0
        self.returning: list[int] = []

    @property
    def is_free(self) -> bool:
        """Whether it can be given to a holder."""
        return self.holder is None and not self.is_ending

    @property
    def may_have_ready(self) -> bool:
        """Whether a message may be ready. Where none is, `MessageSessions.list` stirs it when one may be."""
        return self.ready_from < len(self.counts)

    def select(self, messages: MessageTable, now_ms: int, most: int, max_bytes: int) -> tuple[array[int], int]:
        """The counts of its next messages that are ready, in order, and the bytes of their records.

        Nothing behind a message that is returning. max_bytes: of records, but for the first.
        """
        picked, size = array("q"), 0
        counts, place, pages = self.counts, self.ready_from, messages.pages
        end = bisect_left(counts, min(self.returning)) if self.returning else len(counts)
        while place < end and len(picked) < most:
            count = counts[place]
            page = pages.get(count - 1 >> 12)
            if page is not None:
                row = (count - page.first) * QUEUE_WIDTH
                bits, expires_ms = page.rows[row + M_STATE], page.rows[row + M_EXPIRES]
                # As _is_ready says: this is asked of every message.
                if bits & _NOT_READY == ACTIVE and (expires_ms < 0 or expires_ms > now_ms):
                    its_size = bits >> SIZE_SHIFT
                    if picked and size + its_size > max_bytes:
                        break
                    size += its_size
                    picked.append(count)
            place += 1
        self.ready_from = place
        return picked, size

    def first_ready(self, messages: MessageTable, now_ms: int) -> int | None:
        """The count of its first message that is ready."""
        for place in range(self.ready_from, len(self.counts)):
            found = messages.find(self.counts[place])
            if found is not None and _is_ready(*_row(found), now_ms):
                self.ready_from = place
                return self.counts[place]
        self.ready_from = len(self.counts)  # what becomes ready lowers it (MessageSessions.list)
        return None

    def has_active(self, messages: MessageTable) -> bool:
        """Whether a message is active, locked or not."""
        return any(found[0].rows[found[1] + M_STATE] & STATE_BITS == ACTIVE for found in self.messages_in(messages, 0))

    def messages_in(self, messages: MessageTable, from_count: int) -> Iterator[tuple[Any, int]]:
        """Page and row of each message that is not gone, from a count on."""
        for place in range(bisect_left(self.counts, from_count), len(self.counts)):
            found = messages.find(self.counts[place])
            if found is not None and not found[0].rows[found[1] + M_STATE] & SUB_QUEUE_BITS:
                yield found


class MessageSessions:
    """All of a fragment's. next_number: of a session that is to come; numbers are never used again.

    are_held: receivers may hold them, so that free ones are listed. state_bytes: of the states of all.
    """

    def __init__(self, *, are_held: bool = True) -> None:
        self._are_held = are_held
        self.by_id: dict[bytes, MessageSession] = {}
        self.by_number: dict[int, MessageSession] = {}  # in that order
        self.next_number = 0
        self.state_bytes = 0
        self._free: list[tuple[int, int]] = []  # a count that may be ready, number of the session
        self._held_back: dict[int, MessageSession] = {}  # by the counts of returning messages
        self._stirred: dict[MessageSession, None] = {}

    def get(self, session_id: bytes) -> MessageSession:
        """The session; made when it is not there."""
        session = self.by_id.get(session_id)
        if session is None:
            session = self.add(session_id, self.next_number)
        return session

    def add(self, session_id: bytes, number: int) -> MessageSession:
        """Have a session of this number, the highest so far."""
        session = MessageSession(session_id, number)
        self.by_id[session_id] = self.by_number[number] = session
        self.next_number = number + 1
        return session

    def forget(self, session: MessageSession) -> None:
        """Have it no longer, if it has nothing."""
        has_something = session.live or session.state is not None or not session.is_free
        if not has_something and self.by_number.pop(session.number, None) is not None:
            del self.by_id[session.session_id]

    # What the log says

    def enter(self, messages: MessageTable, session_ids: Sequence[bytes], counts: Sequence[int]) -> None:
        """Messages that have just been counted, in this order, are each in the session of its id."""
        session, numbers = None, array("q")
        for session_id, count in zip(session_ids, counts, strict=True):
            if session is None or session.session_id != session_id:
                session = self.get(session_id)
            numbers.append(session.number)
            its = session.counts
            if session.holder is not None and its and count > its[-1]:  # as nearly always; the rest is `place`
                its.append(count)
                session.live += 1
                self._stirred[session] = None
            else:
                self.place(session, count)
        messages.in_sessions(counts, numbers)

    def place(self, session: MessageSession, count: int) -> None:
        """It has this message behind its others; or between them, where the count was reserved."""
        if session.counts and count < session.counts[-1]:
            insort(session.counts, count)
        else:
            session.counts.append(count)
        session.live += 1
        self.list(session, count)

    def leave(self, messages: MessageTable, ranges: Ranges) -> None:
        """These messages are about to be gone, or to leave the main sub-queue."""
        if not self.by_number:
            return
        left: dict[int, int] = {}
        for page, row, last_row in messages.parts_of(ranges):
            rows = page.rows[row * QUEUE_WIDTH : last_row * QUEUE_WIDTH]
            for bits, number in zip(rows[M_STATE::QUEUE_WIDTH], rows[M_SESSION::QUEUE_WIDTH], strict=True):
                if bits & STATE_BITS and not bits & SUB_QUEUE_BITS:
                    left[number] = left.get(number, 0) + 1
        for number, gone in left.items():
            session = self.by_number.get(number)
            if session is not None:
                session.live -= gone
                if len(session.counts) > _COMPACT_AT + 2 * session.live:
                    self._compact(messages, session)
                if not session.live and session.holder is None:
                    self.forget(session)

    def renumber(self, messages: MessageTable, new: int) -> None:
        """A message of a session has this count now, behind all others; its old one is gone."""
        found = messages.find(new)
        session = None if found is None else self.by_number.get(found[0].rows[found[1] + M_SESSION])
        if session is not None:
            self.place(session, new)
            session.live -= 1

    def set_state(self, session_id: bytes, state: bytes | None, time_ms: int) -> None:
        """Its state is this one, or there is none."""
        session = self.get(session_id)
        self.keep_state(session, state)
        session.state_ms = time_ms
        self.forget(session)

    def keep_state(self, session: MessageSession, state: bytes | None) -> None:
        """Its state is this one from now on, whenever it was set."""
        self.state_bytes += len(state or b"") - len(session.state or b"")
        session.state = state

    def _compact(self, messages: MessageTable, session: MessageSession) -> None:
        """Forget counts that are gone: most of them are. Once an operation: its messages go behind it."""
        counts = session.counts
        ready_from = counts[session.ready_from] if session.ready_from < len(counts) else _ABOVE_ALL
        session.counts = array("q", [count for count in counts if messages.find(count) is not None])
        session.ready_from = bisect_left(session.counts, ready_from)

    # Who holds them

    def list(self, session: MessageSession, count: int) -> None:
        """A message of it may be ready; if nobody holds the session, somebody may."""
        session.ready_from = min(session.ready_from, bisect_left(session.counts, count))
        if session.holder is not None:
            self._stirred[session] = None
        elif self._are_held and not session.is_ending and (not session.listed or count < session.listed):
            session.listed = count
            heappush(self._free, (count, session.number))

    def take_stirred(self) -> Iterable[MessageSession]:
        """Sessions that were held when a message of theirs may have become ready, since this was last asked."""
        stirred, self._stirred = self._stirred, {}
        return stirred

    def next_free(self, messages: MessageTable, now_ms: int) -> MessageSession | None:
        """The session that nobody holds whose first message that is ready is the oldest."""
        while self._free:
            count, number = self._free[0]
            session = self.by_number.get(number)
            if session is None or session.listed != count:
                heappop(self._free)
                continue
            first = session.first_ready(messages, now_ms) if session.is_free else None
            if first == count:
                return session
            heappop(self._free)
            session.listed = 0
            if first is not None:
                self.list(session, first)
        return None

    def look_again(self, messages: MessageTable, counts: Iterable[int]) -> None:
        """These messages may be ready again."""
        for session, count, _ in self._of(messages, counts):
            self.list(session, count)

    def hold_back(self, messages: MessageTable, counts: Iterable[int]) -> None:
        """What becomes of these messages is on its way to the log: nothing behind them is given until `let_go`."""
        for session, count, bits in self._of(messages, counts):
            if bits & (STATE_BITS | SUB_QUEUE_BITS) == ACTIVE:
                session.returning.append(count)
                self._held_back[count] = session

    def let_go(self, counts: Iterable[int]) -> None:
        """It is decided what becomes of these, and done."""
        for count in counts if self._held_back else ():
            session = self._held_back.pop(count, None)
            if session is not None:
                session.returning.remove(count)
                if session.holder is not None:
                    self._stirred[session] = None

    def _of(self, messages: MessageTable, counts: Iterable[int]) -> Iterator[tuple[MessageSession, int, int]]:
        """Of these messages (0: none) those that came in a session: session, count, M_STATE."""
        for count in counts if self.by_number else ():
            found = messages.find(count) if count else None
            session = None if found is None else self.by_number.get(found[0].rows[found[1] + M_SESSION])
            if session is not None and found is not None:
                yield session, count, found[0].rows[found[1] + M_STATE]


def _row(found: tuple[Any, int]) -> tuple[int, int]:
    page, at = found
    return page.rows[at + M_STATE], page.rows[at + M_EXPIRES]


def _is_ready(bits: int, expires_ms: int, now_ms: int) -> bool:
    if bits & _NOT_READY != ACTIVE:
        return False
    return expires_ms < 0 or expires_ms > now_ms
