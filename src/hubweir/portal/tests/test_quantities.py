import pytest

from hubweir.errors import ServiceError
from hubweir.namespace.iso_duration import DAY_MS, HOUR_MS, MINUTE_MS, UNLIMITED, UNLIMITED_MS, WrittenDuration
from hubweir.portal.quantities import bytes_words, read_span, span_words, time_words


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 seconds"),
        (1, "1 millisecond"),
        (1_500, "1 second 500 milliseconds"),
        (10 * MINUTE_MS, "10 minutes"),
        (DAY_MS + 2 * HOUR_MS, "1 day 2 hours"),
        (UNLIMITED_MS, "never"),
    ],
)
def test_a_length_of_time_is_written_and_read_back(ms: int, words: str) -> None:
    assert span_words(ms) == words
    assert read_span(words, "It").ms == ms


@pytest.mark.parametrize(
    ("text", "ms"),
    [("36h", 36 * HOUR_MS), ("1d 12 h", 36 * HOUR_MS), (" PT5M ", 5 * MINUTE_MS), ("00:05:00", 5 * MINUTE_MS),
     ("1 DAY, 2 hours", 26 * HOUR_MS), ("Unlimited", UNLIMITED_MS)],
)  # fmt: skip
def test_people_write_lengths_of_time_in_several_ways(text: str, ms: int) -> None:
    assert read_span(text, "It").ms == ms


@pytest.mark.parametrize("text", ["", "5", "five minutes", "5 parsecs", "-1 day", "1 day tomorrow", "9" * 80 + "d"])
def test_what_is_no_length_of_time_is_refused_with_a_way_to_write_it(text: str) -> None:
    with pytest.raises(ServiceError, match="Lock duration .* is no length of time: write it as '30 seconds'"):
        read_span(text, "Lock duration")


def test_words_that_still_say_what_was_known_keep_its_own_text() -> None:
    known = WrittenDuration(MINUTE_MS, "PT60S")
    assert read_span("1 minute", "It", known) is known
    assert read_span("2 minutes", "It", known).text == "PT2M"
    assert read_span("never", "It", UNLIMITED) is UNLIMITED


def test_sizes_and_times() -> None:
    assert [bytes_words(size) for size in (0, 1, 1_023, 1_024, 1_536, 5 * 1024**3, 2**50)] == [
        *("0 bytes", "1 byte", "1,023 bytes", "1.0 KB", "1.5 KB", "5.0 GB", "1,024.0 TB"),
    ]
    assert time_words(0) == "1970-01-01 00:00:00 UTC"
    assert time_words(None) == "–"
    assert time_words(10**18).endswith("since 1970")
