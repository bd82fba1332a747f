"""record.py: what is made is what is read back; the bytes on disk are those of the format."""

from __future__ import annotations

import struct

from hubweir.kernels import crc32c
from hubweir.kernels.stored_batch import (
    ABSENT,
    CRC_SEED,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    HEADER_SIZE,
    KIND_EVENTS,
    RECORD_HEADER_SIZE,
    RECORD_STRUCT,
    read_header,
)
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.operations import pack_operations
from hubweir.messaging_store.record import (
    Producer,
    begin_batch,
    chain_batches,
    headers_of,
    name_of,
    producer_of,
    seal_batch,
)
from hubweir.messaging_store.tests.batches import complete, event, sealed

# One stored batch, byte for byte. It changes only with the format's version; then a second one is added.
GOLDEN = (
    "6857620101010002000000ce00000002000000040000002892cd1aa6000000051112131415161718000000000000002a0000"
    "000000000fa00000018bcfe56800000000000000002c000000046f011b1e6b65792dfffffffffffffffd0000000200000000"
    "0000000000000007000000000000000300000000000000090000002800000000ffffffffffffffffffffffffffffffff0000"
    "0000ffffffff005375a0036f6e650000002a00000000ffffffffffffffffffffffffffffffff00000000ffffffff005375a0"
    "057468726565"
)


def test_a_sealed_batch_says_what_it_holds_and_who_sent_it() -> None:
    producer = Producer(-3, 2, 7, 3, 9)
    run = sealed(b"one", b"three", name=b"key", producer=producer)
    header = read_header(run, 0)
    assert (header.kind, header.flags, header.count) == (KIND_EVENTS, FLAG_NAME_IS_KEY, 2)
    assert header.end == len(run) and header.record_bytes == 32 + 3 + 32 + 5
    assert name_of(run, header) == b"key" and producer_of(run, header) == producer


def test_a_batch_without_name_and_producer_has_neither_block() -> None:
    run = sealed(b"x")
    header = read_header(run)
    assert (header.flags, header.records_at) == (0, HEADER_SIZE)
    assert name_of(run, header) == b"" and producer_of(run, header) is None


def test_the_payload_checksum_covers_name_producer_and_records() -> None:
    run = sealed(b"payload", name=b"k", producer=Producer(1, 1, 1))
    assert read_header(run).payload_crc == crc32c(bytes(run[HEADER_SIZE:]), CRC_SEED)


def test_a_batch_is_sealed_as_part_of_a_chain_or_not() -> None:
    run = sealed(b"a", continues=True) + sealed(b"b")
    assert [header.continues for header in headers_of(run)] == [True, False]
    seal_batch(run, run.index(sealed(b"b")), count=1, continues=True)
    assert [header.continues for header in headers_of(run)] == [True, True]


def test_a_publisher_is_told_apart_from_a_key() -> None:
    run = bytearray()
    start = begin_batch(run, name=b"meter-1", name_is_publisher=True)
    run += event(b"x")
    seal_batch(run, start, count=1)
    assert read_header(run).flags == FLAG_NAME_IS_PUBLISHER


def test_the_format_has_not_changed() -> None:
    run = bytearray()
    start = begin_batch(run, name=b"key-", producer=Producer(-3, 2, 7, 3, 9))
    for message in (b"\x00\x53\x75\xa0\x03one", b"\x00\x53\x75\xa0\x05three"):
        positions = (ABSENT, ABSENT, ABSENT, ABSENT, 0, ABSENT)
        run += struct.pack(RECORD_STRUCT, RECORD_HEADER_SIZE + len(message), 0, *positions) + message
    seal_batch(run, start, count=2)
    complete_run(
        run,
        LogEnd(42, 4000, number=44),
        nonce=0x1112131415161718,
        enqueued_time_ms=1_700_000_000_000,
        durable_upto=40,
        writer_epoch=5,
    )
    assert run.hex() == GOLDEN
    golden = bytes.fromhex(GOLDEN)
    header = read_header(golden)
    assert (header.first_index, header.first_offset, header.writer_epoch, header.durable_upto) == (42, 4000, 5, 40)
    assert producer_of(golden, header) == Producer(-3, 2, 7, 3, 9) and name_of(golden, header) == b"key-"


def test_batches_that_were_sealed_by_themselves_are_made_one_chain() -> None:
    run = sealed(b"a", b"b") + sealed(b"c") + pack_operations([b"d"])
    before = [header.payload_crc for header in headers_of(run)]
    chain_batches(run)
    assert [header.continues for header in headers_of(run)] == [True, True, False]
    chain_batches(run)
    assert [header.payload_crc for header in headers_of(run)] == before
    complete(run)
    empty = bytearray()
    chain_batches(empty)
    assert empty == b""
