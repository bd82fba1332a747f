from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.errors import NewerFormat
from hubweir.kernels import crc32c
from hubweir.kernels.contract import B_FIRST_INDEX, BATCH_WIDTH, W_CHAIN_POSITION, W_LIMIT
from hubweir.kernels.stored_batch import AT_HEADER_CRC, AT_VERSION, CRC_SEED
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, pack_control, pack_skipped
from hubweir.messaging_store.disk import batch_scan
from hubweir.messaging_store.disk.batch_scan import Damage, Piece, Place, Stretch, follow, new_walk, place_of, scan
from hubweir.testing.memory_files import MemoryFiles

NONCE = 99
Events = Callable[..., bytearray]


def completed(run: bytearray, index: int, offset: int, number: int | None = None) -> bytes:
    complete_run(
        run,
        LogEnd(index, offset, number=index if number is None else number),
        nonce=NONCE,
        enqueued_time_ms=5,
        durable_upto=0,
        writer_epoch=1,
    )
    return bytes(run)


@pytest.fixture
def batches(make_events: Events) -> list[bytes]:
    """Four batches of one record: indexes 0 to 3."""
    found, offset = [], 0
    for index, size in enumerate((10, 20, 300, 40)):
        found.append(completed(make_events([bytes([65 + index]) * size]), index, offset))
        offset += 32 + size
    return found


def scanned(data: bytes, piece_bytes: int = 1000) -> list[Piece | Damage]:
    files = MemoryFiles()
    files.open("f", create=True).write(0, [data])
    return list(scan(files.open("f"), Place(0, 0, 0), len(data), NONCE, piece_bytes))


@pytest.mark.parametrize("piece_bytes", [1, 50, 130, 131, 500, 10_000])
def test_sound_batches_come_out_whatever_the_piece(batches: list[bytes], piece_bytes: int) -> None:
    data = b"".join(batches)
    items = scanned(data, piece_bytes)
    assert all(isinstance(item, Piece) for item in items)
    assert sum(item.count for item in items if isinstance(item, Piece)) == 4
    last = items[-1]
    assert isinstance(last, Piece) and last.end == Place(len(data), 4, 4 * 32 + 370)


def test_damage_in_the_middle_is_stepped_over(batches: list[bytes]) -> None:
    broken = bytearray(batches[1])
    broken[-1] ^= 1
    items = scanned(batches[0] + broken + batches[2] + batches[3])
    start, resume = len(batches[0]), len(batches[0]) + len(broken)
    assert [type(item) for item in items] == [Piece, Damage, Piece]
    assert items[1] == Damage(Place(start, 1, 42), Place(resume, 2, 94))


def test_zeros_at_the_end_are_damage_without_a_resume(batches: list[bytes]) -> None:
    items = scanned(batches[0] + bytes(5000))
    assert items[-1] == Damage(Place(len(batches[0]), 1, 42), None)


def test_a_batch_behind_zeros_is_found(batches: list[bytes]) -> None:
    for zeros in (1, 5_000, batch_scan.PIECE_BYTES, 2 * batch_scan.PIECE_BYTES + 1):
        items = scanned(batches[0] + bytes(zeros) + batches[1])
        resume = Place(len(batches[0]) + zeros, 1, 42)
        assert items[1] == Damage(Place(len(batches[0]), 1, 42), resume) and isinstance(items[2], Piece)


@pytest.mark.parametrize("cut", [1, 79, 80, 100])
def test_a_torn_tail_is_damage_without_a_resume(batches: list[bytes], cut: int) -> None:
    items = scanned(batches[0] + batches[1][:cut])
    assert items[-1] == Damage(Place(len(batches[0]), 1, 42), None)


def test_a_sound_batch_in_the_wrong_place_is_damage(batches: list[bytes]) -> None:
    items = scanned(batches[0] + batches[2] + batches[2] + batches[3])
    assert [type(item) for item in items] == [Piece, Damage, Piece, Damage, Piece]
    damaged = items[1]
    assert isinstance(damaged, Damage) and damaged.start.index == 1 and damaged.resume is not None
    assert damaged.resume.index == 2


def test_a_batch_that_was_there_before_is_not_taken_again(batches: list[bytes]) -> None:
    items = scanned(batches[0] + batches[0] + batches[1])
    assert [type(item) for item in items] == [Piece, Damage, Piece]
    assert isinstance(items[2], Piece) and items[2].start.index == 1


def test_skipped_numbers_are_no_damage(batches: list[bytes], make_events: Events) -> None:
    skip = completed(pack_skipped(500, 9000), 1, 42)
    items = scanned(batches[0] + skip + completed(make_events([b"x"]), 500, 9000))
    assert [type(item) for item in items] == [Piece] and isinstance(items[0], Piece) and items[0].end.index == 501


def test_a_length_that_cannot_be_is_damage_not_memory(batches: list[bytes]) -> None:
    broken = bytearray(batches[1])
    broken[8:12] = b"\xff\xff\xff\xff"
    broken[AT_HEADER_CRC : AT_HEADER_CRC + 4] = crc32c(bytes(broken[:AT_HEADER_CRC]), CRC_SEED).to_bytes(4, "big")
    items = scanned(batches[0] + broken + batches[2] + batches[3], piece_bytes=200)
    assert any(isinstance(item, Damage) for item in items)
    assert isinstance(items[-1], Piece) and items[-1].end.index == 4


def test_a_newer_batch_stops_everything(batches: list[bytes]) -> None:
    newer = bytearray(batches[1])
    newer[AT_VERSION] = 2
    newer[AT_HEADER_CRC : AT_HEADER_CRC + 4] = crc32c(bytes(newer[:AT_HEADER_CRC]), CRC_SEED).to_bytes(4, "big")
    with pytest.raises(NewerFormat):
        scanned(batches[0] + newer)


