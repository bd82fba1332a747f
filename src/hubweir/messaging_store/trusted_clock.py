"""The time by which a store stamps and removes events: it does not follow a wall clock that is wrong for a while.

Three times, in milliseconds, each of which never jumps without a reason:

- `now_ms`, for retention: the time that this store saw pass. It goes on by the machine's own clock, which counts sleep,
  and takes over what the wall clock says passed besides (the service was off) only after that stood for a while.
- `created_ms`, for new segments: the same, with what the wall clock says passed besides and did not stand long enough
  yet. So what is made behind a gap does not grow older by the gap once that is believed.
- `stamp_ms`, for enqueued times: the wall clock. A jump while the service runs is not followed until it stood.

The wall clock's deviation is what it says beyond the time that was seen to pass:

| deviation | what retention does |
|---|---|
| up to 60 s ahead | follows at once |
| up to a year ahead | waits until it stood for a quarter of itself, at most 6 h; then it counts as time that passed |
| behind, up to a year | counts the time that the service runs; a clock that stood for as long as it is off is right |
| more than a year | never counts: a wrong clock, or a store that lay for years; a clock that stood for 6 h is right |

"Right" means that the deviation is none from then on; no event grows older or younger by it. A deviation that changes
by more than 60 s begins to stand anew; one that goes away was never there. (Rule R20)

After a crash: the file CLOCK holds a state at most a minute old, and what passed since is a deviation as any other.
When it is absent or damaged, the wall clock is believed as it is.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from hubweir.env import Clock

logger = logging.getLogger(__name__)

JUMP_MS = 60_000  # what a time service may set right without being doubted
HOUR_MS = 3_600_000
YEAR_MS = 366 * 24 * HOUR_MS
STAND_LIMIT_MS = 6 * HOUR_MS  # for an operator who reads alarms, or a time service that comes up late
STAND_SHARE = 4  # a machine that is off for the night and on for the day is believed within the day
STAMP_STAND_MS = 10 * 60_000
ALARM_MS = 24 * HOUR_MS  # a service that was off for less is nothing to tell


@dataclass(frozen=True, slots=True)
class ClockState:
    """What outlives a process. passed_ms: retention's time; offset_ms: where from it the wall clock is right."""

    passed_ms: int
    offset_ms: int


