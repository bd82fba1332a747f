"""Control batches that a new segment takes over from the one that it supersedes.

A control batch takes no index. So a segment may hold some and no record yet; the next segment then has the same first
index, and supersedes it with all that is in it. What its control batches say (a producer is fenced) was promised, so
the new segment begins with them, byte for byte, and is durable with them or not there at all. Idle marks are left out:
they vouch for what is in their own file. So are fences that a later one of the same producer follows: they say nothing
that it does not, and a partition that is opened at every start and gets no event would grow with each. What is carried
over is then at most a fence for each producer, and what says who was expired. Behind records nothing is carried over:
there the old segment stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.env import Buffer, Files
from hubweir.kernels.contract import B_COUNT, B_KIND, B_LENGTH, B_POSITION, BATCH_WIDTH
from hubweir.kernels.stored_batch import KIND_CONTROL
from hubweir.messaging_store.batch_scan import Damage, scan
from hubweir.messaging_store.control_batch import (
    CONTROL_IDLE_MARK,
    CONTROL_PRODUCER_FENCE,
    CONTROL_SKIPPED,
    FENCED_ID_SIZE,
    control_of,
)
from hubweir.messaging_store.record import read_header
from hubweir.messaging_store.segment_files import Segment


def superseded_whole(segments: Sequence[Segment], first_index: int) -> Segment | None:
    """The newest segment, when one that starts at this index takes its place; else None."""
    return segments[-1] if segments and segments[-1].first_index == first_index else None


def carried_over(files: Files, segment: Segment | None, *, end_position: int | None = None) -> list[Buffer]:
    """What of a segment's control batches before its first record is carried over, in order. Blocking; raises OSError.

    end_position: only those before it in the file.
    """
    if segment is None:
        return []
    carried: dict[bytes | int, Buffer] = {}  # a fence by its producer's id, anything else by its place in the file
    file = files.open_to_read(segment.path)
    try:
        end = segment.end_position if end_position is None else end_position
        for piece in scan(file, segment.start, end, segment.header.nonce):
            if isinstance(piece, Damage):
                return list(carried.values())
            rows = piece.rows
            for at in range(0, piece.count * BATCH_WIDTH, BATCH_WIDTH):
                if rows[at + B_COUNT] or rows[at + B_KIND] != KIND_CONTROL:
                    return list(carried.values())
                start = rows[at + B_POSITION]
                control, body = control_of(piece.data, read_header(piece.data, start))
                if control in (CONTROL_IDLE_MARK, CONTROL_SKIPPED):
                    continue
                key = body[:FENCED_ID_SIZE] if control == CONTROL_PRODUCER_FENCE else piece.start.position + start
                carried.pop(key, None)  # the newest stands where it stood: what came between holds for it too
                carried[key] = bytes(piece.data[start : start + rows[at + B_LENGTH]])
    finally:
        file.close()
    return list(carried.values())
