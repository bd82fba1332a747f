"""A walk over stored batches takes what continues it, and keeps what a start wants to know."""

from __future__ import annotations

import struct
from array import array
from types import SimpleNamespace

import pytest

from hubweir.kernels.contract import (
    B_FIRST_INDEX,
    B_POSITION,
    BATCH_WIDTH,
    BATCHES_DAMAGED,
    BATCHES_LIMIT,
    BATCHES_NEWER,
    BATCHES_OK,
    BATCHES_PARTIAL,
    SPARSE_WIDTH,
    W_BEFORE_BATCH,
    W_BEFORE_TIME,
    W_CHAIN_INDEX,
    W_CHAIN_NUMBER,
    W_CHAIN_OFFSET,
    W_CHAIN_POSITION,
    W_DURABLE_UPTO,
    W_ENTRY_BYTES,
    W_FIRST_NUMBER,
    W_INDEX,
    W_IS_CLOSED,
    W_LAST_BATCH,
    W_LAST_TIME,
    W_LIMIT,
    W_MARKS_FROM,
    W_NEXT_ENTRY,
    W_NUMBER,
    W_OFFSET,
    W_POSITION,
    WALK_WIDTH,
)
from hubweir.kernels.tests.legal_bytes import NONCE, stored_batch, table

EVENT = bytes(40)
LENGTH = 80 + len(EVENT)
BEGIN = 1_000  # of the data in its file


def walk_at(index: int = 7, offset: int = 1000, number: int = 5) -> array[int]:
    """A walk that has met nothing and has no limit."""
    walk = array("q", bytes(8 * WALK_WIDTH))
    walk[W_POSITION], walk[W_INDEX], walk[W_OFFSET], walk[W_NUMBER] = BEGIN, index, offset, number
    walk[W_LIMIT] = walk[W_NEXT_ENTRY] = 2**63 - 1
    walk[W_LAST_BATCH] = walk[W_LAST_TIME] = walk[W_MARKS_FROM] = walk[W_CHAIN_POSITION] = -1
    return walk


def events(place: int, *, flags: int = 0, number: int | None = None, unsynced: int = 0, version: int = 1) -> bytes:
    """The batch of one event that is `place` events behind where a new walk stands."""
    return stored_batch(
        EVENT, 1, first_index=7 + place, first_offset=1000 + 40 * place, number=5 + place if number is None else number,
        time=100 + place, flags=flags, unsynced=unsynced, version=version,
    )  # fmt: skip


def control(place: int, payload: bytes, number: int) -> bytes:
    """A control batch behind `place` events."""
    return stored_batch(
        payload, 0, first_index=7 + place, first_offset=1000 + 40 * place, number=number, kind=3, time=999
    )


def follow(kernels: SimpleNamespace, data: bytes, walk: array[int]) -> tuple[int, int]:
    """Rows and status, without entries."""
    taken, _, status = kernels.follow_batches(data, NONCE, walk, table(0, SPARSE_WIDTH), None)
    return taken, status


def test_batches_that_continue_each_other_move_the_walk(kernels: SimpleNamespace) -> None:
    walk = walk_at()
    assert follow(kernels, events(0) + events(1) + events(2, number=20), walk) == (3, BATCHES_OK)
    assert (walk[W_POSITION], walk[W_INDEX], walk[W_OFFSET]) == (BEGIN + 3 * LENGTH, 10, 1120)
    assert (walk[W_NUMBER], walk[W_FIRST_NUMBER]) == (21, 5)
    assert (walk[W_LAST_BATCH], walk[W_LAST_TIME]) == (BEGIN + 2 * LENGTH, 102)
    assert follow(kernels, events(3, number=30), walk) == (1, BATCHES_OK)
    assert (walk[W_FIRST_NUMBER], walk[W_LAST_BATCH]) == (30, BEGIN + 3 * LENGTH)


