"""record.py: what is made, completed and read back is the same; broken runs are refused before they are stored."""

from __future__ import annotations

import struct

import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels import crc32c
from hubweir.kernels.stored_batch import (
    ABSENT,
    AT_HEADER_CRC,
    BATCH_RECORDS_LIMIT,
    CRC_SEED,
    FLAG_NAME_IS_KEY,
    FLAG_NAME_IS_PUBLISHER,
    HEADER_SIZE,
    KIND_CONTROL,
    KIND_EVENTS,
    KIND_OPERATIONS,
    RECORD_HEADER_SIZE,
    RECORD_STRUCT,
)
from hubweir.messaging_store.record import (
    CONTROL_IDLE_MARK,
    CONTROL_SKIPPED,
    Producer,
    begin_batch,
    complete_run,
    control_of,
    end_of_batch,
    headers_of,
    name_of,
    operations_of,
    pack_control,
    pack_operations,
    pack_skipped,
    producer_of,
    read_header,
    seal_batch,
)

# One stored batch, byte for byte. It changes only with the format's version; then a second one is added.
GOLDEN = (
    "6857620101010002000000ce00000002000000040000002892cd1aa6000000051112131415161718000000000000002a0000"
    "000000000fa00000018bcfe5680000000000000000280000000048de32b16b65792dfffffffffffffffd0000000200000000"
    "0000000000000007000000000000000300000000000000090000002800000000ffffffffffffffffffffffffffffffff0000"
    "0000ffffffff005375a0036f6e650000002a00000000ffffffffffffffffffffffffffffffff00000000ffffffff005375a0"
    "057468726565"
)


def event(message: bytes) -> bytes:
    return struct.pack(RECORD_STRUCT, 32 + len(message), 0, 0, 0, 0, 0, 0, 0) + message


def sealed(*messages: bytes, name: bytes = b"", continues: bool = False, producer: Producer | None = None) -> bytearray:
    run = bytearray()
    start = begin_batch(run, name=name, producer=producer)
    for message in messages:
        run += event(message)
    seal_batch(run, start, count=len(messages), continues=continues)
    return run


def complete(run: bytearray, first_index: int = 10, first_offset: int = 1000):  # type: ignore[no-untyped-def]
    return complete_run(
        run, nonce=7, first_index=first_index, first_offset=first_offset, enqueued_time_ms=5, durable_upto=9,
        writer_epoch=3,
    )  # fmt: skip


def test_a_completed_batch_says_who_where_and_when() -> None:
    producer = Producer(-3, 2, 7, 3, 9)
    run = sealed(b"one", b"three", name=b"key", producer=producer)
    end = complete(run)
    header = read_header(run, 0)
    assert (header.kind, header.flags, header.count) == (KIND_EVENTS, FLAG_NAME_IS_KEY, 2)
    assert (header.first_index, header.first_offset, header.enqueued_time_ms) == (10, 1000, 5)
    assert (header.nonce, header.durable_upto, header.writer_epoch) == (7, 9, 3)
    assert header.end == len(run) and header.record_bytes == 32 + 3 + 32 + 5
    assert name_of(run, header) == b"key" and producer_of(run, header) == producer
    assert (end.next_index, end.next_offset, end.last_record_offset) == (12, 1072, 1035)
    assert end_of_batch(run, header) == (12, 1072)


def test_both_checksums_cover_what_they_say() -> None:
    run = sealed(b"payload", name=b"k")
    complete(run)
    assert struct.unpack_from(">I", run, AT_HEADER_CRC)[0] == crc32c(bytes(run[:AT_HEADER_CRC]), CRC_SEED)
    assert read_header(run).payload_crc == crc32c(bytes(run[HEADER_SIZE:]), CRC_SEED)


def test_batches_of_a_run_follow_each_other_without_a_gap() -> None:
    run = sealed(b"a", b"b") + pack_control(CONTROL_IDLE_MARK, b"\x00") + sealed(b"c")
    end = complete(run)
    first, mark, second = headers_of(run)
    assert (mark.kind, mark.first_index, mark.first_offset) == (KIND_CONTROL, 12, 1066)
    assert (second.first_index, second.first_offset) == (12, 1066)
    assert end_of_batch(run, mark) == (12, 1066) and end_of_batch(run, first) == (12, 1066)
    assert (end.next_index, end.last_record_offset) == (13, 1066)


