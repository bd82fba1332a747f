"""Windows: time or size, whichever is first, to the millisecond and the byte."""

from __future__ import annotations

import pytest

from hubweir.capture.window import Window

WINDOW = Window(opened_ms=1_000, interval_ms=60_000, first_offset=500, size_bytes=100)


@pytest.mark.parametrize(("now_ms", "wait_ms"), [(1_000, 60_000), (60_999, 1), (61_000, 0), (90_000, 0)])
def test_time_is_over_at_the_interval(now_ms: int, wait_ms: int) -> None:
    assert WINDOW.wait_ms(now_ms) == wait_ms


@pytest.mark.parametrize(("next_offset", "end"), [(500, None), (599, None), (600, 600), (10_000, 600)])
def test_it_is_full_at_its_size_however_far_the_log_is(next_offset: int, end: int | None) -> None:
    assert WINDOW.size_end(next_offset) == end


@pytest.mark.parametrize(
    ("now_ms", "opened_ms"), [(61_000, 61_000), (61_007, 61_000), (120_999, 61_000), (121_000, 121_000), (9_000, 9_000)]
)
def test_next_window_keeps_the_rhythm_unless_a_whole_one_was_missed(now_ms: int, opened_ms: int) -> None:
    assert WINDOW.next_opened_ms(now_ms) == opened_ms
