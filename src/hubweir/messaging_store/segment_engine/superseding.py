"""A new segment that takes the place of one without records, as a whole: which one, and what it begins with.

A control batch takes no index. So a segment may hold some and no record yet; the next segment then has the same first
index and supersedes it. It keeps the older one's first batch number, which says where the segment before both ends. The
marks in between say nothing about other files, so they are left out, and their numbers are missing.

A start takes damage for a torn tail when it begins at the number from which on nothing is vouched for (recovery.py).
So the new segment begins with a mark of the number right below the one that it goes on with: else a torn first write
behind the missing numbers would look like the loss of batches that were vouched for.
"""

from __future__ import annotations

from collections.abc import Sequence

from hubweir.env import Buffer
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, IDLE, pack_control
from hubweir.messaging_store.disk.segment import SegmentHeader
from hubweir.messaging_store.disk.segment_files import Segment


def superseded_whole(segments: Sequence[Segment], first_index: int) -> Segment | None:
    """The newest segment, when one that starts at this index takes its place; else None."""
    return segments[-1] if segments and segments[-1].first_index == first_index else None


def begins_with(header: SegmentHeader, *, number: int, last_time_ms: int) -> list[Buffer]:
    """The content of a new segment, before the batch with this number, which it goes on with.

    last_time_ms: no batch in the log has a later enqueued time.
    """
    if number == header.first_number:
        return []
    # Never a mark of a clean close, which would vouch for the end of what follows.
    mark = pack_control(CONTROL_IDLE_MARK, IDLE)
    complete_run(
        mark, nonce=header.nonce, first_index=header.first_index, first_offset=header.first_offset,
        enqueued_time_ms=max(last_time_ms, 0), first_number=number - 1, durable_upto=number - 1,
        writer_epoch=header.writer_epoch,
    )  # fmt: skip
    return [mark]