def test_a_publisher_is_told_apart_from_a_key() -> None:
    run = bytearray()
    start = begin_batch(run, name=b"meter-1", name_is_publisher=True)
    run += event(b"x")
    seal_batch(run, start, count=1)
    assert read_header(run).flags == FLAG_NAME_IS_PUBLISHER


def test_skipped_numbers_move_the_next_index_and_offset() -> None:
    run = pack_skipped(500, 9000) + sealed(b"x")
    end = complete(run)
    skip, batch = headers_of(run)
    assert control_of(run, skip) == (CONTROL_SKIPPED, struct.pack(">QQ", 500, 9000))
    assert (skip.first_index, end_of_batch(run, skip)) == (10, (500, 9000))
    assert (batch.first_index, batch.first_offset, end.next_index) == (500, 9000, 501)


def test_a_run_of_control_batches_has_no_last_record() -> None:
    assert complete(pack_control(CONTROL_IDLE_MARK, b"\x00")).last_record_offset is None


@pytest.mark.parametrize("cut", range(1, len(sealed(b"abc", name=b"k"))))
def test_a_run_that_is_cut_anywhere_is_refused(cut: int) -> None:
    with pytest.raises(KernelRefusal):
        complete(sealed(b"abc", name=b"k")[:cut])


def test_a_run_that_ends_inside_a_chain_is_refused() -> None:
    with pytest.raises(KernelRefusal, match="chain"):
        complete(sealed(b"a", continues=True))
    complete(sealed(b"a", continues=True) + sealed(b"b"))


def test_a_count_that_the_records_do_not_have_is_refused() -> None:
    run = bytearray()
    start = begin_batch(run)
    run += event(b"only one")
    seal_batch(run, start, count=2)
    with pytest.raises(KernelRefusal):
        complete(run)


def test_operations_come_back_with_their_indexes() -> None:
    operations = [b"create", b"", b"delete"]
    run = pack_operations(operations)
    complete(run, first_index=4)
    assert read_header(run).kind == KIND_OPERATIONS
    assert [(index, bytes(view)) for index, view in operations_of(run)] == list(enumerate(operations, 4))


def test_many_operations_are_a_chain_of_batches_within_the_limit() -> None:
    operations = [bytes([number]) * 30_000 for number in range(5)]
    run = pack_operations(operations)
    complete(run)
    batches = list(headers_of(run))
    assert [batch.continues for batch in batches] == [True, True, False]
    assert all(batch.record_bytes <= BATCH_RECORDS_LIMIT for batch in batches)
    assert [bytes(view) for _, view in operations_of(run)] == operations


def test_no_operations_are_an_empty_run() -> None:
    assert pack_operations([]) == b""


def test_the_format_has_not_changed() -> None:
    run = bytearray()
    start = begin_batch(run, name=b"key-", producer=Producer(-3, 2, 7, 3, 9))
    for message in (b"\x00\x53\x75\xa0\x03one", b"\x00\x53\x75\xa0\x05three"):
        positions = (ABSENT, ABSENT, ABSENT, ABSENT, 0, ABSENT)
        run += struct.pack(RECORD_STRUCT, RECORD_HEADER_SIZE + len(message), 0, *positions) + message
    seal_batch(run, start, count=2)
    complete_run(
        run, nonce=0x1112131415161718, first_index=42, first_offset=4000, enqueued_time_ms=1_700_000_000_000,
        durable_upto=40, writer_epoch=5,
    )  # fmt: skip
    assert run.hex() == GOLDEN
    golden = bytes.fromhex(GOLDEN)
    header = read_header(golden)
    assert (header.first_index, header.first_offset, header.writer_epoch, header.durable_upto) == (42, 4000, 5, 40)
    assert producer_of(golden, header) == Producer(-3, 2, 7, 3, 9) and name_of(golden, header) == b"key-"
