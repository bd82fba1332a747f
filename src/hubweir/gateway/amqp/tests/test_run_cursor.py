"""Cursors into runs of several batches: every event is found, and what is found is that event."""

from __future__ import annotations

import struct
from array import array

import pytest

from hubweir.gateway.amqp.run_cursor import cursor_at, sequence_number_at
from hubweir.kernels import scan_records
from hubweir.kernels.contract import R_MESSAGE, RECORD_WIDTH, RunCursor
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE, RECORD_STRUCT
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, pack_control
from hubweir.messaging_store.record import begin_batch, seal_batch

FIRST = 40


def batch(numbers: range) -> bytearray:
    """A sealed batch of one event for each number; its message is the number."""
    run = bytearray()
    start = begin_batch(run)
    for number in numbers:
        message = b"%d" % number * (number % 5 + 1)
        run += struct.pack(RECORD_STRUCT, RECORD_HEADER_SIZE + len(message), 0, 0, 0, 0, 0, 0, 0) + message
    seal_batch(run, start, count=len(numbers))
    return run


def completed(*parts: bytearray) -> bytes:
    run = bytearray().join(parts)
    complete_run(run, LogEnd(FIRST), nonce=1, enqueued_time_ms=0, durable_upto=0, writer_epoch=1)
    return bytes(run)


@pytest.fixture
def run() -> bytes:
    """Events 40 to 49 in three batches, with a control batch between them and one at the end."""
    control = pack_control(CONTROL_IDLE_MARK)
    return completed(batch(range(40, 44)), control, batch(range(44, 45)), batch(range(45, 50)), control)


def message_at(run: bytes, cursor: RunCursor) -> bytes:
    rows = array("q", bytes(8 * RECORD_WIDTH * 10))
    scan_records(run, cursor.batch_at, rows)
    at = rows[cursor.ordinal * RECORD_WIDTH + R_MESSAGE]
    assert cursor.record_at in (0, at - RECORD_HEADER_SIZE)
    (length,) = struct.unpack_from(">I", run, at - RECORD_HEADER_SIZE)
    return run[at : at + length - RECORD_HEADER_SIZE]


@pytest.mark.parametrize("number", range(40, 50))
def test_every_event_is_found_and_its_cursor_leads_back_to_its_number(run: bytes, number: int) -> None:
    cursor = cursor_at(run, number)
    assert message_at(run, cursor) == b"%d" % number * (number % 5 + 1)
    assert sequence_number_at(run, cursor) == number


def test_a_view_of_a_run_is_as_good_as_its_bytes(run: bytes) -> None:
    assert sequence_number_at(memoryview(run), cursor_at(memoryview(run), 47)) == 47


def test_an_event_in_front_of_the_run_gives_the_runs_first(run: bytes) -> None:
    assert cursor_at(run, 3) == RunCursor(0, 0, 0)
    assert sequence_number_at(run, cursor_at(run, 3)) == FIRST


def test_an_event_behind_the_run_gives_its_end_where_no_event_is(run: bytes) -> None:
    assert cursor_at(run, 50) == RunCursor(len(run), 0, 0)
    assert sequence_number_at(run, RunCursor(len(run), 0, 0)) is None


def test_an_event_that_falls_between_two_batches_gives_the_later_ones_first() -> None:
    first = completed(batch(range(40, 42)))
    later = bytearray(batch(range(60, 62)))
    complete_run(later, LogEnd(60), nonce=1, enqueued_time_ms=0, durable_upto=0, writer_epoch=1)
    run = first + bytes(later)
    assert sequence_number_at(run, cursor_at(run, 50)) == 60


def test_a_cursor_on_a_control_batch_stands_for_the_event_behind_it(run: bytes) -> None:
    (first_length,) = struct.unpack_from(">I", run, 8)
    assert sequence_number_at(run, RunCursor(first_length, 0, 0)) == 44


def test_a_run_that_ends_with_control_batches_has_no_event_behind_its_last(run: bytes) -> None:
    control = len(pack_control(CONTROL_IDLE_MARK))
    assert sequence_number_at(run, RunCursor(len(run) - control, 0, 0)) is None
    assert sequence_number_at(b"", RunCursor(0, 0, 0)) is None
