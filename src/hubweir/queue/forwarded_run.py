"""The records of a transfer, as one chain of batches: what the source of a forward hands over.

They go as they lie in the log where that says enough, which is the cheap way: nothing is done per message. Otherwise
each is written anew (forwarded_record.py).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left

from hubweir.kernels import read_fields
from hubweir.kernels.contract import FORWARDED_BIT, MESSAGE_WIDTH, Q_ID_NUMBER, Q_RECORD
from hubweir.kernels.queue_contract import I_ID, INCOMING_WIDTH
from hubweir.kernels.stored_batch import BATCH_RECORDS_LIMIT
from hubweir.messaging_store.record import begin_batch, headers_of, seal_batch
from hubweir.queue.forwarded_record import SOURCE_NAME, forwarded_record
from hubweir.queue.given_id import given_id
from hubweir.queue.upkeep import chain_of, record_at


def forwarded_run(
    rows: array[int], data: bytearray, *, id_prefix: str, source: bytes | None, has_changes: bool
) -> bytearray:
    """One chain of the messages of these rows, each with an id.

    source: where they were dead-lettered; None: not here. has_changes: a receiver changed properties of some, so their
    records as they were lie between the others.
    """
    starts, numbers = rows[Q_RECORD::MESSAGE_WIDTH], rows[Q_ID_NUMBER::MESSAGE_WIDTH]
    may_stay = source is None and (SOURCE_NAME not in data or min(numbers) >> FORWARDED_BIT & 1)
    if may_stay and not has_changes and sorted(starts) == starts.tolist():
        run = _run_as_it_is(data, starts)
        if _all_have_ids(run):
            return run
    records = [
        forwarded_record(
            record_at(data, start),
            given_id(id_prefix, number).encode(),
            source,
            was_forwarded=bool(number >> FORWARDED_BIT & 1),
        )
        for start, number in zip(starts, numbers, strict=True)
    ]
    return chain_of((), records)


def _run_as_it_is(data: bytearray, starts: array[int]) -> bytearray:
    """Records that lie back to back, as one chain of batches."""
    run, at = bytearray(), 0
    ends = starts[1:] + array("q", [len(data)])
    while at < len(starts):
        begin = starts[at]
        behind = max(at + 1, bisect_left(ends, begin + BATCH_RECORDS_LIMIT + 1))
        start = begin_batch(run)
        run += memoryview(data)[begin : ends[behind - 1]]
        seal_batch(run, start, count=behind - at, continues=behind < len(starts))
        at = behind
    return run


def _all_have_ids(run: bytearray) -> bool:
    for header in headers_of(run):
        fields = array("q", bytes(8 * INCOMING_WIDTH * header.count))
        read_fields(run, header.position, fields)
        if min(fields[I_ID::INCOMING_WIDTH]) < 0:
            return False
    return True
