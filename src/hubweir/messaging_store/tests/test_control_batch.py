"""control_batch.py: what a control batch says comes back, and only skipped numbers move the log's next ones."""

from __future__ import annotations

import struct

import pytest

from hubweir.kernels.stored_batch import KIND_CONTROL, read_header
from hubweir.messaging_store.control_batch import (
    CONTROL_IDLE_MARK,
    CONTROL_SKIPPED,
    control_of,
    pack_control,
    pack_skipped,
)
from hubweir.messaging_store.record import begin_batch, headers_of, seal_batch
from hubweir.messaging_store.tests.batches import complete, sealed

UNKNOWN = 5


@pytest.mark.parametrize("control", [CONTROL_IDLE_MARK, UNKNOWN])
@pytest.mark.parametrize("body", [b"", b"\x00", struct.pack(">QQ", 500, 9000)])
def test_what_it_says_comes_back_and_moves_no_number(control: int, body: bytes) -> None:
    run = pack_control(control, body)
    end = complete(run)
    header = read_header(run)
    assert (header.kind, header.count, header.record_bytes) == (KIND_CONTROL, 0, 0)
    assert control_of(run, header) == (control, body)
    assert (end.index, end.offset) == (10, 1000)


def test_a_mark_is_found_behind_other_batches() -> None:
    run = sealed(b"x") + pack_control(CONTROL_IDLE_MARK, b"\x00\x00\x00\x07") + sealed(b"y")
    complete(run)
    _, mark, _ = headers_of(run)
    assert control_of(run, mark) == (CONTROL_IDLE_MARK, b"\x00\x00\x00\x07")


def test_skipped_numbers_move_the_next_index_and_offset() -> None:
    run = pack_skipped(500, 9000)
    end = complete(run)
    skip = read_header(run)
    assert control_of(run, skip) == (CONTROL_SKIPPED, struct.pack(">QQ", 500, 9000))
    assert (end.index, end.offset) == (500, 9000)


def test_a_control_batch_that_says_nothing_moves_no_number() -> None:
    run = bytearray()
    seal_batch(run, begin_batch(run), count=0, kind=KIND_CONTROL)
    end = complete(run)
    assert (end.index, end.offset) == (10, 1000)
