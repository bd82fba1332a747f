"""Stored batches from the owner's side: begun and sealed, read and walked.

The bytes are drawn once, in kernels/stored_batch.py. A batch's life has two halves: the *made* half (begin_batch,
seal_batch; the ingest kernel appends the records in between) needs no log; the *completed* half is filled in by the
log's owner as it appends (completion.py). Two kinds of batch have a file of their own: operations.py and
control_batch.py. Nothing here walks event records; a batch costs a few microseconds whatever it holds.

After a crash: a batch without a sound header and payload CRC is no batch; see recovery.py.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hubweir.kernels import crc32c
from hubweir.kernels.stored_batch import (
    CRC_SEED,
    FLAG_CONTINUES,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    HEADER_SIZE,
    KIND_EVENTS,
    MADE_STRUCT,
    MAGIC,
    PRODUCER_SIZE,
    PRODUCER_STRUCT,
    VERSION,
    BatchHeader,
    read_header,
)

_MADE = struct.Struct(MADE_STRUCT)
_PRODUCER = struct.Struct(PRODUCER_STRUCT)


@dataclass(frozen=True, slots=True)
class Producer:
    """Who numbered the events of a batch, and from which number on (stored_batch.py, producer block)."""

    producer_id: int
    epoch: int
    first_number: int
    round: int = 0
    digest: int = 0


def begin_batch(
    out: bytearray, *, name: bytes = b"", name_is_publisher: bool = False, producer: Producer | None = None
) -> int:
    """Append an unsealed header, name block and producer block to out; return where the batch starts.

    name: the partition key (UTF-8), or the publisher's name. The caller appends the records, then calls seal_batch.
    """
    start = len(out)
    flags = 0 if not name else FLAG_NAME_IS_PUBLISHER if name_is_publisher else FLAG_NAME_IS_KEY
    producer_length = PRODUCER_SIZE if producer else 0
    out += _MADE.pack(MAGIC, VERSION, KIND_EVENTS, flags, 0, 0, len(name), producer_length, 0)
    out += bytes(HEADER_SIZE - _MADE.size)
    out += name
    if producer:
        numbers = (producer.producer_id, producer.epoch, 0, producer.first_number, producer.round, producer.digest)
        out += _PRODUCER.pack(*numbers)
    return start


def seal_batch(out: bytearray, start: int, *, count: int, kind: int = KIND_EVENTS, continues: bool = False) -> None:
    """Make the batch that runs from start to the end of out whole: length, count, kind, flags, payload CRC."""
    magic, version, _, flags, _, _, name_length, producer_length, _ = _MADE.unpack_from(out, start)
    flags = flags | FLAG_CONTINUES if continues else flags & ~FLAG_CONTINUES
    with memoryview(out) as view, view[start + HEADER_SIZE :] as payload:
        payload_crc = crc32c(payload, CRC_SEED)
    length = len(out) - start
    _MADE.pack_into(
        out, start, magic, version, kind, flags, length, count, name_length, producer_length, payload_crc
    )  # fmt: skip


def chain_batches(run: bytearray) -> None:
    """Make all batches of a run one chain, so that all are stored or none; the run is sealed, and not completed yet."""
    starts = []
    at = 0
    while at < len(run):
        starts.append(at)
        at += _MADE.unpack_from(run, at)[4]
    for start in starts:
        magic, version, kind, flags, *rest = _MADE.unpack_from(run, start)
        flags = flags & ~FLAG_CONTINUES if start == starts[-1] else flags | FLAG_CONTINUES
        _MADE.pack_into(run, start, magic, version, kind, flags, *rest)


def headers_of(run: bytes | bytearray | memoryview) -> Iterator[BatchHeader]:
    """The header of every batch of a run, in order."""
    at = 0
    while at < len(run):
        header = read_header(run, at)
        yield header
        at = header.end


def name_of(run: bytes | bytearray | memoryview, header: BatchHeader) -> bytes:
    """The name block of a batch: a partition key or a publisher, as header.flags says; b"" when there is none."""
    at = header.name_at
    return bytes(run[at : at + header.name_length])


def producer_of(run: bytes | bytearray | memoryview, header: BatchHeader) -> Producer | None:
    """The producer block of a batch, if it has one."""
    if header.producer_length != PRODUCER_SIZE:
        return None
    at = header.name_at + header.name_length
    producer_id, epoch, _, first_number, round_number, digest = _PRODUCER.unpack_from(run, at)
    return Producer(producer_id, epoch, first_number, round_number, digest)
