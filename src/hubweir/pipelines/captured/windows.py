"""Windows of a capture on Spark, counted in the stream's offset, so that one without events is a micro-batch, too.

Spark begins a micro-batch when a source's offset has moved. An offset of capture has, beside the next sequence number
of every partition, `window`: how many windows there were. Each trigger moves it. A number that a checkpoint has is used
again when its batch is repeated, so a repeated window makes the same files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WINDOW = "window"


def window_of(offset: Mapping[str, Any]) -> int:
    """How many windows there were; 0 in an offset of any other source."""
    return int(offset.get(WINDOW, 0))


def without_window(offset: Mapping[str, Any]) -> dict[str, Any]:
    """The offset as the event hub's source knows it."""
    return {key: value for key, value in offset.items() if key != WINDOW}


def with_window(offset: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The offset behind so many windows; before the first one it is as it was."""
    return {**offset, WINDOW: count} if count else dict(offset)
