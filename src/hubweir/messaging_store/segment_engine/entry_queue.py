"""The runs of one log that wait for a round: in the order of appends, counted in bytes, bounded.

Nothing of them is in the file, so what is taken out and refused leaves nothing behind; but for those that were tried.
"""

from __future__ import annotations

from hubweir.messaging_store.segment_engine.log_state import Entry


class EntryQueue:
    """entries: the runs that wait, the first to come in front. bytes: of all of them."""

    __slots__ = ("bytes", "entries")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.bytes = 0

    def add(self, entry: Entry, limit_bytes: int) -> bool:
        """Queue a run behind the others; False, and not queued, when limit_bytes would be passed. One always fits."""
        size = len(entry.run)
        if self.bytes + size > limit_bytes and self.entries:
            return False
        self.entries.append(entry)
        self.bytes += size
        return True

    def take(self, room_bytes: int) -> tuple[list[Entry], int]:
        """The first runs, as many as fit into room_bytes and one at least, and their bytes; taken out."""
        size = number = 0
        for entry in self.entries:
            if number and size + len(entry.run) > room_bytes:
                break
            size += len(entry.run)
            number += 1
        taken = self.entries[:number]
        del self.entries[:number]  # the list stays: a new one for each append would be one more to collect
        self.bytes -= size
        return taken, size

    def put_back(self, entries: list[Entry]) -> None:
        """What was taken goes in front again."""
        self.entries[:0] = entries
        self.bytes += sum(len(entry.run) for entry in entries)

    def take_tried(self) -> list[Entry]:
        """What a failed write may have left in the file, taken out."""
        tried = [entry for entry in self.entries if entry.is_tried]
        self.entries = [entry for entry in self.entries if not entry.is_tried]
        self.bytes -= sum(len(entry.run) for entry in tried)
        return tried

    def take_all(self) -> list[Entry]:
        """Everything that waits, taken out."""
        entries, self.entries, self.bytes = self.entries, [], 0
        return entries
