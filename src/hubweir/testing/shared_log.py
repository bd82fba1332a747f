"""A log service as replicated_log.py needs one: ordered, replicated, trimmed at its front; it knows no owners.

It takes entries of whoever appends, gives all of them to all who follow it, in one order, and forgets a prefix. Its
positions are its own.

After a crash of a process: every entry that was put is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hubweir.messaging_store.completion import last_record_offset
from hubweir.messaging_store.log import Note, Snapshot
from hubweir.messaging_store.record import headers_of


@dataclass(frozen=True, slots=True)
class ReplicatedEnd:
    """Where the log ends: as LogEnd, and its first index and offset."""

    index: int = 0
    offset: int = 0
    last_offset: int = -1
    last_time_ms: int = -1
    last_index: int = -1
    number: int = 0
    first_index: int = 0
    first_offset: int = 0


@dataclass(frozen=True, slots=True)
class SharedEntry:
    """What the service holds: a completed run, a note (None: forget its key), or an end; nothing: an epoch is taken."""

    epoch: int
    by: object
    run: bytes = b""
    key: bytes | None = None
    note: Note | None = None
    end: ReplicatedEnd | None = None


@dataclass(frozen=True, slots=True)
class VisibleBatch:
    """A batch of an entry that counts, and the position of the entry."""

    data: bytes
    first_index: int
    next_index: int
    first_offset: int
    next_offset: int
    last_offset: int
    time_ms: int
    number: int
    position: int


def batches_of(run: bytes, position: int) -> Iterator[VisibleBatch]:
    """The batches of a completed run, which all have records."""
    for header in headers_of(run):
        data = run[header.position : header.end]
        last = last_record_offset(data, 0, header.count, header.first_offset, header.records_at - header.position)
        yield VisibleBatch(
            data, header.first_index, header.first_index + header.count, header.first_offset,
            header.first_offset + header.record_bytes, last, header.enqueued_time_ms, header.number, position,
        )  # fmt: skip


class SharedLog:
    """See the module's text. Snapshots lie beside it, as in an object store."""

    def __init__(self) -> None:
        self.entries: dict[int, SharedEntry] = {}  # by position, in order
        self.snapshots: list[Snapshot] = []  # the newest first; two at most
        self._next = 0
        self._followers: list[Callable[[int, SharedEntry], None]] = []

    def follow(self, follower: Callable[[int, SharedEntry], None]) -> None:
        """Call with every entry there is, now, and with each one to come."""
        for position, entry in self.entries.items():
            follower(position, entry)
        self._followers.append(follower)

    def leave(self, follower: Callable[[int, SharedEntry], None]) -> None:
        """Call it no more."""
        if follower in self._followers:
            self._followers.remove(follower)

    def put(self, entry: SharedEntry) -> None:
        """The entry is in the order, and durable; all who follow read it."""
        position, self._next = self._next, self._next + 1
        self.entries[position] = entry
        for follower in list(self._followers):
            follower(position, entry)

    def trim(self, position: int) -> None:
        """Forget every entry before this position."""
        self.entries = {at: entry for at, entry in self.entries.items() if at >= position}
