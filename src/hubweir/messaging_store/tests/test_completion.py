"""completion.py: the owner's half of each header, in order; broken runs are refused before they are stored."""

from __future__ import annotations

import struct

import pytest

from hubweir.errors import KernelRefusal
from hubweir.kernels import crc32c
from hubweir.kernels.stored_batch import (
    AT_HEADER_CRC,
    AT_LENGTH,
    AT_MAGIC,
    AT_NAME_LENGTH,
    AT_VERSION,
    CRC_SEED,
    KIND_CONTROL,
    KIND_EVENTS,
    read_header,
)
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, pack_control, pack_mark, pack_skipped
from hubweir.messaging_store.record import begin_batch, headers_of, seal_batch
from hubweir.messaging_store.tests.batches import complete, event, sealed


def test_a_completed_batch_says_where_and_when_and_by_which_writer() -> None:
    run = sealed(b"one", b"three", name=b"key")
    end = complete(run)
    header = read_header(run, 0)
    assert (header.first_index, header.first_offset, header.enqueued_time_ms) == (10, 1000, 5)
    assert (header.nonce, header.durable_upto, header.writer_epoch) == (7, 9, 3)
    assert end == LogEnd(12, 1072, last_offset=1035, last_time_ms=5, last_index=11, number=13)


def test_the_made_half_stays_as_it_was_sealed() -> None:
    run = sealed(b"one", b"two", name=b"key")
    before = read_header(run)
    complete(run)
    after = read_header(run)
    assert (after.kind, after.flags, after.length, after.count) == (
        before.kind, before.flags, before.length, before.count,
    )  # fmt: skip
    assert after.payload_crc == before.payload_crc


def test_the_header_checksum_covers_both_halves() -> None:
    run = sealed(b"payload", name=b"k")
    complete(run)
    assert struct.unpack_from(">I", run, AT_HEADER_CRC)[0] == crc32c(bytes(run[:AT_HEADER_CRC]), CRC_SEED)


def test_batches_of_a_run_follow_each_other_without_a_gap() -> None:
    run = sealed(b"a", b"b") + pack_control(CONTROL_IDLE_MARK, b"\x00") + sealed(b"c")
    end = complete(run)
    first, mark, second = headers_of(run)
    assert [header.number for header in (first, mark, second)] == [12, 13, 14] and end.number == 15
    assert {header.durable_upto for header in (first, mark, second)} == {9}
    assert (mark.kind, mark.first_index, mark.first_offset) == (KIND_CONTROL, 12, 1066)
    assert (second.first_index, second.first_offset) == (12, 1066)
    assert (end.index, end.last_index, end.last_offset) == (13, 12, 1066)


def test_the_batch_behind_skipped_numbers_goes_on_from_them() -> None:
    run = pack_skipped(500, 9000) + sealed(b"x")
    end = complete(run)
    skip, batch = headers_of(run)
    assert (skip.first_index, skip.first_offset) == (10, 1000)
    assert (batch.first_index, batch.first_offset, end.index) == (500, 9000, 501)


def test_numbers_that_are_skipped_behind_the_newest_record_do_not_count_as_its_own() -> None:
    end = complete(sealed(b"x") + pack_skipped(500, 9000))
    assert (end.index, end.offset, end.last_index, end.last_offset) == (500, 9000, 10, 1000)


def test_behind_control_batches_the_newest_record_is_the_one_before() -> None:
    before = LogEnd(10, 1000, last_offset=970, last_time_ms=4, last_index=8, number=12)
    end = complete_run(pack_mark(), before, nonce=7, enqueued_time_ms=5, durable_upto=9, writer_epoch=3)
    assert end == LogEnd(10, 1000, last_offset=970, last_time_ms=4, last_index=8, number=13)


@pytest.mark.parametrize("cut", range(1, len(sealed(b"abc", name=b"k"))))
def test_a_run_that_is_cut_anywhere_is_refused(cut: int) -> None:
    with pytest.raises(KernelRefusal):
        complete(sealed(b"abc", name=b"k")[:cut])


@pytest.mark.parametrize(("at", "value"), [(AT_MAGIC, 0xFF), (AT_VERSION, 0xFF), (AT_LENGTH, 1), (AT_NAME_LENGTH, 1)])
def test_a_run_with_another_magic_version_or_length_is_refused(at: int, value: int) -> None:
    run = sealed(b"abc", name=b"k")
    run[at] = value
    with pytest.raises(KernelRefusal, match="no sealed stored batch at 0"):
        complete(run)


@pytest.mark.parametrize(("kind", "count"), [(KIND_CONTROL, 1), (KIND_EVENTS, 0)])
def test_a_control_batch_has_no_records_and_every_other_has_some(kind: int, count: int) -> None:
    """Else it would take an index that no record has, or two batches would begin at one index."""
    run = bytearray()
    start = begin_batch(run)
    run += event(b"one")
    seal_batch(run, start, count=count, kind=kind)
    with pytest.raises(KernelRefusal, match=f"of kind {kind} must not have {count} records"):
        complete(run)


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
