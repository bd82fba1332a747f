"""What of windowed aggregates is decided before Spark looks at it; the windows are in tests/spark."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from hubweir.pipelines.description import describe
from hubweir.pipelines.errors import IllegalDescription
from hubweir.pipelines.windowed_aggregates import check_columns, check_results, seconds

TEXT = "Endpoint=sb://localhost;SharedAccessKeyName=r;SharedAccessKey=k;UseDevelopmentEmulator=true"


@pytest.mark.parametrize("name", ["enqueuedTime", "ENQUEUEDTIME", "event_time", "window"])
def test_a_column_that_every_row_has_already_is_refused(name: str) -> None:
    check_columns(["tea", "start"])
    with pytest.raises(IllegalDescription, match=f"^parameters.schema: a row has a column {name} itself"):
        check_columns(["tea", name])


@pytest.mark.parametrize("names", [["origin", "start"], ["End"], ["origin", "origin"], ["a", "b", "A"]])
def test_a_result_with_a_name_twice_is_refused(names: list[str]) -> None:
    check_results(["origin", "carrier", "flights"])
    with pytest.raises(IllegalDescription, match=f"a result has {names[-1]} already; .* write … AS another_name"):
        check_results(names)


def test_durations_are_spark_s_to_the_millisecond() -> None:
    assert [seconds(count) for count in (0.0015, 0.5, 3600.0)] == [
        "2 milliseconds", "500 milliseconds", "3600000 milliseconds",
    ]  # fmt: skip


def test_aggregates_must_be_some() -> None:
    for nothing in ("", " , ", []):
        raw = {
            "pipeline": "windowed-aggregates",
            "source": {"eventHub": "o", "connectionString": TEXT},
            "parameters": {"schema": "tea int", "aggregates": nothing},
            "sink": {"eventHub": "out"},
        }
        with pytest.raises(IllegalDescription, match="parameters.aggregates is .*; allowed: a list of texts"):
            describe(raw, "test")
    raw["parameters"] = {"schema": "tea int", "aggregates": ["count(*) AS n"], "keys": []}
    assert describe(raw, "test").parameters["keys"] == ()
