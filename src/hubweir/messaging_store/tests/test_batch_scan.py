from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.errors import NewerFormat
from hubweir.kernels import crc32c
from hubweir.kernels.stored_batch import AT_HEADER_CRC, AT_VERSION, CRC_SEED
from hubweir.messaging_store import batch_scan
from hubweir.messaging_store.batch_scan import Damage, Piece, Place, scan
from hubweir.messaging_store.completion import complete_run
from hubweir.messaging_store.control_batch import pack_skipped
from hubweir.testing.memory_files import MemoryFiles

NONCE = 99
Events = Callable[..., bytearray]


def completed(run: bytearray, index: int, offset: int) -> bytes:
    complete_run(
        run, nonce=NONCE, first_index=index, first_offset=offset, enqueued_time_ms=5, durable_upto=0, writer_epoch=1
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
