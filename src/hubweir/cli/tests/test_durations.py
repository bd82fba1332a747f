import click
import pytest

from hubweir.cli.durations import Duration, duration_text


@pytest.mark.parametrize(("text", "ms"), [("250ms", 250), ("90s", 90_000), ("15m", 900_000), ("24h", 86_400_000)])
def test_duration_is_a_number_with_a_unit(text: str, ms: int) -> None:
    assert Duration().convert(text, None, None) == ms


@pytest.mark.parametrize("text", ["", "24", "h", "-1h", "1.5h", "1 h", "٣h", "9999999999s"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 24h"):
        Duration().convert(text, None, None)


@pytest.mark.parametrize("text", ["1ms", "59s", "2m", "25h", "7d"])
def test_text_of_a_duration_reads_back_as_itself(text: str) -> None:
    assert duration_text(Duration().convert(text, None, None)) == text
