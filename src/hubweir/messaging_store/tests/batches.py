"""Sealed batches of event records, made and completed with round numbers: for tests of what stands in a batch."""

from __future__ import annotations

import struct

from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE, RECORD_STRUCT
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.record import Producer, begin_batch, seal_batch


def event(message: bytes) -> bytes:
    """One event record, without positions of sections."""
    return struct.pack(RECORD_STRUCT, RECORD_HEADER_SIZE + len(message), 0, 0, 0, 0, 0, 0, 0) + message


def sealed(*messages: bytes, name: bytes = b"", continues: bool = False, producer: Producer | None = None) -> bytearray:
    """A run of one sealed batch with these messages."""
    run = bytearray()
    start = begin_batch(run, name=name, producer=producer)
    for message in messages:
        run += event(message)
    seal_batch(run, start, count=len(messages), continues=continues)
    return run


def complete(run: bytearray, first_index: int = 10, first_offset: int = 1000) -> LogEnd:
    """Complete run in place, as the owner of a log with nonce 7 and writer epoch 3 at time 5; from number 12 on."""
    return complete_run(
        run, LogEnd(first_index, first_offset, number=12), nonce=7, enqueued_time_ms=5, durable_upto=9, writer_epoch=3
    )
