from __future__ import annotations

from hubweir.messaging_store.disk.time_index import TimeIndex


def test_a_search_gives_the_last_batch_that_is_surely_too_early() -> None:
    index = TimeIndex()
    for time_ms, first in ((100, 0), (100, 5), (200, 9)):
        index.add(time_ms, first)
    assert [index.before(time_ms) for time_ms in (99, 100, 101, 200, 201)] == [None, None, 5, 5, 9]


def test_the_file_holds_the_index_and_notices_damage() -> None:
    index = TimeIndex()
    index.add(100, 7)
    data = index.pack()
    again = TimeIndex.unpack(data)
    assert again is not None and len(again) == 1 and again.before(101) == 7
    assert TimeIndex.unpack(data[:-1]) is None and TimeIndex.unpack(bytes(len(data))) is None
