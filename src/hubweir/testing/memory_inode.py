"""One file of the disk in memory: what the page cache shows, and what the disk would still say after a power cut.

The rules are memory_files.py's: unsynced sectors of 512 bytes end old or new, each for itself; a failed sync leaves its
sectors readable and lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

SECTOR = 512


@dataclass(slots=True, eq=False)
class Inode:
    """A file's bytes as the page cache shows them, and what the disk would still say instead."""

    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    synced_size: int = 0
    unsynced: dict[int, bytes] = field(default_factory=dict)  # sector -> what the disk holds there
    lost: dict[int, bytes] = field(default_factory=dict)  # the same, for sectors a failed sync gave up

    def read(self, position: int, size: int) -> bytes:
        end = min(position + size, self.size)
        return bytes(memoryview(self.data)[position:end]).ljust(end - position, b"\0")

    def write(self, position: int, data: bytes) -> None:
        end = position + len(data)
        for sector in range(position // SECTOR, -(-end // SECTOR)):
            if sector not in self.unsynced:
                old = self.lost.pop(sector, None)
                self.unsynced[sector] = self.sector(sector) if old is None else old
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))
        self.data[position:end] = data
        self.size = max(self.size, end)

    def sector(self, sector: int) -> bytes:
        found = bytes(self.data[sector * SECTOR : (sector + 1) * SECTOR])
        return found + bytes(SECTOR - len(found))

    def put(self, sector: int, content: bytes) -> None:
        end = (sector + 1) * SECTOR
        if len(self.data) < end:
            self.data.extend(bytes(end - len(self.data)))
        self.data[sector * SECTOR : end] = content

    def truncate(self, size: int) -> None:
        if size < self.size:
            if size < len(self.data):
                tail = bytes(len(self.data) - size)
                self.write(size, tail)
            del self.data[size:]
        self.size = size

    def sync(self) -> None:
        self.unsynced.clear()
        self.synced_size = self.size

    def fail_sync(self, random: Random) -> None:
        for sector, old in self.unsynced.items():
            if random.random() < 0.7:
                self.lost[sector] = old
        self.unsynced.clear()

    def cut(self, random: Random) -> None:
        for sector, old in sorted(self.unsynced.items()):
            if random.random() < 0.5:
                self.put(sector, old)
        for sector, old in sorted(self.lost.items()):
            self.put(sector, old)
        if self.size != self.synced_size and random.random() < 0.5:
            self.size = self.synced_size
        del self.data[self.size :]
        self.unsynced.clear()
        self.lost.clear()
        self.synced_size = self.size
