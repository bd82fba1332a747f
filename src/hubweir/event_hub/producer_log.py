"""The idempotent producers of a partition as its log and its snapshots have them.

A snapshot: one byte of version, then a row for each producer. An EXPIRED_PRODUCERS control batch: ids back to back.

| row field | bytes | meaning |
|-----------|------:|---------|
| id        |     8 | signed |
| epoch     |     4 | of its last batch |
| last      |     8 | number of its last event |
| time      |     8 | signed, ms since 1970: enqueued time of its last batch |

A log that has no snapshot never had a producer: the first one is answered only when an empty snapshot is durable. So a
start replays nothing for the other logs. Replay applies what it meets in the order of the log, unjudged: what is in
the log was judged when it was appended. Meeting again what the snapshot has already changes nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.event_hub.producer_sequence import Kept, ProducerSequences
from hubweir.kernels.stored_batch import KIND_CONTROL, KIND_EVENTS
from hubweir.messaging_store.log import Run
from hubweir.messaging_store.record import CONTROL_EXPIRED_PRODUCERS, control_of, headers_of, producer_of

VERSION = 1
_ROW = struct.Struct(">qIQq")
_ID = struct.Struct(">q")


def encode_snapshot(sequences: ProducerSequences) -> bytes:
    """The state as of the visible end of the log. Not inside a callback of an append: others may not be called yet."""
    rows = (_ROW.pack(kept.producer_id, kept.epoch, kept.last, kept.time_ms) for kept in sequences.kept())
    return bytes((VERSION,)) + b"".join(rows)


def restore_snapshot(sequences: ProducerSequences, state: bytes) -> None:
    """Raises NewerFormat, or CorruptStore when it is no such snapshot."""
    if not state or state[0] != VERSION:
        raise NewerFormat(f"the snapshot of producers has format {state[:1].hex()}; this version reads {VERSION}")
    if (len(state) - 1) % _ROW.size:
        raise CorruptStore(f"the snapshot of producers has {len(state)} bytes, which are no whole rows")
    for row in _ROW.iter_unpack(state[1:]):
        sequences.restore(Kept(*row))


def replay(sequences: ProducerSequences, runs: Iterable[Run], from_index: int) -> None:
    """Apply what the log says from an index on. Raises what reading the log raises; what came before it is applied."""
    for run in runs:
        for header in headers_of(run.data):
            if header.kind == KIND_CONTROL:
                control, body = control_of(run.data, header)
                if control == CONTROL_EXPIRED_PRODUCERS:
                    sequences.drop(producer_id for (producer_id,) in _ID.iter_unpack(body))
            elif header.kind == KIND_EVENTS and header.first_index >= from_index:
                producer = producer_of(run.data, header)
                if producer is not None:
                    last = producer.first_number + header.count - 1
                    sequences.restore(Kept(producer.producer_id, producer.epoch, last, header.enqueued_time_ms))


def expired_body(producer_ids: Iterable[int]) -> bytes:
    """What an EXPIRED_PRODUCERS control batch says."""
    return b"".join(map(_ID.pack, producer_ids))
