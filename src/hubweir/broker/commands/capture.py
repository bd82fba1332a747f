"""The progress of a partition's capture. Capture is switched and changed with its partition (partition.py)."""

from __future__ import annotations

from hubweir.broker.commands.command import Answer, LogCommand, answer, command


@answer(80)
class CaptureState(Answer, frozen=True):
    """How far capture of a partition is. next_sequence_number: the first event in no finished file; -1: not captured.

    behind: what the log holds from there on. last_file, failure: empty when there is none.
    """

    log_id: str
    is_running: bool
    next_sequence_number: int
    behind_events: int
    behind_bytes: int
    files: int
    uncaptured_events: int
    last_file: str
    failure: str


@command(20, CaptureState)
class AskCaptureState(LogCommand, frozen=True):
    """Answered CaptureState, of a partition that is not captured, too."""
