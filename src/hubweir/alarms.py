"""Alarms: what the operator must know now, told once when it begins and once when it is over.

An alarm is a kind, of the table below, and what it is about, in the operator's words ("partition 3 of orders"). Who
finds the trouble begins it, who finds it over ends it; both may say so again and again. While it stands, `/ready` and
the service's pages know it. Used on the owner's loop. After a crash nothing of it is known: a start finds what is
still wrong.

Where several processes make up the service, each hears what stands in the others, so that whichever is asked says the
same of all of them. What was heard is in no log line and in no counter here.

Each beginning, end and new text is one line of the log, at once. Trouble that comes and goes would flood it: of one
alarm at most LINES_AT_ONCE lines stand in QUIET_MS, then one line at the end of that time says how it is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from hubweir.counters import Counters
from hubweir.env import Timer
from hubweir.service_log import ALARM, ALARM_OVER, ALARM_STANDS, LineKind, Value

logger = logging.getLogger(__name__)

LINES_AT_ONCE = 6  # it comes and goes three times
QUIET_MS = 60_000
# Alarms whose lines are counted, before those of more than QUIET_MS ago are forgotten; or twice what was left then.
REMEMBERED = 1_000


@dataclass(frozen=True, slots=True)
class AlarmKind:
    """blocks: while it stands, clients' good requests are refused or wait. Else there is damage, or something is odd.

    meaning: for docs/alarms.md. level: of the log line when it begins.
    """

    name: str
    blocks: bool
    level: int
    meaning: str


LOG_OFFLINE = AlarmKind("log-offline", True, logging.ERROR, "a log takes no appends: its disk failed, or the service")
STORE_TAKEN_OVER = AlarmKind(
    "store-taken-over", True, logging.ERROR, "another process owns the store: this one writes nothing any more"
)
STORE_AWAY = AlarmKind("store-away", True, logging.ERROR, "a messaging store is not served; the others are")
PARTITION_NOT_OPEN = AlarmKind("partition-not-open", True, logging.ERROR, "a partition of the catalog is not served")
DISK_FULL = AlarmKind("disk-full", True, logging.ERROR, "appends are refused for want of space")
SYNC_HANGS = AlarmKind("sync-hangs", True, logging.ERROR, "a sync of a log does not end: what is sent to it waits")
DAMAGE = AlarmKind("damage", False, logging.ERROR, "stored events cannot be read; readers are told and step over them")
RECORDS_LOST = AlarmKind("records-lost", False, logging.ERROR, "a log ends before something that was stored in it")
DAMAGED_FILE = AlarmKind(
    "damaged-file",
    False,
    logging.WARNING,
    "a header or a small file is damaged or out of date; the rest tells what it said",
)
READ_FAULT = AlarmKind("read-fault", False, logging.ERROR, "a read ended in a fault of the service")
RESERVE_USED = AlarmKind("reserve-used", False, logging.WARNING, "the space kept for a full disk is used up")
CLOCK_AWAY = AlarmKind(
    "clock-away", False, logging.WARNING, "the clock jumped, or is far from the time that the service saw pass"
)
CAPTURE_FAILING = AlarmKind("capture-failing", False, logging.WARNING, "captured files cannot be written now")
CAPTURE_OVER_QUOTA = AlarmKind(
    "capture-over-quota", False, logging.ERROR, "retention removes events that were not captured"
)
UNITS_UNUSED = AlarmKind("units-unused", False, logging.WARNING, "more throughput units than the partitions can use")
ISSUER_KEYS = AlarmKind("issuer-keys", False, logging.ERROR, "the file of a token issuer's keys is no good")
LOGS_UNNAMED = AlarmKind("logs-unnamed", False, logging.WARNING, "logs of partitions lie where no catalog names them")

KINDS = (
    LOG_OFFLINE,
    STORE_TAKEN_OVER,
    STORE_AWAY,
    PARTITION_NOT_OPEN,
    DISK_FULL,
    SYNC_HANGS,
    DAMAGE,
    RECORDS_LOST,
    DAMAGED_FILE,
    READ_FAULT,
    RESERVE_USED,
    CLOCK_AWAY,
    CAPTURE_FAILING,
    CAPTURE_OVER_QUOTA,
    UNITS_UNUSED,
    ISSUER_KEYS,
    LOGS_UNNAMED,
)


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm that stands. began_ms: monotonic; since_ms: the same moment on the wall clock."""

    kind: AlarmKind
    about: str
    text: str
    began_ms: int
    since_ms: int

    def __str__(self) -> str:
        return f"{self.about}: {self.text}"


