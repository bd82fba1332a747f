import pytest

from hubweir.spark.errors import IllegalOption
from hubweir.spark.option_texts import parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60s", 60), ("1.5 m", 90), ("2 minutes", 120), ("1h", 3600), ("250ms", 0.25), ("PT5M", 300), ("pt0.5s", 0.5)],
)
def test_durations_of_both_dialects(text: str, seconds: float) -> None:
    assert parse_seconds("receiverTimeout", text) == seconds


@pytest.mark.parametrize("text", ["", "5", "PT", "P1D", "fast", "5 weeks", "PT1.2.3S"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(IllegalOption, match="receiverTimeout is a duration"):
        parse_seconds("receiverTimeout", text)
