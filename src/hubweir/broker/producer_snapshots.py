"""Snapshots of one partition's idempotent producers: read at a start, saved when the first one opens and when due.

They are saved so that a start replays little and retention may trim (producer_log.py says why there must be one at
all). After a crash the producers are the newest snapshot that is whole, and the log behind it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress

from hubweir.env import Clock
from hubweir.errors import StoreError
from hubweir.event_hub.producer_loading import LoadedProducers, load_producers
from hubweir.event_hub.producer_log import EXPIRED, encode_snapshot, producer_notes
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.messaging_store.log import Log, Note, Refused
from hubweir.messaging_store.trusted_clock import TrustedClock

logger = logging.getLogger(__name__)

# A start replays at most about this many events of a partition that has producers.
EVENTS_PER_SNAPSHOT = 100_000
# Retention trims up to the older of two snapshots: a partition that gets little is not held back for long.
SNAPSHOT_EVERY_MS = 600_000


def whatever(outcome: Note | Refused | None) -> None:
    """A snapshot that was not saved is taken at a later sweep; who is not noted as expired is, at the next one."""


class ProducerSnapshots:
    """Those of one partition. saved_at: the index that the newest covers; None: it never had a producer."""

    def __init__(self, clock: Clock, stamps: TrustedClock, log: Log, sequences: ProducerSequences) -> None:
        """stamps: of the store, for what is noted."""
        self._clock = clock
        self._stamps = stamps
        self._log = log
        self._sequences = sequences
        self.saved_at: int | None = None
        self._saved_at_ms: int | None = None  # monotonic, or when it was first asked for
        self._is_saving = False
        self._is_settled = False  # both snapshots cover the same index

    def load(self, on_done: Callable[[Refused | None], None]) -> None:
        """Read the producers as load_producers does; on_done when they are there, or cannot be read now."""

        def loaded(found: LoadedProducers | Refused) -> None:
            if isinstance(found, Refused):
                on_done(found)
                return
            for error in found.damage:  # it has its alarm
                logger.error("idempotent producers of %s cannot all be told from the log: %s", self._log.log_id, error)
            self.saved_at = found.saved_at
            on_done(None)

        load_producers(self._log, self._sequences, loaded)

    def save_if_due(self) -> None:
        """Take one when much was appended since the newest, or little for long."""
        if self.saved_at is None:
            return
        now_ms = self._clock.monotonic_ms()
        if self._saved_at_ms is None:
            self._saved_at_ms = now_ms
        behind = self._log.bounds.next_index - self.saved_at
        is_behind = behind > 0 or not self._is_settled
        if behind >= EVENTS_PER_SNAPSHOT or (is_behind and now_ms - self._saved_at_ms >= SNAPSHOT_EVERY_MS):
            self.save(whatever)

    def save(self, on_done: Callable[[Refused | None], None]) -> None:
        """Take one, and call on_done when it is durable; does nothing while another is on its way."""
        if self._is_saving:
            return
        self._is_saving = True
        index = self._log.bounds.next_index

        def saved(outcome: Refused | None) -> None:
            self._is_saving = False
            if outcome is None:
                self._is_settled = index == self.saved_at
                if self.saved_at is not None:
                    self._forget_expired(self.saved_at)
                self.saved_at = index
                self._saved_at_ms = self._clock.monotonic_ms()
            on_done(outcome)

        self._log.save_snapshot(encode_snapshot(self._sequences), saved)

    def _forget_expired(self, covered: int) -> None:
        """Both snapshots were taken at this index or behind it: who was expired before is in neither."""
        gone = [note for note in producer_notes(self._log.notes.values()) if note.body == EXPIRED]
        with suppress(StoreError):  # the next snapshot forgets them
            for note in gone:
                if note.index < covered:
                    self._log.note(note.key, None, now_ms=self._stamps.stamp_ms(), on_done=whatever)