@pytest.mark.parametrize(("index", "offset", "number"), [(8, 1000, 5), (6, 1000, 5), (7, 1001, 5), (7, 1000, 6)])
def test_a_sound_batch_that_does_not_continue_is_damage(
    kernels: SimpleNamespace, index: int, offset: int, number: int
) -> None:
    walk = walk_at(index, offset, number)
    before = walk[:]
    assert follow(kernels, events(0), walk) == (0, BATCHES_DAMAGED)
    assert walk == before


def test_the_walk_stands_in_front_of_what_it_did_not_take(kernels: SimpleNamespace) -> None:
    broken, newer = events(1)[:-1] + b"?", events(1, version=2)
    for behind, status in (
        (broken, BATCHES_DAMAGED), (events(1)[:-1], BATCHES_PARTIAL), (newer, BATCHES_NEWER), (b"hW", BATCHES_PARTIAL),
        (events(0), BATCHES_DAMAGED),
    ):  # fmt: skip
        walk = walk_at()
        assert follow(kernels, events(0) + behind, walk) == (1, status)
        assert (walk[W_POSITION], walk[W_INDEX]) == (BEGIN + LENGTH, 8)


def test_a_batch_at_the_limit_is_not_taken(kernels: SimpleNamespace) -> None:
    walk = walk_at()
    walk[W_LIMIT] = 9
    assert follow(kernels, events(0) + events(1) + control(2, b"\1\0", 7), walk) == (2, BATCHES_LIMIT)
    assert (walk[W_INDEX], walk[W_MARKS_FROM]) == (9, -1)


def test_the_largest_durable_upto_of_all_counts(kernels: SimpleNamespace) -> None:
    walk = walk_at()
    follow(kernels, events(0, unsynced=5) + events(1, unsynced=1) + events(2, unsynced=7), walk)
    assert walk[W_DURABLE_UPTO] == 5
    walk = walk_at()
    walk[W_DURABLE_UPTO] = 12
    follow(kernels, events(0), walk)
    assert walk[W_DURABLE_UPTO] == 12


def test_an_open_chain_remembers_its_begin(kernels: SimpleNamespace) -> None:
    walk = walk_at()
    follow(kernels, events(0) + events(1, flags=1, number=9) + events(2, flags=3, number=10), walk)
    chain = walk[W_CHAIN_POSITION], walk[W_CHAIN_INDEX], walk[W_CHAIN_OFFSET], walk[W_CHAIN_NUMBER]
    assert chain == (BEGIN + LENGTH, 8, 1040, 9)
    assert (walk[W_BEFORE_BATCH], walk[W_BEFORE_TIME]) == (BEGIN, 100)
    assert (walk[W_LAST_BATCH], walk[W_LAST_TIME]) == (BEGIN + 2 * LENGTH, 102)
    follow(kernels, events(3, flags=2, number=11), walk)
    assert (walk[W_CHAIN_POSITION], walk[W_INDEX]) == (-1, 11)


def test_marks_at_the_end_are_remembered_from_the_first_on(kernels: SimpleNamespace) -> None:
    walk = walk_at()
    mark = len(control(0, b"\1\0", 0))
    follow(kernels, events(0) + control(1, b"\1\0", 6) + control(1, b"\1\1", 7), walk)
    assert (walk[W_MARKS_FROM], walk[W_IS_CLOSED], walk[W_INDEX]) == (BEGIN + LENGTH, 1, 8)
    assert (walk[W_LAST_BATCH], walk[W_LAST_TIME]) == (BEGIN, 100)
    follow(kernels, control(1, b"\1\0", 8), walk)
    assert (walk[W_MARKS_FROM], walk[W_IS_CLOSED]) == (BEGIN + LENGTH, 0)
    follow(kernels, control(1, b"\2\0\0\0\1", 9), walk)
    assert (walk[W_MARKS_FROM], walk[W_IS_CLOSED]) == (-1, 0)
    follow(kernels, control(1, b"\1\1\1", 10), walk)
    assert (walk[W_MARKS_FROM], walk[W_IS_CLOSED]) == (walk[W_POSITION] - mark - 1, 0)
    follow(kernels, events(1, number=11), walk)
    assert (walk[W_MARKS_FROM], walk[W_IS_CLOSED]) == (-1, 0)


