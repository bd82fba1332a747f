"""Finds an event in a run. One look per batch header, once per read."""

from __future__ import annotations

import struct

from hubweir.kernels import find_record
from hubweir.kernels.contract import RunCursor
from hubweir.kernels.stored_batch import AT_COUNT, AT_FIRST_INDEX, AT_KIND, AT_LENGTH, KIND_EVENTS

_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")


def cursor_at(run: bytes | memoryview, sequence_number: int) -> RunCursor:
    """The cursor of this event in run: whole batches from the log, checked by their owner.

    An event in front of the run's first gives the run's first, one behind its last the run's end.
    """
    at = 0
    while at < len(run):
        if run[at + AT_KIND] == KIND_EVENTS:
            first = _U64.unpack_from(run, at + AT_FIRST_INDEX)[0]
            count = _U32.unpack_from(run, at + AT_COUNT)[0]
            if sequence_number <= first:
                return RunCursor(at, 0, 0)
            if sequence_number < first + count:
                ordinal = sequence_number - first
                return RunCursor(at, find_record(run, at, ordinal), ordinal)
        at += _U32.unpack_from(run, at + AT_LENGTH)[0]
    return RunCursor(len(run), 0, 0)


def sequence_number_at(run: bytes | memoryview, cursor: RunCursor) -> int | None:
    """The sequence number of the event at a cursor; None when none lies there or behind."""
    at, ordinal = cursor.batch_at, cursor.ordinal
    while at < len(run):
        if run[at + AT_KIND] == KIND_EVENTS:
            first: int = _U64.unpack_from(run, at + AT_FIRST_INDEX)[0]
            return first + ordinal
        at, ordinal = at + _U32.unpack_from(run, at + AT_LENGTH)[0], 0
    return None
