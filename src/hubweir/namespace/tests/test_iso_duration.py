"""Durations: both forms, their limits, and what is neither."""

import pytest

from hubweir.namespace.iso_duration import (
    DAY_MS,
    HOUR_MS,
    MINUTE_MS,
    TEXT_LIMIT,
    UNLIMITED,
    UNLIMITED_MS,
    BadDuration,
    duration_text,
    parse_duration,
    written_duration,
    written_duration_of,
)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("PT1H", HOUR_MS),
        ("PT5M", 5 * MINUTE_MS),
        ("PT20S", 20_000),
        ("PT0S", 0),
        ("PT0.5S", 500),
        ("PT1.0009S", 1_000),
        ("P7D", 7 * DAY_MS),
        ("P1Y2M3DT4H5M6S", (365 + 60 + 3) * DAY_MS + 4 * HOUR_MS + 5 * MINUTE_MS + 6_000),
        ("PT90M", 90 * MINUTE_MS),
        ("P10675199DT2H48M5.4775807S", UNLIMITED_MS),
        ("P99999999999999D", UNLIMITED_MS),
        ("00:01:00", MINUTE_MS),
        ("1.12:00:00", 36 * HOUR_MS),
        ("00:00:20.2500000", 20_250),
        ("10675199.02:48:05.4775807", UNLIMITED_MS),
        ("10675198.00:00:00", 10_675_198 * DAY_MS),
    ],
)
def test_both_forms_are_read(text: str, duration_ms: int) -> None:
    assert parse_duration(text) == duration_ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "1H",
        "PT1",
        "P1H",
        "PT1D",
        "P1W",
        "-PT1S",
        "PT-1S",
        "pt1s",
        " PT1S",
        "PT1S ",
        "PT1S\n",
        "PT1.S",
        "PT.5S",
        "PT1,5S",
        "PT1.5M",
        "PT١S",
        "24:00:00",
        "00:60:00",
        "00:00:60",
        "1:00",
        "1.1.1:00:00",
        "00:00:00.",
        "-00:01:00",
        "60",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadDuration):
        parse_duration(text)


def test_a_long_text_is_refused_unread() -> None:
    assert parse_duration("PT" + "1" * (TEXT_LIMIT - 3) + "S") == UNLIMITED_MS
    with pytest.raises(BadDuration, match="64 characters"):
        parse_duration("PT" + "1" * (TEXT_LIMIT - 2) + "S")


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0, "PT0S"),
        (500, "PT0.5S"),
        (1_500, "PT1.5S"),
        (90_000, "PT90S"),
        (300_000, "PT5M"),
        (36 * HOUR_MS, "PT36H"),
        (7 * DAY_MS, "P7D"),
        (UNLIMITED_MS, "unlimited"),
    ],
)
def test_a_duration_is_written_in_its_largest_whole_unit(duration_ms: int, text: str) -> None:
    assert duration_text(duration_ms) == text
    if text != "unlimited":
        assert parse_duration(text) == duration_ms


@pytest.mark.parametrize("text", ["PT6H", "PT45S", "PT10M1S", "PT10M0S", "PT0.5000001S", "00:01:00"])
def test_a_span_keeps_the_text_that_was_sent(text: str) -> None:
    assert written_duration(text).text == text and written_duration(text).ms == parse_duration(text)


@pytest.mark.parametrize("text", ["P10675199DT2H48M5.4775807S", "P10675199DT2H48M5.47758S", "P20000000D"])
def test_every_spelling_of_the_longest_span_becomes_one(text: str) -> None:
    assert written_duration(text) == UNLIMITED and UNLIMITED.is_unlimited
    assert UNLIMITED.text == "P10675199DT2H48M5.4775807S"


@pytest.mark.parametrize(
    ("ms", "text"), [(60_000, "PT1M"), (1_500, "PT1.5S"), (0, "PT0S"), (UNLIMITED_MS, UNLIMITED.text)]
)
def test_a_number_of_milliseconds_has_its_shortest_text(ms: int, text: str) -> None:
    assert written_duration_of(ms).text == text
    assert written_duration(text).ms == ms
