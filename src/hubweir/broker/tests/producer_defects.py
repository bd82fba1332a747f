"""Defects of idempotent producers, to be planted: the models that look for violations must find each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import Opened
from hubweir.messaging_store.log import Appended
from hubweir.messaging_store.segment_log import SegmentLog


def no_fences(patch: pytest.MonkeyPatch) -> None:
    """A take-over is durable from the first batch that is stored, not from its attach."""
    opened = ProducerSequences.open

    def unfenced(self: ProducerSequences, opening: int, **given: Any) -> Opened:
        return replace(opened(self, opening, **given), needs_fence=False)

    patch.setattr(ProducerSequences, "open", unfenced)


def fences_answered_before_they_are_durable(patch: pytest.MonkeyPatch) -> None:
    append = SegmentLog.append_control

    def early(self: SegmentLog, control: int, body: bytes, *, now_ms: int, on_done: Any = None) -> None:
        append(self, control, body, now_ms=now_ms)
        if on_done is not None:
            on_done(Appended(0, 0, 0, 0, now_ms))

    patch.setattr(SegmentLog, "append_control", early)
