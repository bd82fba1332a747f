"""Messages asked for by their numbers: deferred ones, those that are peeked at, and batches that are deleted."""

from __future__ import annotations

from array import array
from functools import partial

from hubweir.errors import MESSAGE_NOT_FOUND, NOT_ALLOWED, RESOURCE_LIMIT, SESSION_LOCK_LOST, ServiceError
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.kernels.queue_contract import (
    DEFERRED,
    LOCKED,
    M_ENQUEUED,
    M_SESSION,
    M_STATE,
    QUEUE_WIDTH,
    SETTLING,
    SIZE_SHIFT,
    STATE_BITS,
    SUB_QUEUE_BITS,
    SUB_QUEUE_SHIFT,
)
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_values import OnDone, ReceivedMessages, Times
from hubweir.queue.message_giving import MessageGiving
from hubweir.queue.operation import SETTLED
from hubweir.queue.receive_values import RECEIVE_LIMIT, changes_of, nothing_received
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

# Of one answer, the first message aside: all of it is in memory at once, here and in whatever carries it.
DEFERRED_BYTES = 32 * 1024 * 1024


class NumberedMessages:
    """Of one fragment."""

    def __init__(self, core: FragmentCore, giving: MessageGiving) -> None:
        self._core = core
        self._giving = giving

    def deferred(
        self,
        sub_queue: SubQueue,
        numbers: array[int],
        mode: ReceiveMode,
        times: Times,
        on_done: OnDone[ReceivedMessages],
        session_id: str | None,
    ) -> None:
        """See Fragment.receive_deferred."""
        core, session = self._core, None
        if core.settings.requires_session and sub_queue is SubQueue.MAIN:
            if session_id is None:
                text = f"'{core.entity}' requires sessions: whoever holds a session receives its deferred messages"
                raise ServiceError(NOT_ALLOWED, text)
            session = core.state.sessions.by_id.get(session_id.encode())
            if session is None or session.holder is None:
                raise ServiceError(SESSION_LOCK_LOST, f"nobody holds session '{session_id}' of '{core.entity}'")
        counts, size = array("q"), 0
        for number in dict.fromkeys(numbers):
            found = core.state.messages.find(core.count_of(number))
            bits = 0 if found is None else found[0].rows[found[1] + M_STATE]
            wanted = DEFERRED | sub_queue << SUB_QUEUE_SHIFT
            is_other = (
                session is not None and found is not None and found[0].rows[found[1] + M_SESSION] != session.number
            )
            if bits & (STATE_BITS | SUB_QUEUE_BITS | LOCKED | SETTLING) != wanted or is_other:
                text = f"'{core.entity}' has no deferred message of sequence number {number} that is not locked"
                raise ServiceError(MESSAGE_NOT_FOUND, text)
            counts.append(core.count_of(number))
            size += bits >> SIZE_SHIFT
            if size > DEFERRED_BYTES and len(counts) > 1:
                text = f"the messages that are asked for have more than {DEFERRED_BYTES} bytes: ask for fewer at once"
                raise ServiceError(RESOURCE_LIMIT, text)
        if not counts:
            on_done(nothing_received())
            return
        self._giving.give(counts, mode, sub_queue, times, on_done, session=session)

    def peek(
        self,
        sub_queue: SubQueue,
        from_number: int,
        *,
        max_count: int,
        max_bytes: int,
        on_done: OnDone[ReceivedMessages],
        session_id: str | None,
    ) -> None:
        """See Fragment.peek."""
        core = self._core
        messages, most = core.state.messages, max(1, min(max_count, RECEIVE_LIMIT))
        from_count = max(1, from_number - core.number_base)
        counts = array("q", bytes(8 * most))
        if session_id is None:
            many, _ = messages.peek(sub_queue, from_count, counts, most, max_bytes)
        else:
            many = self._peek_session(session_id.encode(), sub_queue, from_count, counts, most, max_bytes)
        if not many:
            on_done(nothing_received())
            return
        counts = counts[:many]
        indexes, rows = array("q", bytes(8 * many)), array("q", bytes(8 * MESSAGE_WIDTH * many))
        messages.give(
            counts, many, marks=0, delivered=0, lock_number=0, secret=core.locks.secret, until_ms=-1,
            number_base=core.number_base, partition=-1, indexes=indexes, out=rows,
        )  # fmt: skip
        core.tell_origins(rows)
        core.reads.begin(indexes, rows, changes_of(core, counts), partial(_peeked, rows, on_done))

    def _peek_session(
        self, session_id: bytes, sub_queue: SubQueue, from_count: int, counts: array[int], most: int, max_bytes: int
    ) -> int:
        session = self._core.state.sessions.by_id.get(session_id)
        if session is None or sub_queue is not SubQueue.MAIN:
            return 0
        many = size = 0
        for page, at in session.messages_in(self._core.state.messages, from_count):
            size += page.rows[at + M_STATE] >> SIZE_SHIFT
            if many == most or (many and size > max_bytes):
                break
            counts[many] = page.first + at // QUEUE_WIDTH
            many += 1
        return many

    def delete(
        self,
        sub_queue: SubQueue,
        *,
        max_count: int,
        before_ms: int,
        on_done: OnDone[int],
        session_id: str | None,
    ) -> None:
        """See Fragment.delete_messages."""
        core, counts = self._core, array("q")
        session = None if session_id is None else core.state.sessions.by_id.get(session_id.encode())
        if session_id is not None and session is None:
            on_done(0)
            return
        for page, at in core.state.messages.ready_in(sub_queue):
            if len(counts) == max_count:
                break
            is_its = session is None or page.rows[at + M_SESSION] == session.number
            if is_its and page.rows[at + M_ENQUEUED] < before_ms:
                counts.append(page.first + at // QUEUE_WIDTH)
        if not counts:
            on_done(0)
            return
        core.state.messages.mark_settling(counts)
        core.state.sessions.hold_back(core.state.messages, counts)
        core.gather(core.ranged(SETTLED, counts), partial(self._deleted, counts, on_done))

    def _deleted(self, counts: array[int], on_done: OnDone[int], refused: Refused | None) -> None:
        self._core.state.sessions.let_go(counts)
        self._core.unmark(counts, refused)
        self._core.wake()
        on_done(len(counts) if refused is None else refused)


def _peeked(rows: array[int], on_done: OnDone[ReceivedMessages], answer: bytearray | Refused) -> None:
    on_done(answer if isinstance(answer, Refused) else ReceivedMessages(memoryview(answer), rows))
