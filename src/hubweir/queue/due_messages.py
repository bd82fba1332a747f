"""Does what time brings to a fragment: locks end, scheduled messages become active, messages expire.

One deadline stands for all of it (`next_ms`); what is due in one turn is bounded, and the rest has the next turn.
"""

from __future__ import annotations

from array import array
from functools import partial

from hubweir.kernels.queue_contract import ACTIVE, LOCKED, M_ENQUEUED, M_STATE, SCHEDULED, SETTLING
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_values import Times
from hubweir.queue.operation import ACTIVATED, EXPIRED

# Of each kind in a turn: some milliseconds.
DUE_A_TURN = 4_096


class DueMessages:
    """Of one fragment."""

    def __init__(self, core: FragmentCore) -> None:
        self._core = core

    def turn(self, times: Times) -> None:
        """Do what is due."""
        self.end_locks(times)
        core = self._core
        if times.monotonic_ms < core.retry_ms:
            return
        over, core.over = core.over, array("q")
        core.dead_letter_over(over)
        due_ms = core.state.messages.next_due_ms
        if due_ms is not None and due_ms <= times.stamp_ms:
            self._activate(times)
            self._expire(times)

    def next_ms(self, times: Times) -> int | None:
        """When something is due next, on the monotonic clock; None: nothing is."""
        core = self._core
        found = []
        due_ms = core.state.messages.next_due_ms
        if due_ms is not None:
            found.append(max(due_ms - times.stamp_ms + times.monotonic_ms, core.retry_ms))
        if core.has_to_retry:
            found.append(core.retry_ms)
        locks_ms = core.locks.next_due_ms
        if locks_ms is not None:
            found.append(locks_ms)
        return min(found, default=None)

    def end_locks(self, times: Times) -> None:
        """Messages whose locks are over are active again; what is being settled is left to the log."""
        core = self._core
        due_ms = core.locks.next_due_ms
        if due_ms is None or due_ms > times.monotonic_ms:
            return
        ordinals, counts = core.locks.ended(times.monotonic_ms, DUE_A_TURN)
        for place, count in enumerate(counts):
            found = core.state.messages.find(count)
            if found is not None and found[0].rows[found[1] + M_STATE] & SETTLING:
                counts[place], ordinals[place] = 0, -1
        core.locks.end_ordinals(array("q", [ordinal for ordinal in ordinals if ordinal >= 0]))
        core.unlock(counts, marks=LOCKED, change=0)

    def _activate(self, times: Times) -> None:
        messages = self._core.state.messages
        counts = messages.due(times.stamp_ms, SCHEDULED, DUE_A_TURN)
        if not counts:
            return
        ordered = array("q", sorted(counts, key=self._scheduled_for))
        messages.mark_settling(ordered)
        self._core.gather(self._core.ranged(ACTIVATED, ordered), partial(self._done, ordered))

    def _scheduled_for(self, count: int) -> tuple[int, int]:
        found = self._core.state.messages.find(count)
        assert found is not None
        return found[0].rows[found[1] + M_ENQUEUED], count

    def _expire(self, times: Times) -> None:
        core = self._core
        counts = core.state.messages.due(times.stamp_ms, ACTIVE, DUE_A_TURN)
        if not counts:
            return
        core.state.messages.mark_settling(counts)
        if core.settings.dead_letters_on_expiry:
            text = "The message expired and was dead lettered."
            core.dead_letter(counts, "TTLExpiredException", text, partial(self._done, counts))
        else:
            core.gather(core.ranged(EXPIRED, counts), partial(self._done, counts))

    def _done(self, counts: array[int], refused: Refused | None) -> None:
        self._core.unmark(counts, refused)
        self._core.wake()
