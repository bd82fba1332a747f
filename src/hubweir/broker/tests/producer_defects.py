"""Defects of idempotent producers, to be planted: the models that look for violations must find each of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from hubweir.event_hub import producer_loading
from hubweir.event_hub.producer_log import ProducerReplay
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import AttachedProducer
from hubweir.messaging_store.log import Note
from hubweir.messaging_store.segment_engine.segment_log import SegmentLog


def no_fences(patch: pytest.MonkeyPatch) -> None:
    """A take-over is durable from the first batch that is stored, not from its attach."""
    opened = ProducerSequences.open

    def unfenced(self: ProducerSequences, opening: int, **given: Any) -> AttachedProducer:
        return replace(opened(self, opening, **given), needs_fence=False)

    patch.setattr(ProducerSequences, "open", unfenced)


def fences_answered_before_they_are_durable(patch: pytest.MonkeyPatch) -> None:
    note = SegmentLog.note

    def early(self: SegmentLog, key: bytes, body: bytes | None, *, now_ms: int, on_done: Any) -> None:
        note(self, key, body, now_ms=now_ms, on_done=lambda outcome: None)
        on_done(Note(key, body or b"", 0, 0, now_ms))

    patch.setattr(SegmentLog, "note", early)


def fences_at_the_snapshots_index_taken_for_those_before_it(patch: pytest.MonkeyPatch) -> None:
    class Later(ProducerReplay):
        def __init__(self, sequences: ProducerSequences, notes: Iterable[Note], from_index: int) -> None:
            super().__init__(sequences, [note for note in notes if note.index > from_index], from_index)

    patch.setattr(producer_loading, "ProducerReplay", Later)
