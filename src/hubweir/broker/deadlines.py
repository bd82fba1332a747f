"""The deadlines of a broker: whatever is to happen at a time, in milliseconds on the monotonic clock.

One timer of Env rings for all of them, so that hundreds of thousands cost the loop no more than one. Those of the
present *span*, about a second, stand in a heap; later ones lie by their span, unsorted, until it begins. So

| call    | cost for n deadlines |
|---------|----------------------|
| arm     | O(1) in a later span, O(log n) in the present one; a small object and no closure: `whose`, `key` |
| cancel  | O(1); in the present span its place in the heap goes when its time has come |
| a turn  | at most DUE_A_TURN of them, and MOVED_A_TURN that come into the heap; what is left has the next turn |

They are due in the order of their times, and those of one millisecond in the order in which they were armed; never
before their time. Nothing is durable: after a crash whoever needs a deadline arms it again.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from typing import Any, Protocol

from hubweir.env import Env, Timer

SPAN_MS = 1_024
# To answer one takes 10 to 100 us: a turn of the loop stays at some milliseconds.
DUE_A_TURN = 100
MOVED_A_TURN = 5_000  # 0.3 us each


class HasDeadlines(Protocol):
    """Whoever arms deadlines."""

    def due(self, key: Any, now_ms: int) -> None:
        """One that was armed with this key is due, and over. A fault goes to the loop; the others are due all the same.

        now_ms: the monotonic clock when this turn began, at or behind the deadline.
        """


class Deadline:
    """One that is armed, for `cancel`. at_ms: when it is due. whose: None when it is over."""

    __slots__ = ("at_ms", "key", "whose")

    def __init__(self, at_ms: int, whose: HasDeadlines, key: Any) -> None:
        self.at_ms = at_ms
        self.whose: HasDeadlines | None = whose
        self.key = key


class BrokerDeadlines:
    """Those of one broker. Used on the loop."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._near: list[tuple[int, int, Deadline]] = []  # a heap of time, number; also of some that were cancelled
        self._near_end_ms = 0  # all that are due before this are near, and no others
        self._far: dict[int, dict[Deadline, None]] = {}  # by span, in the order they were armed
        self._spans: list[int] = []  # a heap of the spans in _far
        self._last_number = 0
        self._armed = 0
        self._timer: Timer | None = None
        self._rings_ms = 0

    def __len__(self) -> int:
        """How many are armed."""
        return self._armed

    def arm(self, at_ms: int, whose: HasDeadlines, key: Any = None) -> Deadline:
        """Have `whose.due(key, …)` called at this time, in a later turn of the loop, also when it is over already."""
        deadline = Deadline(at_ms, whose, key)
        self._armed += 1
        if at_ms < self._near_end_ms:
            self._push(deadline)
            self._ring_at(at_ms)
            return deadline
        span = at_ms // SPAN_MS
        lying = self._far.get(span)
        if lying is None:
            lying = self._far[span] = {}
            heappush(self._spans, span)
            self._ring_at(span * SPAN_MS)
        lying[deadline] = None
        return deadline

    def arm_in(self, delay_ms: int, whose: HasDeadlines, key: Any = None) -> Deadline:
        """`arm` at a time from now on."""
        return self.arm(self._env.monotonic_ms() + delay_ms, whose, key)

    def cancel(self, deadline: Deadline) -> None:
        """It is due no more. Twice, or too late, does nothing."""
        if deadline.whose is None:
            return
        deadline.whose = deadline.key = None
        self._armed -= 1
        lying = self._far.get(deadline.at_ms // SPAN_MS)
        if lying is not None:
            lying.pop(deadline, None)
        if not self._armed:
            self._forget_all()

    # Steps

    def _push(self, deadline: Deadline) -> None:
        self._last_number += 1
        heappush(self._near, (deadline.at_ms, self._last_number, deadline))

    def _ring(self) -> None:
        """Call those that are due, and see to the next."""
        self._timer = None
        now_ms = self._env.monotonic_ms()
        try:
            self._move(now_ms)
            self._call_due(now_ms)
        finally:  # also after a fault: what is not rung for never comes
            if not self._armed:
                self._forget_all()
            if self._near:
                self._ring_at(self._near[0][0])
            if self._spans:
                self._ring_at(self._spans[0] * SPAN_MS)

    def _move(self, now_ms: int) -> None:
        """Bring those near whose span has begun."""
        left = MOVED_A_TURN
        while self._spans and self._spans[0] * SPAN_MS <= now_ms:
            lying = self._far[self._spans[0]]
            moved = list(islice(lying, left))
            for deadline in moved:
                del lying[deadline]
                self._push(deadline)
            if lying:
                return
            left -= len(moved)
            self._near_end_ms = (self._spans[0] + 1) * SPAN_MS
            del self._far[heappop(self._spans)]

    def _call_due(self, now_ms: int) -> None:
        end_ms, last = min(now_ms + 1, self._near_end_ms), self._last_number
        for _ in range(DUE_A_TURN):
            if not self._near or self._near[0][0] >= end_ms or self._near[0][1] > last:
                return  # behind `last` are those that were armed in this turn
            deadline = heappop(self._near)[2]
            whose, key = deadline.whose, deadline.key
            if whose is not None:
                deadline.whose = deadline.key = None
                self._armed -= 1
                whose.due(key, now_ms)

    def _ring_at(self, at_ms: int) -> None:
        """At this time, if not earlier."""
        if self._timer is not None:
            if self._rings_ms <= at_ms:
                return
            self._timer.cancel()
        self._rings_ms = at_ms
        self._timer = self._env.call_later(max(0, at_ms - self._env.monotonic_ms()), self._ring)

    def _forget_all(self) -> None:
        """Nothing is armed."""
        self._near.clear()
        self._far.clear()
        self._spans.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
