"""Hours of the wall clock, what is billed for them, and clocks that jump."""

import json
from collections.abc import Callable

import pytest

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.throughput_unit.usage import HOUR_MS, HOURS_KEPT, HourUsage, Usage

TEN = 490_000 * HOUR_MS
MINUTE = 60_000


def a_usage(minutes: int = 0) -> Usage:
    """Monotonic time 0 is so many minutes after TEN, the start of an hour."""
    return Usage(now_ms=0, wall_ms=TEN + minutes * MINUTE)


def units_of(usage: Usage, now_ms: int) -> list[tuple[int, int]]:
    return [((row.hour_ms - TEN) // HOUR_MS, row.units) for row in usage.hours(now_ms)]


def test_an_hour_rolls_over_to_the_millisecond() -> None:
    usage = a_usage(59)
    usage.row(MINUTE - 1).events_in += 1
    usage.row(MINUTE).events_in += 10
    assert [(row.hour_ms - TEN, row.events_in) for row in usage.hours(MINUTE)] == [(0, 1), (HOUR_MS, 10)]


def check_most_held_is_billed(usage_of: Callable[..., Usage]) -> None:
    usage = usage_of(now_ms=0, wall_ms=TEN)
    usage.hold(2, 0)
    usage.hold(7, 10 * MINUTE)
    usage.hold(3, 11 * MINUTE)
    usage.hold(1, 70 * MINUTE)
    assert units_of(usage, 130 * MINUTE) == [(0, 7), (1, 3), (2, 1)]
    bill = usage.bill(TEN, TEN + 3 * HOUR_MS, 130 * MINUTE)
    assert bill.unit_hours == 11
    assert bill.hours_by_unit == (3, 2, 2, 1, 1, 1, 1)


class LastUnitsUsage(Usage):
    """Defect: bills what was held last, not most."""

    def hold(self, units: int, now_ms: int) -> None:
        super().hold(units, now_ms)
        self.row(now_ms).units = units


def test_an_hour_costs_the_most_units_held_in_it_if_only_for_a_minute() -> None:
    check_most_held_is_billed(Usage)
    with pytest.raises(AssertionError):
        check_most_held_is_billed(LastUnitsUsage)


def check_quiet_hours(usage_of: Callable[..., Usage]) -> None:
    usage = usage_of(now_ms=0, wall_ms=TEN + 30 * MINUTE)
    usage.hold(4, 0)
    assert units_of(usage, 5 * HOUR_MS) == [(hour, 4) for hour in range(6)]


class ForgetfulUsage(Usage):
    """Defect: goes to the new hour without the ones in between."""

    def _move(self, now_ms: int) -> None:
        self._open((now_ms + self._wall_offset_ms) // HOUR_MS * HOUR_MS)


def test_hours_without_a_call_are_billed_too() -> None:
    check_quiet_hours(Usage)
    with pytest.raises(AssertionError):
        check_quiet_hours(ForgetfulUsage)


def test_a_wall_clock_set_ahead_bills_nothing_that_was_not_lived() -> None:
    usage = a_usage()
    usage.hold(2, 0)
    usage.set_clocks(90 * MINUTE, TEN + 1_000 * HOUR_MS)
    assert units_of(usage, 90 * MINUTE) == [(0, 2), (1, 2), (1_000, 2)]


def test_a_wall_clock_set_back_goes_on_in_the_row_of_that_hour() -> None:
    usage = a_usage()
    usage.hold(3, 0)
    usage.row(0).bytes_in += 5
    usage.hold(2, 61 * MINUTE)
    usage.set_clocks(62 * MINUTE, TEN + 30 * MINUTE)
    usage.row(63 * MINUTE).bytes_in += 7
    assert [(row.hour_ms - TEN, row.units, row.bytes_in) for row in usage.hours(63 * MINUTE)] == [
        (0, 3, 12),
        (HOUR_MS, 3, 0),  # 3 units were held on the stroke of the hour
    ]


def test_a_clock_that_drifts_by_seconds_keeps_the_hours_whole() -> None:
    usage = a_usage()
    usage.hold(1, 0)
    now_ms = 0
    for minute in range(24 * 60):
        now_ms = minute * MINUTE
        usage.set_clocks(now_ms, TEN + now_ms + minute * 7 % 50)
    assert units_of(usage, now_ms) == [(hour, 1) for hour in range(24)]


def test_a_caller_whose_time_steps_back_counts_in_the_hour_it_means() -> None:
    usage = a_usage()
    usage.row(HOUR_MS).events_in += 1
    usage.row(HOUR_MS - 1).events_in += 10
    usage.row(HOUR_MS).events_in += 100
    assert [row.events_in for row in usage.hours(HOUR_MS)] == [10, 101]


def test_rows_are_bounded_and_the_oldest_go() -> None:
    usage = a_usage()
    usage.hold(1, 0)
    later_ms = 3 * HOURS_KEPT * HOUR_MS
    hours = usage.hours(later_ms)
    assert len(hours) == HOURS_KEPT
    assert hours[-1].hour_ms == TEN + later_ms
    assert hours[0].hour_ms == TEN + later_ms - (HOURS_KEPT - 1) * HOUR_MS


def test_a_bill_sums_what_starts_in_its_span() -> None:
    usage = a_usage()
    usage.hold(1, 0)
    for hour in range(4):
        row = usage.row(hour * HOUR_MS)
        row.bytes_in += 10**hour
        row.refusals += 1
    bill = usage.bill(TEN + HOUR_MS, TEN + 3 * HOUR_MS, 3 * HOUR_MS)
    assert bill.total == HourUsage(TEN + HOUR_MS, units=1, bytes_in=110, refusals=2)
    empty = usage.bill(0, TEN, 3 * HOUR_MS)
    assert (empty.unit_hours, empty.hours_by_unit, empty.total) == (0, (), HourUsage(0))


def test_a_snapshot_is_json_and_goes_on_where_it_was_taken() -> None:
    usage = a_usage()
    usage.hold(5, 0)
    usage.row(0).bytes_out += 77
    usage.row(HOUR_MS).events_out += 3
    snapshot = json.loads(json.dumps(usage.snapshot(HOUR_MS)))
    again = Usage.restored(snapshot, now_ms=12, wall_ms=TEN + HOUR_MS + 5 * MINUTE)
    again.hold(2, 12)
    assert again.hours(12) == usage.hours(HOUR_MS)
    assert again.row(12).units == 5


def test_hours_in_which_the_service_did_not_run_cost_nothing() -> None:
    usage = a_usage()
    usage.hold(5, 0)
    again = Usage.restored(usage.snapshot(0), now_ms=0, wall_ms=TEN + 9 * HOUR_MS)
    again.hold(5, 0)
    assert units_of(again, 0) == [(0, 5), (9, 5)]


@pytest.mark.parametrize(
    "snapshot",
    [
        {},
        {"format": 1},
        {"format": "1", "hours": []},
        {"format": 1, "hours": [[TEN, 1]]},
        {"format": 1, "hours": [7]},
        {"format": 1, "hours": [[TEN, 1, 0, 0, 0, 0, 0, 0, 0, -1]]},
        {"format": 1, "hours": [[TEN, 1, 0, 0, 0, 0, 0, 0, 0, 0.5]]},
        {"format": 1, "hours": [[TEN + 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]]},
    ],
)
def test_what_is_no_snapshot_is_refused(snapshot: dict[str, object]) -> None:
    with pytest.raises(CorruptStore):
        Usage.restored(snapshot, now_ms=0, wall_ms=TEN)


def test_a_snapshot_of_a_newer_version_is_left_alone() -> None:
    with pytest.raises(NewerFormat):
        Usage.restored({"format": 2, "hours": []}, now_ms=0, wall_ms=TEN)
