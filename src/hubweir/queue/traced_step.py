"""Spans of what is done with messages inside the service (docs/traces.md): whoever does it says when.

Who makes spans of it is handed in, and None where nobody does: then no message is looked at.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol


class Step(Enum):
    """What is done; the value begins the name of the span."""

    DISCHARGE = "discharge"
    FORWARD = "forward"
    COPY = "copy"


class Trace(Protocol):
    """What happens to one run that belongs to traces. Told once how it ended; one that is never told is no span."""

    def ended(self, refused: str = "") -> None:
        """It is over now. refused: why, in a word that is the same each time, such as a condition."""


class StepTracer(Protocol):
    """Makes spans of what is sampled."""

    def begins(self, step: Step, entity: str, run: bytes | bytearray | memoryview) -> Trace | None:
        """Something begins to be done with all messages of a run; None: nothing of it is sampled. run: not kept."""
