"""A log service as replicated_log.py needs one: ordered, replicated, trimmed at its front; it knows no owners.

It takes entries of whoever appends, gives all of them to all who follow it, in one order, and forgets a prefix. Its
positions are its own.

After a crash of a process: every entry that was put is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.messaging_store.completion import LogEnd
from hubweir.messaging_store.log import Note, Snapshot


class ReplicatedEnd(LogEnd, frozen=True):
    """Where the log ends, and its first index and offset."""

    first_index: int = 0
    first_offset: int = 0


@dataclass(frozen=True, slots=True)
class SharedEntry:
    """What the service holds: a completed run, a note (None: forget its key), or the end as it is; nothing: an
    epoch is taken."""

    epoch: int
    by: object
    run: bytes = b""
    key: bytes | None = None
    note: Note | None = None
    end: ReplicatedEnd | None = None

    @property
    def takes_epoch(self) -> bool:
        return not self.run and self.key is None and self.end is None


class SharedLog:
    """See the module's text. Snapshots lie beside it, as in an object store."""

    def __init__(self) -> None:
        self.entries: dict[int, SharedEntry] = {}  # by position, in order
        self.snapshots: list[Snapshot] = []  # the newest first; two at most
        self._next = 0
        self.followers: list[Callable[[int, SharedEntry], None]] = []

    def follow(self, follower: Callable[[int, SharedEntry], None]) -> None:
        """Call with every entry there is, now, and with each one to come."""
        for position, entry in self.entries.items():
            follower(position, entry)
        self.followers.append(follower)

    def leave(self, follower: Callable[[int, SharedEntry], None]) -> None:
        """Call it no more."""
        if follower in self.followers:
            self.followers.remove(follower)

    def put(self, entry: SharedEntry) -> None:
        """The entry is in the order, and durable; all who follow read it."""
        position, self._next = self._next, self._next + 1
        self.entries[position] = entry
        for follower in list(self.followers):
            follower(position, entry)

    def trim(self, position: int) -> None:
        """Forget every entry before this position."""
        self.entries = {at: entry for at, entry in self.entries.items() if at >= position}


class SharedLogs:
    """The service with all its logs, by their ids. It outlives whoever uses it, as another machine does."""

    def __init__(self) -> None:
        self.logs: dict[str, SharedLog] = {}
