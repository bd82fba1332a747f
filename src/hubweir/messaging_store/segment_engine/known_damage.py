"""The damage of one log that is known: which records cannot be read, where that was told, and until when it matters.

Found at a start or by a read, told once by an alarm that stands until retention takes what lies there. Damage is in
the files, so nothing of this is kept: the next start, or the next read, finds it again.
"""

from __future__ import annotations

from hubweir.alarms import DAMAGE, Alarms
from hubweir.counters import Counters
from hubweir.messaging_store.disk.log_reader import name_range

TOLD_RANGES = 8  # in the text of the alarm, the newest found last


class KnownDamage:
    """Used on the owner's loop. about: the log, as its alarms name it."""

    def __init__(self, alarms: Alarms, about: str, counters: Counters) -> None:
        self._alarms = alarms
        self._about = about
        self._counters = counters
        self._where: dict[tuple[int, int], str] = {}  # records from, to (exclusive): in the order found

    def found(self, first: int, end: int, where: str) -> None:
        """Records first to end, exclusive, cannot be read. where: for people; a range is counted and told once."""
        if (first, end) not in self._where:
            self._where[first, end] = where
            self._counters["log.corrupt_records"] += end - first
            self._tell()

    def forget_before(self, first_index: int) -> None:
        """Retention took everything before this index."""
        kept = {key: where for key, where in self._where.items() if key[1] > first_index}
        if len(kept) != len(self._where):
            self._where = kept
            self._tell()

    def _tell(self) -> None:
        ranges = list(self._where.items())
        if not ranges:
            self._alarms.end(DAMAGE, self._about)
            return
        told = [f"{name_range(first, end)} ({where})" for (first, end), where in ranges[-TOLD_RANGES:]]
        more = f"{len(ranges)} ranges, the newest found are " if len(ranges) > TOLD_RANGES else ""
        self._alarms.begin(DAMAGE, self._about, f"{more}{', '.join(told)} cannot be read; readers step over them")
