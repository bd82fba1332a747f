"""The runs of one log that wait for a round: in the order of appends, counted in bytes, bounded.

Nothing of them is in the file, so what is taken out and refused leaves nothing behind.
"""

from __future__ import annotations

from hubweir.messaging_store.log_state import Entry


class EntryQueue:
    """bytes: of all runs that wait. True when any does."""

    __slots__ = ("_entries", "bytes")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self.bytes = 0

    def __bool__(self) -> bool:
        return bool(self._entries)

    @property
    def first_bytes(self) -> int:
        """Size of the run that waits longest; there must be one."""
        return len(self._entries[0].run)

    def add(self, entry: Entry, limit_bytes: int) -> bool:
        """Queue a run behind the others; False, and not queued, when limit_bytes would be passed. One always fits."""
        size = len(entry.run)
        if self.bytes + size > limit_bytes and self._entries:
            return False
        self._entries.append(entry)
        self.bytes += size
        return True

    def take(self, room_bytes: int) -> tuple[list[Entry], int]:
        """The first runs, as many as fit into room_bytes and one at least, and their bytes; taken out."""
        size = number = 0
        for entry in self._entries:
            if number and size + len(entry.run) > room_bytes:
                break
            size += len(entry.run)
            number += 1
        taken, self._entries = self._entries[:number], self._entries[number:]
        self.bytes -= size
        return taken, size

    def put_back(self, entries: list[Entry]) -> None:
        """What was taken goes in front again."""
        self._entries[:0] = entries
        self.bytes += sum(len(entry.run) for entry in entries)

    def take_all(self) -> list[Entry]:
        """Everything that waits, taken out."""
        entries, self._entries, self.bytes = self._entries, [], 0
        return entries