def test_an_event_whose_bytes_look_like_a_mark_is_none(kernels: SimpleNamespace) -> None:
    walk = walk_at()
    assert follow(kernels, stored_batch(b"\1\1", 0, number=5), walk) == (1, BATCHES_OK)
    assert (walk[W_MARKS_FROM], walk[W_IS_CLOSED], walk[W_LAST_BATCH], walk[W_OFFSET]) == (-1, 0, -1, 1002)


def test_skipped_numbers_are_skipped(kernels: SimpleNamespace) -> None:
    walk, skip = walk_at(), struct.pack(">BQQ", 4, 500, 9000)
    behind = stored_batch(EVENT, 1, first_index=500, first_offset=9000, number=7)
    assert follow(kernels, events(0) + control(1, skip, 6) + behind, walk) == (3, BATCHES_OK)
    assert (walk[W_INDEX], walk[W_OFFSET]) == (501, 9040)


@pytest.mark.parametrize("size", [1, 9, 16])
def test_skipped_numbers_that_are_cut_short_are_damage(kernels: SimpleNamespace, size: int) -> None:
    skip = struct.pack(">BQQ", 4, 500, 9000)[:size]
    assert follow(kernels, control(0, skip, 5) + bytes(20), walk_at()) == (0, BATCHES_DAMAGED)


def test_a_control_batch_without_a_payload_says_nothing(kernels: SimpleNamespace) -> None:
    walk = walk_at()
    # What stands behind it is no part of it: read as a payload, it would skip numbers.
    follow(kernels, control(0, b"", 5) + struct.pack(">BQQ", 4, 500, 9000), walk)
    assert (walk[W_INDEX], walk[W_MARKS_FROM]) == (7, -1)


def test_entries_are_written_at_their_distance(kernels: SimpleNamespace) -> None:
    walk, entries = walk_at(), table(9, SPARSE_WIDTH)
    walk[W_NEXT_ENTRY], walk[W_ENTRY_BYTES] = BEGIN, 2 * LENGTH
    data = b"".join(map(events, range(5)))
    assert kernels.follow_batches(data, NONCE, walk, entries, None) == (5, 3, BATCHES_OK)
    expected = [(BEGIN + at * LENGTH, 7 + at, 1000 + 40 * at, 100 + at) for at in (0, 2, 4)]
    assert entries[: 3 * SPARSE_WIDTH].tolist() == [number for entry in expected for number in entry]
    assert walk[W_NEXT_ENTRY] == BEGIN + 6 * LENGTH


def test_without_room_for_an_entry_the_walk_stops_in_front_of_its_batch(kernels: SimpleNamespace) -> None:
    walk, entries = walk_at(), table(1, SPARSE_WIDTH)
    walk[W_NEXT_ENTRY], walk[W_ENTRY_BYTES] = BEGIN, LENGTH + 1
    data = b"".join(map(events, range(5)))
    assert kernels.follow_batches(data, NONCE, walk, entries, None) == (2, 1, BATCHES_OK)
    assert walk[W_INDEX] == 9


def test_rows_are_written_when_they_are_wanted(kernels: SimpleNamespace) -> None:
    walk, rows, whole = walk_at(), table(2, BATCH_WIDTH), table(2, BATCH_WIDTH)
    data = events(0) + events(1) + events(2)
    assert kernels.follow_batches(data, NONCE, walk, table(0, SPARSE_WIDTH), rows) == (2, 0, BATCHES_OK)
    kernels.scan_batches(data, 0, len(data), NONCE, whole)
    assert rows == whole and rows[BATCH_WIDTH + B_POSITION] == LENGTH and rows[BATCH_WIDTH + B_FIRST_INDEX] == 8