class TrustedClock:
    """See the module's text. Ask at least once a minute or so; used on the owner's loop."""

    def __init__(self, clock: Clock, state: ClockState | None = None) -> None:
        """state: of the process before; None: there was none."""
        self._clock = clock
        wall_ms, self._boottime_ms = clock.now_ms(), clock.boottime_ms()
        passed_ms = wall_ms if state is None else state.passed_ms
        # Offsets, not sums: `passed` is the boot clock and this, so a look from another thread cannot count twice.
        self._passed_from_ms = passed_ms - self._boottime_ms
        self._offset_ms = 0 if state is None else state.offset_ms
        self._deviation_ms = wall_ms - passed_ms - self._offset_ms
        self._deviation = _Standing()
        # A start takes the wall clock's word for stamps, unless nobody was off for that long.
        begin_ms = wall_ms if abs(self._deviation_ms) <= YEAR_MS else passed_ms + self._offset_ms
        self._stamp_from_ms = begin_ms - self._boottime_ms
        self._jump = _Standing()
        self._look()

    @property
    def state(self) -> ClockState:
        """For the next process."""
        return ClockState(self.now_ms(), self._offset_ms)

    def now_ms(self) -> int:
        """The time by which events grow old. Never runs back."""
        self._look()
        return self._boottime_ms + self._passed_from_ms

    def created_ms(self) -> int:
        """The time of a segment that is made now, in `now_ms` as it will be."""
        self._look()
        return self.latest_created_ms

    @property
    def latest_created_ms(self) -> int:
        """`created_ms` as of the last time that anything here was asked: by the stamp of an append, in its own turn."""
        is_gap = JUMP_MS < self._deviation_ms <= YEAR_MS
        return self._boottime_ms + self._passed_from_ms + (self._deviation_ms if is_gap else 0)

    def stamp_ms(self) -> int:
        """The wall clock's time; after a jump of it, the time as if it had not jumped, until the jump stood."""
        wall_ms = self._look()
        jump_ms = wall_ms - self._boottime_ms - self._stamp_from_ms
        if abs(jump_ms) > JUMP_MS and self._jump.stood_ms(jump_ms, self._boottime_ms) < STAMP_STAND_MS:
            return self._boottime_ms + self._stamp_from_ms
        self._jump.since_ms = None
        self._stamp_from_ms = wall_ms - self._boottime_ms
        return wall_ms

    @property
    def trouble(self) -> str | None:
        """What the operator must know while it holds."""
        self.stamp_ms()
        texts = []
        if self._jump.is_on:
            jump_s = self._jump.deviation_ms // 1000
            texts.append(f"the clock jumped by {jump_s} s: events get the time as before until it stays for 10 minutes")
        ahead_ms = self._deviation_ms
        if abs(ahead_ms) > ALARM_MS:
            text = _AHEAD if ahead_ms > 0 else _BEHIND
            texts.append(text.format(hours=abs(ahead_ms) // HOUR_MS))
        return "; ".join(texts) or None

    def _look(self) -> int:
        """Take in what passed since the last look; the wall clock's time."""
        wall_ms, self._boottime_ms = self._clock.now_ms(), self._clock.boottime_ms()
        passed_ms, boottime_ms = self._boottime_ms + self._passed_from_ms, self._boottime_ms
        self._deviation_ms = ahead_ms = wall_ms - passed_ms - self._offset_ms
        if abs(ahead_ms) <= JUMP_MS:
            self._deviation.since_ms = None
            if ahead_ms > 0:
                self._count(wall_ms)
            return wall_ms
        if not self._deviation.is_that(ahead_ms):
            logger.warning("the clock is %d s ahead of the time that the store saw pass", ahead_ms // 1000)
        stood_ms = self._deviation.stood_ms(ahead_ms, boottime_ms)
        if JUMP_MS < ahead_ms <= YEAR_MS:
            if stood_ms >= min(ahead_ms // STAND_SHARE, STAND_LIMIT_MS):
                self._count(wall_ms)
        elif stood_ms >= (STAND_LIMIT_MS if abs(ahead_ms) > YEAR_MS else -ahead_ms):
            self._offset_ms, self._deviation_ms = wall_ms - passed_ms, 0
        return wall_ms

    def _count(self, wall_ms: int) -> None:
        """What the wall clock says passed did pass."""
        self._passed_from_ms, self._deviation_ms = wall_ms - self._offset_ms - self._boottime_ms, 0


class _Standing:
    """Since when a deviation stands: a larger change than JUMP_MS begins anew. since_ms None: none stands."""

    def __init__(self) -> None:
        self.deviation_ms = 0
        self.since_ms: int | None = None

    @property
    def is_on(self) -> bool:
        return self.since_ms is not None

    def is_that(self, deviation_ms: int) -> bool:
        """Whether it is this one that stands."""
        return self.is_on and abs(deviation_ms - self.deviation_ms) <= JUMP_MS

    def stood_ms(self, deviation_ms: int, now_ms: int) -> int:
        """How long it stands by now; 0 when it begins."""
        if self.since_ms is None or not self.is_that(deviation_ms):
            self.since_ms, self.deviation_ms = now_ms, deviation_ms
        return now_ms - self.since_ms


_AHEAD = (
    "the clock is {hours} h ahead of the time that the store saw pass: the service was off for as long, or the clock "
    "is wrong. If it is wrong, set it right: in 6 h it is believed"
)
_BEHIND = (
    "the clock is {hours} h behind the time that the store saw pass: new events have the time of the newest one "
    "before, and retention counts the time in which the service runs. Set the clock right"
)
