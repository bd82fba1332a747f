"""The idempotent producers of a partition as its log and its snapshots have them.

A snapshot: one byte of version, then a row for each producer. An EXPIRED_PRODUCERS control batch: ids back to back. A
PRODUCER_FENCE control batch: id, epoch and round, as in a row.

| row field | bytes | meaning |
|-----------|------:|---------|
| id        |     8 | signed |
| epoch     |     4 | of its last batch or fence |
| last      |     8 | number of its last event in this round; 0 for none |
| time      |     8 | signed, ms since 1970: enqueued time of its last batch or fence |
| round     |     8 | version 2: one more than its sink says; 0 for a producer without rounds |
| digest    |     8 | version 2: as it came with the last event |

Version 1, without the last two fields, is written while no producer has a round: older versions read it.

A log that has no snapshot never had a producer: the first one is answered only when an empty snapshot is durable. So a
start replays nothing for the other logs. Replay applies what it meets in the order of the log, unjudged: what is in
the log was judged when it was appended. Meeting again what the snapshot has already changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.event_hub.producer_sequence import ProducerSequences
from hubweir.event_hub.producer_state import Kept
from hubweir.kernels.stored_batch import KIND_CONTROL, KIND_EVENTS
from hubweir.messaging_store.control_batch import CONTROL_EXPIRED_PRODUCERS, CONTROL_PRODUCER_FENCE, control_of
from hubweir.messaging_store.log import Run
from hubweir.messaging_store.record import headers_of, producer_of

VERSION = 2
_ROWS = {1: struct.Struct(">qIQq"), 2: struct.Struct(">qIQqQQ")}
_FENCE = struct.Struct(">qIQ")
_ID = struct.Struct(">q")


def encode_snapshot(sequences: ProducerSequences) -> bytes:
    """The state as of the visible end of the log. Not inside a callback of an append: others may not be called yet."""
    all_kept = sequences.kept()
    if any(kept.round for kept in all_kept):
        version, rows = 2, [
            _ROWS[2].pack(kept.producer_id, kept.epoch, kept.last, kept.time_ms, kept.round, kept.digest)
            for kept in all_kept
        ]  # fmt: skip
    else:
        version, rows = 1, [
            _ROWS[1].pack(kept.producer_id, kept.epoch, kept.last, kept.time_ms) for kept in all_kept
        ]  # fmt: skip
    return bytes((version,)) + b"".join(rows)


def restore_snapshot(sequences: ProducerSequences, state: bytes) -> None:
    """Raises NewerFormat, or CorruptStore when it is no such snapshot."""
    row_of = _ROWS.get(state[0]) if state else None
    if row_of is None:
        raise NewerFormat(f"the snapshot of producers has format {state[:1].hex()}; this version reads up to {VERSION}")
    if (len(state) - 1) % row_of.size:
        raise CorruptStore(f"the snapshot of producers has {len(state)} bytes, which are no whole rows")
    for row in row_of.iter_unpack(state[1:]):
        sequences.restore(Kept(*row))


def replay(sequences: ProducerSequences, runs: Iterable[Run], from_index: int) -> None:
    """Apply what the log says from an index on. Raises what reading the log raises; what came before it is applied.

    CorruptStore for a fence that is none: then producers are not known, as behind damage.
    """
    for run in runs:
        for header in headers_of(run.data):
            if header.kind == KIND_CONTROL:
                control, body = control_of(run.data, header)
                if control == CONTROL_EXPIRED_PRODUCERS:
                    sequences.drop(producer_id for (producer_id,) in _ID.iter_unpack(body))
                elif control == CONTROL_PRODUCER_FENCE:
                    if len(body) != _FENCE.size:
                        raise CorruptStore(f"a fence of a producer has {len(body)} bytes, not {_FENCE.size}")
                    producer_id, epoch, number = _FENCE.unpack(body)
                    sequences.restore_fence(producer_id, number, epoch, header.enqueued_time_ms)
            elif header.kind == KIND_EVENTS and header.first_index >= from_index:
                producer = producer_of(run.data, header)
                if producer is not None:
                    last = producer.first_number + header.count - 1
                    sequences.restore(
                        Kept(
                            producer.producer_id,
                            producer.epoch,
                            last,
                            header.enqueued_time_ms,
                            producer.round,
                            producer.digest,
                        )  # fmt: skip
                    )


def fence_body(producer_id: int, epoch: int, round: int) -> bytes:
    """What a PRODUCER_FENCE control batch says."""
    return _FENCE.pack(producer_id, epoch, round)


def expired_body(producer_ids: Iterable[int]) -> bytes:
    """What an EXPIRED_PRODUCERS control batch says."""
    return b"".join(map(_ID.pack, producer_ids))