class AlarmEnv(Protocol):
    """The part of Env that alarms use."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer: ...


@dataclass(slots=True)
class _Lines:
    """The lines of one alarm since a moment: said, and left out. begun: how often it began in that time."""

    since_ms: int
    said: int = 0
    left_out: int = 0
    begun: int = 0
    timer: Timer | None = None


_Key = tuple[str, str]
_KINDS = {kind.name: kind for kind in KINDS}


class Alarms:
    """The alarms of one process; see the module's text."""

    def __init__(self, env: AlarmEnv, counters: Counters) -> None:
        self._env = env
        self._counters = counters
        self._standing: dict[_Key, Alarm] = {}  # in the order in which they began
        self._elsewhere: frozenset[_Key] = frozenset()
        self._lines: dict[_Key, _Lines] = {}
        self._forget_at = REMEMBERED
        self._closed = False

    def begin(self, kind: AlarmKind, about: str, text: str) -> None:
        """It stands from now on; when it stands already, only its text is renewed. Bounded by what it can be about:
        who names no entity must not begin one for each request."""
        key = kind.name, about
        known = self._standing.get(key)
        if self._closed or known is not None and known.text == text:
            return
        if known is not None:
            alarm = self._standing[key] = replace(known, text=text)
        else:
            alarm = Alarm(kind, about, text, self._env.monotonic_ms(), self._env.now_ms())
            self._standing[key] = alarm
            self._counters["alarms.begun"] += 1
            self._count()
            self._lines_of(key).begun += 1
        self._say(key, ALARM, kind.level, about=about, text=text)

    def end(self, kind: AlarmKind, about: str) -> None:
        """It is over; nothing when it does not stand."""
        alarm = self._standing.pop((kind.name, about), None)
        if alarm is not None and not self._closed:
            self._count()
            seconds = (self._env.monotonic_ms() - alarm.began_ms) / 1000
            self._say((kind.name, about), ALARM_OVER, logging.INFO, about=about, seconds=seconds, often=None)

    def end_all(self, about: str) -> None:
        """Whatever it was about is gone."""
        for alarm in self.current():
            if alarm.about == about:
                self.end(alarm.kind, about)

    def current(self) -> tuple[Alarm, ...]:
        """Those that stand, the oldest first."""
        return tuple(self._standing.values())

    def hear(self, elsewhere: Iterable[_Key]) -> None:
        """From now on these stand in other processes, in the place of those that were heard of before: the name of each
        kind, and what it is about."""
        self._elsewhere = frozenset(key for key in elsewhere if key[0] in _KINDS)

    @property
    def blocks(self) -> bool:
        """Whether one stands, in any process, that keeps clients' requests from being served."""
        return any(_KINDS[name].blocks for name, _ in {*self._standing, *self._elsewhere})

    def counts(self) -> dict[str, int]:
        """How many of each kind stand in all processes, in the table's order; no kind with none.

        What stands in several is one alarm.
        """
        names = [name for name, _ in {*self._standing, *self._elsewhere}]
        return {kind.name: names.count(kind.name) for kind in KINDS if kind.name in names}

    def close(self) -> None:
        """The service stops: what is given up from now on is no news."""
        self._closed = True
        for lines in self._lines.values():
            if lines.timer is not None:
                lines.timer.cancel()
        self._lines.clear()

    # The log

    def _count(self) -> None:
        self._counters["alarms.standing"] = len(self._standing)

    def _lines_of(self, key: _Key) -> _Lines:
        """The lines of an alarm in the time that runs; a new time when that is over."""
        now_ms = self._env.monotonic_ms()
        lines = self._lines.get(key)
        if lines is None or lines.timer is None and now_ms - lines.since_ms >= QUIET_MS:
            if len(self._lines) >= self._forget_at:
                self._forget(now_ms)
                # Of thousands that begin at once, each would look at all others.
                self._forget_at = max(REMEMBERED, 2 * len(self._lines))
            lines = self._lines[key] = _Lines(now_ms)
        return lines

    def _forget(self, now_ms: int) -> None:
        known = self._lines.items()
        self._lines = {
            key: lines for key, lines in known if lines.timer is not None or now_ms - lines.since_ms < QUIET_MS
        }

    def _say(self, key: _Key, line: LineKind, level: int, **fields: Value) -> None:
        lines = self._lines_of(key)
        if lines.said < LINES_AT_ONCE:
            lines.said += 1
            line.say(logger, level=level, alarm=key[0], **fields)
            return
        lines.left_out += 1
        if lines.timer is None:
            wait_ms = lines.since_ms + QUIET_MS - self._env.monotonic_ms()
            lines.timer = self._env.call_later(max(1, wait_ms), lambda: self._say_how_it_is(key))

    def _say_how_it_is(self, key: _Key) -> None:
        """The time is over in which lines were left out: one for all of them, and a new time begins."""
        lines, alarm = self._lines[key], self._standing.get(key)
        self._lines[key] = _Lines(self._env.monotonic_ms(), said=LINES_AT_ONCE - 1)  # room for one line at once
        often = f"begun {lines.begun} times in {QUIET_MS // 1000} s, {lines.left_out} lines left out"
        name, about = key
        if alarm is None:
            ALARM_OVER.say(logger, level=logging.WARNING, alarm=name, about=about, seconds=None, often=often)
        else:
            ALARM_STANDS.say(logger, level=alarm.kind.level, alarm=name, about=about, text=alarm.text, often=often)
