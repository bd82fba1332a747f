"""Stored batches are walked, checked against their checksums, and never read past their ends."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels.contract import (
    B_COUNT,
    B_FIRST_INDEX,
    B_FIRST_OFFSET,
    B_LENGTH,
    B_POSITION,
    B_RECORDS,
    BATCH_WIDTH,
    BATCHES_DAMAGED,
    BATCHES_NEWER,
    BATCHES_OK,
    BATCHES_PARTIAL,
    RECORD_WIDTH,
)
from hubweir.kernels.stored_batch import AT_COUNT, AT_HEADER_CRC, CRC_SEED, HEADER_SIZE
from hubweir.kernels.tests.legal_bytes import NONCE, crc32c, stored_batch, table


def record(message: bytes) -> bytes:
    """An event record with no section positions."""
    return struct.pack(">8I", 32 + len(message), 0, *[0xFFFFFFFF] * 6) + message


EVENTS = record(b"one") + record(b"") + record(b"three")
RUN = stored_batch(EVENTS, 3, name=b"key", producer=bytes(40), flags=2) + stored_batch(b"\x05", 0, kind=3)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc32c_gives_the_published_values(kernels: SimpleNamespace, data: bytes, value: int) -> None:
    # RFC 3720 appendix B.4, and the check value of the polynomial.
    assert kernels.crc32c(data) == value
    assert kernels.crc32c(memoryview(bytearray(data))) == value


def test_crc32c_goes_on_from_a_seed(kernels: SimpleNamespace) -> None:
    data = bytes(range(256)) * 3
    for cut in (0, 1, 7, 8, 9, 300, 768):
        assert kernels.crc32c(data[cut:], kernels.crc32c(data[:cut], CRC_SEED)) == crc32c(data, CRC_SEED)


def test_crc32c_is_the_same_with_and_without_the_instruction(compiled: SimpleNamespace) -> None:
    data = bytes(index * 7 & 0xFF for index in range(200))
    for start in range(9):
        for end in range(start, 200, 7):
            piece = data[start:end]
            assert compiled.crc32c_by_table(piece, 5) == compiled.crc32c(piece, 5) == crc32c(piece, 5)
    data *= 12
    for end in (767, 768, 769, 775, 1535, 1536, 1537, 2304, 2400):
        piece = data[1:end]
        assert compiled.crc32c_by_table(piece, 5) == compiled.crc32c(piece, 5) == crc32c(piece, 5)


def test_each_batch_gets_a_row(kernels: SimpleNamespace) -> None:
    rows = table(3, BATCH_WIDTH)
    assert kernels.scan_batches(RUN, 0, len(RUN), NONCE, rows) == (2, len(RUN), BATCHES_OK)
    assert rows[B_POSITION] == 0 and rows[B_LENGTH] == HEADER_SIZE + 43 + len(EVENTS) and rows[B_COUNT] == 3
    assert (rows[B_FIRST_INDEX], rows[B_FIRST_OFFSET], rows[B_RECORDS]) == (7, 1000, HEADER_SIZE + 43)
    assert rows[BATCH_WIDTH + B_POSITION] == rows[B_LENGTH]
    assert set(rows[2 * BATCH_WIDTH :]) == {77}


def test_a_full_table_ends_the_walk_where_it_can_go_on(kernels: SimpleNamespace) -> None:
    rows = table(1, BATCH_WIDTH)
    assert kernels.scan_batches(RUN, 0, len(RUN), NONCE, rows) == (1, rows[B_LENGTH], BATCHES_OK)
    assert kernels.scan_batches(RUN, rows[B_LENGTH], len(RUN), NONCE, rows) == (1, len(RUN), BATCHES_OK)


def test_a_batch_that_is_cut_off_anywhere_is_partial(kernels: SimpleNamespace) -> None:
    first = len(RUN) - HEADER_SIZE - 1
    for end in range(first + 1, len(RUN)):
        assert kernels.scan_batches(RUN, 0, end, NONCE, table(9, BATCH_WIDTH)) == (1, first, BATCHES_PARTIAL)


def test_no_flipped_bit_goes_unseen(kernels: SimpleNamespace) -> None:
    run = stored_batch(record(b"x"), 1)
    for position in range(len(run)):
        changed = bytearray(run)
        changed[position] ^= 1 << position % 8
        assert kernels.scan_batches(changed, 0, len(run), NONCE, table(1, BATCH_WIDTH)) == (0, 0, BATCHES_DAMAGED)


def test_zeros_and_the_batch_of_another_log_are_damaged(kernels: SimpleNamespace) -> None:
    rows = table(1, BATCH_WIDTH)
    for data, nonce in ((bytes(200), NONCE), (bytes(3), NONCE), (RUN, NONCE + 1)):
        assert kernels.scan_batches(data, 0, len(data), nonce, rows) == (0, 0, BATCHES_DAMAGED)


def test_a_sound_header_of_a_newer_version_is_told_apart(kernels: SimpleNamespace) -> None:
    newer = stored_batch(EVENTS, 3, version=2)
    assert kernels.scan_batches(newer, 0, len(newer), NONCE, table(1, BATCH_WIDTH)) == (0, 0, BATCHES_NEWER)
    damaged = newer[:5] + b"\x09" + newer[6:]
    assert kernels.scan_batches(damaged, 0, len(newer), NONCE, table(1, BATCH_WIDTH)) == (0, 0, BATCHES_DAMAGED)


def test_a_run_that_its_owner_has_not_completed_needs_its_payload_checksum_only(kernels: SimpleNamespace) -> None:
    made = stored_batch(EVENTS, 3, nonce=0)
    made = made[:AT_HEADER_CRC] + bytes(4) + made[AT_HEADER_CRC + 4 :]
    rows = table(1, BATCH_WIDTH)
    assert kernels.scan_batches(made, 0, len(made), 0, rows) == (1, len(made), BATCHES_OK)
    assert kernels.scan_batches(made[:-1] + b"?", 0, len(made), 0, rows) == (0, 0, BATCHES_DAMAGED)


def test_records_are_found_by_place_and_by_offset(kernels: SimpleNamespace) -> None:
    start = HEADER_SIZE + 43
    places = [start, start + 35, start + 67]
    assert [kernels.find_record(RUN, 0, ordinal) for ordinal in range(4)] == [*places, -1]
    found = [kernels.find_offset(RUN, 0, offset) for offset in (0, 1000, 1001, 1035, 1036, 1067, 1068)]
    expected = [(places[0], 0)] * 2 + [(places[1], 1)] * 2 + [(places[2], 2)] * 2 + [(-1, 3)]
    assert found == expected


def test_each_record_gets_a_row(kernels: SimpleNamespace) -> None:
    rows = table(4, RECORD_WIDTH)
    start = HEADER_SIZE + 43
    assert kernels.scan_records(RUN, 0, rows) == 3
    assert list(rows[:8]) == [start, 35, start + 32, 3, start + 35, 32, start + 67, 0]
    assert [RUN[rows[at + 2] : rows[at + 2] + rows[at + 3]] for at in (0, 4, 8)] == [b"one", b"", b"three"]
    assert kernels.scan_records(RUN, 0, table(2, RECORD_WIDTH)) == 2


def test_a_count_or_length_that_leads_out_of_the_batch_is_refused(kernels: SimpleNamespace) -> None:
    too_many = RUN[:AT_COUNT] + struct.pack(">I", 4) + RUN[AT_COUNT + 4 :]
    start = HEADER_SIZE + 43
    for length in (0, 31, 0xFFFFFFFF, len(EVENTS) + 1):
        for run in (too_many, RUN[:start] + struct.pack(">I", length) + RUN[start + 4 :]):
            with pytest.raises(KernelRefusal):
                kernels.find_record(run, 0, 4)
            with pytest.raises(KernelRefusal):
                kernels.scan_records(run, 0, table(9, RECORD_WIDTH))
            with pytest.raises(KernelRefusal):
                kernels.find_offset(run, 0, 2**63)


def test_operations_are_found_by_place(kernels: SimpleNamespace) -> None:
    run = stored_batch(struct.pack(">I", 6) + b"ab" + struct.pack(">I", 4), 2, kind=2)
    assert [kernels.find_record(run, 0, ordinal) for ordinal in range(3)] == [HEADER_SIZE, HEADER_SIZE + 6, -1]