def test_the_search_behind_damage_crosses_pieces(batches: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_scan, "PIECE_BYTES", 64)
    junk = b"hWb" * 100
    items = scanned(batches[0] + junk + batches[1])
    assert isinstance(items[-1], Piece) and items[-1].end.index == 2


def test_a_sound_batch_with_the_right_index_and_a_wrong_offset_is_damage(make_events: Events) -> None:
    """Such a one is of an append that was refused, whose numbers another one got."""
    first = completed(make_events([b"a" * 10]), 0, 0)
    stale = completed(make_events([b"b" * 10]), 1, 99)
    [piece, damage] = scanned(first + stale)[:2]
    assert isinstance(piece, Piece) and piece.end == Place(len(first), 1, 42)
    assert isinstance(damage, Damage) and damage.start == piece.end


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_batch_whose_number_does_not_rise_is_damage(make_events: Events, number: int) -> None:
    first, mark = (
        completed(make_events([b"a"]), 0, 0, 2),
        completed(pack_control(CONTROL_IDLE_MARK, b"\0"), 1, 33, number),
    )
    items = scanned(first + mark)
    assert [type(item) for item in items] == [Piece, Damage] and items[1].resume is None


def test_behind_damage_no_batch_is_taken_that_is_older_than_the_one_before_it(make_events: Events) -> None:
    """Such a one is of an append that was refused: its index is not seen yet, and is another batch's by now."""
    first = completed(make_events([b"a"]), 0, 0, 7)
    stale = completed(make_events([b"b"]), 2, 66, 3)
    next_one = completed(make_events([b"c"]), 2, 66, 8)
    junk = bytes(50)
    [_, damage] = scanned(first + junk + stale)
    assert isinstance(damage, Damage) and damage.resume is None
    for behind in (junk, b""):
        [_, damage, piece] = scanned(first + junk + stale + behind + next_one)
        assert isinstance(damage, Damage) and damage.resume is not None
        assert damage.resume.position == len(first + junk + stale + behind)
        assert isinstance(piece, Piece) and (piece.count, piece.end.number) == (1, 9)


def test_numbers_may_be_left_out(make_events: Events) -> None:
    items = scanned(completed(make_events([b"a"]), 0, 0, 2) + completed(make_events([b"b"]), 1, 33, 7))
    assert [type(item) for item in items] == [Piece] and items[0].end.number == 8


@pytest.mark.parametrize("piece_bytes", [130, 500, 10_000])
def test_a_walk_finds_the_same_as_a_scan(batches: list[bytes], piece_bytes: int) -> None:
    broken = batches[1][:-1] + b"?"
    data = batches[0] + broken + batches[2] + batches[3] + bytes(500)
    files = MemoryFiles()
    files.open("f", create=True).write(0, [data])
    walk = new_walk(Place(0, 0, 0))
    found = []
    for item in follow(files.open("f"), walk, len(data), NONCE, piece_bytes):
        if isinstance(item, Damage):
            found.append((item, place_of(walk)))
        else:
            found.append((item.start, item.count, place_of(walk)))
    expected = [
        (item, item.start) if isinstance(item, Damage) else (item.start, item.count, item.end)
        for item in scanned(data, piece_bytes)
    ]
    assert found == expected and len(found) >= 4


def test_a_walk_ends_in_front_of_its_limit(batches: list[bytes]) -> None:
    files = MemoryFiles()
    files.open("f", create=True).write(0, [b"".join(batches)])
    for limit, stretches in ((2, 1), (0, 0)):
        walk = new_walk(Place(0, 0, 0))
        walk[W_LIMIT] = limit
        found = list(follow(files.open("f"), walk, len(b"".join(batches)), NONCE))
        assert len(found) == stretches and place_of(walk).index == limit


def test_a_chain_that_damage_cuts_is_not_open_behind_it(make_events: Events) -> None:
    """The batches behind belong to no chain: what came before them stays."""
    chain = completed(make_events([b"a"], [b"b"]), 0, 0)
    half = len(chain) // 2
    behind = completed(make_events([b"c"]), 2, 66)
    data = chain[:half] + bytes(half) + behind
    files = MemoryFiles()
    files.open("f", create=True).write(0, [data])
    walk = new_walk(Place(0, 0, 0))
    opened = []
    for item in follow(files.open("f"), walk, len(data), NONCE):
        opened.append((type(item), walk[W_CHAIN_POSITION]))
    assert opened == [(Stretch, 0), (Damage, 0), (Stretch, -1)]


def test_a_piece_keeps_its_rows_when_the_scan_goes_on(batches: list[bytes]) -> None:
    items = scanned(b"".join(batches), 130)
    firsts = [item.rows[B_FIRST_INDEX] for item in items if isinstance(item, Piece)]
    assert firsts == [0, 1, 2, 3] and [len(item.rows) for item in items if isinstance(item, Piece)] == [BATCH_WIDTH] * 4


def test_a_long_batch_is_read_whole_and_what_follows_in_pieces_again(make_events: Events) -> None:
    long = completed(make_events([b"l" * 5_000]), 0, 0)
    offset, rest = 5_032, b""
    for index in range(1, 40):
        rest += completed(make_events([b"x" * 68]), index, offset)
        offset += 100
    pieces = [len(item.data) for item in scanned(long + rest, 500) if isinstance(item, Piece)]
    assert pieces[0] == len(long) and max(pieces[1:]) == 500


def test_a_table_that_is_full_ends_a_piece_and_loses_nothing(
    batches: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_scan, "_ROWS", 3)
    assert [item.count for item in scanned(b"".join(batches), 10_000) if isinstance(item, Piece)] == [3, 1]
