"""Which captured files hold which events, without decoding them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubweir.capture.avro import header, long
from hubweir.namespace.capture_description import ARCHIVE_NAME_FORMAT
from hubweir.pipelines.captured.history import HistoryFile, avro_long, in_order, read_history, whole_blocks
from hubweir.spark.captured.places import LocalPlace
from hubweir.spark.errors import IllegalCapture

SYNC = bytes(range(16))
TIME = b"1/31/2026 12:00:00 PM"


def write(folder: Path, partition: str, minute: int, numbers: list[list[int]]) -> Path:
    """A file with a block for each list of sequence numbers."""
    path = folder / f"ns/orders/{partition}/2026/01/31/12/{minute:02}/00.avro"
    path.parent.mkdir(parents=True, exist_ok=True)
    data = header(SYNC)
    for block in numbers:
        records = b"".join(long(number) + long(1) + b"9" + long(len(TIME)) + TIME + b"\0" * 3 for number in block)
        data += long(len(block)) + long(len(records)) + records + SYNC
    path.write_bytes(data)
    return path


def history(folder: Path) -> dict[str, list[tuple[int, int]]]:
    found = read_history(str(folder), ARCHIVE_NAME_FORMAT, {})
    return {key: [(file.start, file.end) for file in files] for key, files in found.items()}


def test_files_are_in_the_order_of_their_events_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "0", 5, [[300, 301], [302]])
    write(tmp_path, "0", 6, [])
    write(tmp_path, "0", 7, [[303]])
    write(tmp_path, "1", 5, [[0]])
    assert history(tmp_path) == {"0": [(300, 303), (303, 304)], "1": [(0, 1)]}


def test_a_file_with_a_gap_between_blocks_ends_behind_its_last_event(tmp_path: Path) -> None:
    """Or the numbers behind would be looked for elsewhere, and come twice."""
    write(tmp_path, "0", 5, [[0, 1], [20, 21, 22]])
    assert history(tmp_path) == {"0": [(0, 23)]}


def test_a_gap_in_the_last_block_hides_no_event_behind_it(tmp_path: Path) -> None:
    """Or the event would be looked for in the hub, which may not have it any more."""
    write(tmp_path, "0", 5, [[0, 1], [2, 4, 9]])
    write(tmp_path, "0", 6, [[12, 13]])
    write(tmp_path, "0", 7, [[14, 17]])
    assert history(tmp_path) == {"0": [(0, 10), (12, 14), (14, 18)]}


def test_a_file_that_begins_inside_the_gap_of_another_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "0", 5, [[2, 4, 9]])
    write(tmp_path, "0", 6, [[7, 8]])
    with pytest.raises(IllegalCapture, match="both have event 7"):
        history(tmp_path)


def test_a_large_file_comes_in_pieces_of_whole_blocks(tmp_path: Path) -> None:
    path = write(tmp_path, "0", 5, [list(range(10 * at, 10 * at + 10)) for at in range(30)])
    whole, start = path.read_bytes(), len(header(SYNC))
    place, file = LocalPlace(str(path.parent)), HistoryFile(path.name, path.stat().st_size, "0", 0, 300)
    for size in (400, 700, 1_000, 10**6):
        pieces = list(whole_blocks(place, file, start, size))
        assert b"".join(pieces) == whole[start:] and all(piece.endswith(SYNC) for piece in pieces)
        assert len(pieces) > 1 or size == 10**6
    with pytest.raises(IllegalCapture, match="cut off or damaged"):
        list(whole_blocks(place, file, start, 60))
    path.write_bytes(whole[:-1])
    cut = HistoryFile(path.name, len(whole) - 1, "0", 0, 300)
    with pytest.raises(IllegalCapture, match="cut off or damaged"):
        list(whole_blocks(place, cut, start, 1_000))


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "0", 5, [[1, 2], [3]])
    whole = path.read_bytes()
    for size in (len(whole) - 1, len(whole) - 20):
        path.write_bytes(whole[:size])
        with pytest.raises(IllegalCapture, match="cut off"):
            history(tmp_path)


def test_two_files_with_the_same_events_are_an_error() -> None:
    def file(path: str, start: int, end: int) -> HistoryFile:
        return HistoryFile(path, 9, "0", start, end)

    assert len(in_order([file("b", 5, 9), file("a", 0, 5)])["0"]) == 2
    with pytest.raises(IllegalCapture, match="a and b both have event 4 of partition 0"):
        in_order([file("b", 4, 9), file("a", 0, 5)])


def test_numbers_are_read_as_avro_writes_them() -> None:
    for value in (0, 1, 63, 64, 2**31, 2**62):
        assert avro_long(b"?" + long(value), 1) == (value, 1 + len(long(value)))
    with pytest.raises(IllegalCapture):
        avro_long(b"\x80", 0)
