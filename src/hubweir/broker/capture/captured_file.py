"""A captured file while it is made: runs in, blocks to its destination. On threads of the pool, one call at a time.

After a crash, or a failure: it is made again from its intent, and its bytes are equal (capture/avro.py).
"""

from __future__ import annotations

from hubweir.broker.capture.places import CapturePlaces
from hubweir.capture.avro import BlockWriter, header
from hubweir.capture.capture_mark import Intent
from hubweir.capture.destination import Archive
from hubweir.env import Buffer
from hubweir.messaging_store.log import Run


class CapturedFile:
    """One file while it is made. next: the sequence number that it wants next; lost: what the log does not have."""

    def __init__(self, intent: Intent, sync_marker: bytes) -> None:
        self.intent = intent
        self.next = intent.first
        self.lost: list[tuple[int, int]] = []
        self.is_short = False  # the log has not all of its numbers
        self.blocks = BlockWriter(sync_marker)
        self.archive: Archive | None = None
        self.size = 0

    @property
    def all_lost(self) -> list[tuple[int, int]]:
        """With the events that no record could be made of."""
        return [*self.lost, *((found.start, found.end) for found in self.blocks.unsound)]

    def write(self, places: CapturePlaces, buffers: list[Buffer]) -> None:
        """Blocking."""
        if self.archive is None:
            self.archive = places.destination(self.intent.destination, self.intent.container).begin(self.intent.name)
            buffers = [header(self.blocks.sync_marker), *buffers]
        if buffers:
            self.archive.write(buffers)
            self.size += sum(len(buffer) for buffer in buffers)

    def add_events(self, places: CapturePlaces, run: Run) -> None:
        """Blocking."""
        buffers = self.blocks.add_events(run.data, self.next, self.intent.end)
        if buffers:
            self.write(places, buffers)

    def abandon(self) -> None:
        """Blocking."""
        if self.archive is not None:
            self.archive.abandon()
