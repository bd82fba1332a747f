"""Messages on their way to who receives them: marked, read, handed over; or taken back.

In PEEK_LOCK mode they are locked, LOCKED is logged and not waited for, and the records are read; in RECEIVE_AND_DELETE
mode they are read, SETTLED is logged, and the answer waits for it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

from hubweir.errors import CorruptStore
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK
from hubweir.kernels.queue_contract import LOCKED, M_INDEX, M_LOCK, M_STATE, SETTLING, SUB_QUEUE_BITS
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore, OnLogged
from hubweir.queue.fragment_receiver import NOTHING, FragmentReceiver
from hubweir.queue.fragment_values import OnDone, ReceivedMessages, Times
from hubweir.queue.message_page import NEVER
from hubweir.queue.message_session import MessageSession
from hubweir.queue.operation import LOCKED as LOGGED_LOCKED
from hubweir.queue.operation import RELEASED, SETTLED
from hubweir.queue.receive_values import Given, Wanted, changes_of, nothing_received
from hubweir.queue.sub_queue import ReceiveMode, SubQueue


class MessageGiving:
    """See the module's text. Of one fragment."""

    def __init__(self, core: FragmentCore) -> None:
        self._core = core

    def give_to(
        self,
        receiver: FragmentReceiver,
        counts: array[int],
        wanted: Wanted,
        times: Times,
        wait: Callable[[FragmentReceiver, Wanted], None],
    ) -> None:
        """Answer a receive that waits no longer with ready messages. wait: has it wait again, where they are lost."""
        receiver.reading = counts
        again = partial(wait, receiver, wanted)
        self.give(counts, receiver.mode, receiver.sub_queue, times, wanted.on_done, receiver, again)

    def give(
        self,
        counts: array[int],
        mode: ReceiveMode,
        sub_queue: SubQueue,
        times: Times,
        on_done: OnDone[ReceivedMessages],
        receiver: FragmentReceiver | None = None,
        again: Callable[[], None] | None = None,
        session: MessageSession | None = None,
    ) -> None:
        """Mark ready messages as the mode says, then read them."""
        core = self._core
        session = session if receiver is None else receiver.session
        locks = mode is ReceiveMode.PEEK_LOCK
        is_counted = locks and sub_queue is SubQueue.MAIN
        until_ms = times.monotonic_ms + core.settings.lock_duration_ms if session is None else session.until_ms
        lock_ends_ms = until_ms if session is None else NEVER
        told_ms = times.stamp_ms + until_ms - times.monotonic_ms
        indexes, rows = self.marked(
            counts, lock_ends_ms=lock_ends_ms if locks else None, told_ms=told_ms, is_counted=is_counted
        )
        if session is not None:
            session.last_given = max(session.last_given, *counts)
        given = Given(counts, rows, mode, is_counted, on_done, receiver, again)
        core.reads.begin(indexes, rows, changes_of(core, counts), partial(self.read, given))

    def marked(
        self, counts: array[int], *, lock_ends_ms: int | None, told_ms: int, is_counted: bool
    ) -> tuple[array[int], array[int]]:
        """Mark ready messages, and log that they are delivered where that counts; their log indexes and message rows.

        lock_ends_ms: when their locks do, on the monotonic clock; NEVER: with their sessions; None: no locks.
        told_ms: the end that receivers are told.
        """
        core, many, locks = self._core, len(counts), lock_ends_ms is not None
        indexes, rows = array("q", bytes(8 * many)), array("q", bytes(8 * MESSAGE_WIDTH * many))
        core.state.messages.give(
            counts,
            many,
            marks=LOCKED if locks else SETTLING,
            delivered=int(is_counted),
            lock_number=core.locks.next_number if locks else 0,
            secret=core.locks.secret,
            until_ms=told_ms if locks else -1,
            number_base=core.number_base,
            partition=-1,
            indexes=indexes,
            out=rows,
        )
        core.tell_origins(rows)
        if lock_ends_ms is not None:
            core.locks.lock(counts, many, lock_ends_ms)
        if is_counted:
            core.gather_joined(LOGGED_LOCKED, counts)
        return indexes, rows

    def read(self, given: Given, answer: bytearray | Refused) -> None:
        """The records of messages that were marked were read, or why not: answer their receive."""
        receiver = given.receiver
        if receiver is not None:
            receiver.reading = NOTHING
        if isinstance(answer, Refused):
            self._not_read(given, answer)
        elif receiver is not None and not receiver.is_open:
            self._take_back(given, given.counts)
            given.on_done(nothing_received())
        elif given.mode is ReceiveMode.PEEK_LOCK:
            given.on_done(ReceivedMessages(memoryview(answer), given.rows))
        else:
            received = ReceivedMessages(memoryview(answer), given.rows)
            self._core.gather_joined(SETTLED, given.counts, partial(self._removed, given, received))

    def _removed(self, given: Given, received: ReceivedMessages, refused: Refused | None) -> None:
        self._core.unmark(given.counts, refused)
        given.on_done(received if refused is None else refused)

    def _not_read(self, given: Given, refused: Refused) -> None:
        """The messages are as before. Those whose records are damaged keep their mark: nobody waits for them."""
        error, counts, lost = refused.error, array("q", given.counts), False
        if isinstance(error, CorruptStore) and error.first_index is not None and error.resume_index is not None:
            for place, count in enumerate(given.counts):
                found = self._core.state.messages.find(count)
                if found is not None and error.first_index <= found[0].rows[found[1] + M_INDEX] < error.resume_index:
                    found[0].rows[found[1] + M_STATE] |= SETTLING
                    counts[place], lost = 0, True
        self._take_back(given, counts)
        receiver = given.receiver
        if not lost or receiver is None or given.again is None or not receiver.is_open:
            given.on_done(refused)
        elif receiver.is_cancelled:
            given.on_done(nothing_received())
        else:
            given.again()

    def _take_back(self, given: Given, counts: array[int]) -> None:
        """They were not delivered."""
        core = self._core
        if given.mode is ReceiveMode.RECEIVE_AND_DELETE:
            core.unlock(counts, marks=SETTLING, change=0)
            return
        # A lock that ended while its message was read counts, and the message may have another one by now.
        locks, its = locks_of(core, counts), given.rows[Q_LOCK::MESSAGE_WIDTH]
        held = array("q", [count if lock == own else 0 for count, lock, own in zip(counts, locks, its, strict=True)])
        core.locks.end(array("q", [own for own, count in zip(its, counts, strict=True) if count]))
        release_messages(core, held)


def locks_of(core: FragmentCore, counts: array[int]) -> array[int]:
    """The numbers of the locks on these messages, 0 where there is none."""
    found = (core.state.messages.find(count) if count else None for count in counts)
    return array("q", [0 if each is None else each[0].rows[each[1] + M_LOCK] for each in found])


def release_messages(core: FragmentCore, counts: array[int], on_done: OnLogged | None = None) -> None:
    """These locked messages are active again at once, as if they had not been delivered.

    on_done: when the log says so, too, or why not. Where it was refused, that is tried again.
    """
    main = array("q", [count if _is_main(core, count) else 0 for count in counts])
    if any(main):
        core.gather(core.ranged(RELEASED, main), on_done)
    core.unlock(counts, marks=LOCKED | SETTLING, change=-1)
    if on_done is not None and not any(main):
        on_done(None)


def _is_main(core: FragmentCore, count: int) -> bool:
    found = core.state.messages.find(count) if count else None
    return found is not None and not found[0].rows[found[1] + M_STATE] & SUB_QUEUE_BITS
