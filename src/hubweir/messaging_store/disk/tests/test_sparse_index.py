from __future__ import annotations

from hubweir.messaging_store.disk.batch_scan import Place
from hubweir.messaging_store.disk.sparse_index import ENTRY_EVERY_BYTES, OffsetIndex, TimeIndex

PLACES = [Place(128, 10, 1000), Place(128 + ENTRY_EVERY_BYTES, 20, 3000), Place(128 + 3 * ENTRY_EVERY_BYTES, 35, 9000)]


def filled() -> OffsetIndex:
    index = OffsetIndex()
    for place in PLACES:
        index.add(place)
    return index


def test_a_search_gives_the_last_entry_at_or_before() -> None:
    index = filled()
    assert [index.before_index(number) for number in (9, 10, 19, 20, 34, 35, 99)] == [
        None, PLACES[0], PLACES[0], PLACES[1], PLACES[1], PLACES[2], PLACES[2],
    ]  # fmt: skip
    assert [index.before_offset(offset) for offset in (999, 1000, 2999, 9001)] == [
        None, PLACES[0], PLACES[0], PLACES[2],
    ]  # fmt: skip
    assert index.last() == PLACES[2] and OffsetIndex().last() is None


def test_entries_keep_their_distance() -> None:
    index = OffsetIndex()
    assert index.next_position == 0
    index.add(PLACES[0])
    assert index.next_position == 128 + ENTRY_EVERY_BYTES


def test_the_file_holds_the_index_and_notices_damage() -> None:
    data = filled().pack()
    again = OffsetIndex.unpack(data)
    assert again is not None and len(again) == 3 and again.before_index(20) == PLACES[1]
    for at in range(len(data)):
        assert OffsetIndex.unpack(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]) is None
    assert OffsetIndex.unpack(b"") is None


def test_an_empty_index_comes_back_empty() -> None:
    again = OffsetIndex.unpack(OffsetIndex().pack())
    assert again is not None and len(again) == 0


def test_a_file_of_another_index_is_refused() -> None:
    times = TimeIndex()
    times.add(5, 10)
    assert OffsetIndex.unpack(times.pack()) is None


def test_a_search_by_time_gives_the_last_batch_that_is_surely_too_early() -> None:
    index = TimeIndex()
    for time_ms, first in ((100, 0), (100, 5), (200, 9)):
        index.add(time_ms, first)
    assert [index.before(time_ms) for time_ms in (99, 100, 101, 200, 201)] == [None, None, 5, 5, 9]


def test_the_file_of_times_holds_them_and_notices_damage() -> None:
    index = TimeIndex()
    index.add(100, 7)
    data = index.pack()
    again = TimeIndex.unpack(data)
    assert again is not None and len(again) == 1 and again.before(101) == 7
    assert TimeIndex.unpack(data[:-1]) is None and TimeIndex.unpack(bytes(len(data))) is None
