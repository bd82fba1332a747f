"""What capture decides: which window ends when, what the intent says, where the mark goes."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from hubweir.capture.capture import Capture, first_mark
from hubweir.capture.capture_mark import LOST_RANGES, CaptureMark
from hubweir.messaging_store.log import Bounds
from hubweir.namespace.capture_description import CaptureDescription

NOW_MS = 1_583_121_906_000  # 2020-03-02 04:05:06 UTC
MINUTE = CaptureDescription(enabled=True, interval_s=60, size_limit_bytes=1_000)


def bounds(next_index: int, *, size: int = 10, first: int = 0) -> Bounds:
    return Bounds(first, next_index, first * size, next_index * size, (next_index - 1) * size, NOW_MS, next_index - 1)


def started(
    mark: CaptureMark, at: Bounds, *, description: CaptureDescription = MINUTE, now_ms: int = NOW_MS
) -> Capture:
    return Capture(
        mark, description, at, namespace="ns", hub="hub", partition_id="0", now_ms=now_ms, monotonic_ms=5_000
    )  # fmt: skip


def close(capture: Capture, end: int, at_ms: int) -> CaptureMark:
    """End the window at `end`, make the file, move the mark; at_ms: since the start."""
    times = {"now_ms": NOW_MS + at_ms, "monotonic_ms": 5_000 + at_ms}
    capture.mark = capture.intend(end, end * 10, **times)
    capture.mark = capture.finished(bounds(end), [], **times)
    return capture.mark


def test_capture_begins_with_what_comes_after_it_was_enabled() -> None:
    mark = first_mark(b"s" * 16, bounds(7), NOW_MS)
    assert (mark.next_index, mark.next_offset, mark.window_start_ms, mark.intent) == (7, 70, NOW_MS, None)


def test_intent_names_range_place_and_file() -> None:
    capture = started(first_mark(b"s", bounds(7), NOW_MS), bounds(7))
    mark = capture.intend(12, 120, now_ms=NOW_MS + 60_000, monotonic_ms=65_000)
    assert capture.mark.intent is None and mark.intent is not None
    assert (mark.intent.first, mark.intent.end, mark.intent.end_offset) == (7, 12, 120)
    assert mark.intent.name == "ns/hub/0/2020/03/02/04/06/06.avro"


def test_window_goes_on_where_it_was_when_the_service_starts_again() -> None:
    mark = first_mark(b"s", bounds(0), NOW_MS - 45_000)
    assert started(mark, bounds(3)).wait_ms(bounds(3), 5_000) == 15_000
    assert started(mark, bounds(3), now_ms=NOW_MS + 10**9).wait_ms(bounds(3), 5_000) == 0
    assert started(mark, bounds(3), now_ms=NOW_MS - 10**9).wait_ms(bounds(3), 5_000) == 60_000


def test_size_ends_a_window_before_its_time() -> None:
    capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(0))
    assert capture.wait_ms(bounds(99), 5_000) == 60_000
    assert capture.wait_ms(bounds(100), 5_000) == 0


def test_next_window_starts_where_the_one_before_ended_by_time_or_now_by_size() -> None:
    capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(0))
    close(capture, 5, 60_003)
    assert capture.wait_ms(bounds(5), 5_000 + 60_003) == 59_997
    assert capture.mark.window_start_ms == NOW_MS + 60_000
    close(capture, 105, 70_000)
    assert capture.wait_ms(bounds(105), 5_000 + 70_000) == 60_000


def test_a_window_that_is_full_to_the_byte_when_its_time_is_over_is_followed_by_a_whole_one() -> None:
    for end, wait_ms in ((99, 59_997), (100, 60_000)):
        capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(0))
        close(capture, end, 60_003)
        assert capture.wait_ms(bounds(end), 65_003) == wait_ms


def test_a_file_that_is_made_again_after_a_start_is_followed_by_a_window_from_then_on() -> None:
    mark = started(first_mark(b"s", bounds(0), NOW_MS), bounds(0)).intend(5, 50, now_ms=NOW_MS, monotonic_ms=5_000)
    capture = started(mark, bounds(9), now_ms=NOW_MS + 40_000)
    capture.mark = capture.finished(bounds(9), [], now_ms=NOW_MS + 41_000, monotonic_ms=6_000)
    assert capture.mark.window_start_ms == NOW_MS + 40_000
    assert capture.wait_ms(bounds(9), 6_000) == 59_000


def test_names_of_files_in_one_second_differ() -> None:
    capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(0))
    names = [close(capture, end, 0).last_file for end in (100, 200, 300)]
    assert capture.mark.files == 3
    assert [name[-7:] for name in names] == ["06.avro", "07.avro", "08.avro"]


def test_a_file_that_took_longer_than_a_window_is_followed_by_no_empty_one() -> None:
    capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(0))
    capture.mark = capture.intend(5, 50, now_ms=NOW_MS + 60_000, monotonic_ms=65_000)
    hours = 3 * 3_600_000
    quiet = capture.finished(bounds(5), [], now_ms=NOW_MS + hours, monotonic_ms=5_000 + hours)
    capture.mark = quiet
    assert capture.wait_ms(bounds(5), 5_000 + hours) == 60_000


def test_a_file_that_took_longer_is_followed_at_once_by_what_came_meanwhile() -> None:
    capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(0))
    capture.mark = capture.intend(5, 50, now_ms=NOW_MS + 60_000, monotonic_ms=65_000)
    hours = 3 * 3_600_000
    capture.mark = capture.finished(bounds(9), [], now_ms=NOW_MS + hours, monotonic_ms=5_000 + hours)
    assert capture.wait_ms(bounds(9), 5_000 + hours) == 0


def test_empty_windows_are_skipped_by_setting_only() -> None:
    mark = first_mark(b"s", bounds(4), NOW_MS)
    assert not started(mark, bounds(4)).may_skip(bounds(4))
    skipping = started(mark, bounds(4), description=replace(MINUTE, skip_empty_archives=True))
    assert skipping.may_skip(bounds(4))
    assert not skipping.may_skip(bounds(5))
    skipping.open_next(66_000)
    assert skipping.wait_ms(bounds(4), 66_000) == 59_000


def test_what_went_uncaptured_is_counted_and_its_newest_ranges_kept() -> None:
    capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(0))
    for number in range(20):
        capture.mark = capture.intend(10 * number + 10, 0, now_ms=NOW_MS, monotonic_ms=5_000)
        lost = [(10 * number, 10 * number + 3)]
        capture.mark = capture.finished(bounds(10 * number + 10), lost, now_ms=NOW_MS, monotonic_ms=5_000)
    assert capture.mark.uncaptured == 60
    assert len(capture.mark.lost) == LOST_RANGES
    assert capture.mark.lost[-1] == (190, 193)


def test_what_retention_took_is_passed_over_at_once() -> None:
    capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(30))
    assert capture.pass_over_trimmed(bounds(30)) is None
    assert capture.pass_over_trimmed(bounds(30, first=12)) == (0, 12)
    assert (capture.mark.next_index, capture.mark.next_offset, capture.mark.uncaptured) == (12, 120, 12)
    assert capture.mark.lost == ((0, 12),)
    assert capture.pass_over_trimmed(bounds(30, first=15)) == (12, 15)
    assert capture.mark.uncaptured == 15


def test_what_a_file_is_being_made_of_is_not_passed_over() -> None:
    capture = started(first_mark(b"s", bounds(0), NOW_MS), bounds(30))
    capture.mark = capture.intend(5, 50, now_ms=NOW_MS, monotonic_ms=5_000)
    assert capture.pass_over_trimmed(bounds(30, first=12)) is None


def test_numbers_that_are_not_there_are_no_part_of_a_window() -> None:
    capture = started(first_mark(b"s", bounds(5), NOW_MS), bounds(5))
    assert not capture.begin_at(5, 50)
    assert capture.begin_at(5, 9_000)
    assert capture.begin_at(900, 9_000)
    assert not capture.begin_at(7, 70)
    assert (capture.mark.next_index, capture.mark.next_offset, capture.mark.uncaptured) == (900, 9_000, 0)


def test_a_mark_beyond_the_log_is_taken_back_to_its_end() -> None:
    mark = first_mark(b"s", bounds(50), NOW_MS)
    assert started(mark, bounds(40)).mark.next_index == 40
    with_intent = started(mark, bounds(50)).intend(60, 600, now_ms=NOW_MS, monotonic_ms=5_000)
    taken_back = started(msgspec.structs.replace(with_intent, next_index=30), bounds(40)).mark
    assert taken_back.intent is not None
    assert (taken_back.intent.first, taken_back.intent.end, taken_back.intent.end_offset) == (40, 40, 400)
    assert with_intent.intent is not None
    within = msgspec.structs.replace(with_intent.intent, first=30)
    taken_back = started(msgspec.structs.replace(with_intent, next_index=30, intent=within), bounds(40)).mark
    assert taken_back.intent is not None and (taken_back.intent.first, taken_back.intent.end) == (30, 40)


def test_a_mark_at_the_end_of_the_log_keeps_its_offsets() -> None:
    """Behind the last event there may be numbers that the log does not have."""
    mark = msgspec.structs.replace(first_mark(b"s", bounds(40), NOW_MS), next_offset=9_000)
    mark = started(mark, bounds(40)).intend(40, 9_000, now_ms=NOW_MS, monotonic_ms=5_000)
    assert mark.next_offset == 9_000
    assert started(mark, bounds(40)).mark == mark
    assert started(mark, bounds(50)).mark == mark
