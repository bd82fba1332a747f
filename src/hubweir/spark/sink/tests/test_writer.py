import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

from hubweir.spark.errors import IllegalOption, NotExactlyOnce
from hubweir.spark.sink import writer
from hubweir.spark.sink.task_writer import Written
from hubweir.spark.sink.tests.sink_rows import COLUMNS, rows
from hubweir.spark.sink.write_options import parse_write_options
from hubweir.spark.sink.writer import EventHubStreamWriter, EventHubWriter


def test_a_batch_write_has_one_name_in_all_its_tasks_and_no_other_write_has_it(
    options_of: Callable[..., dict[str, str]],
) -> None:
    options = parse_write_options(options_of("orders"))
    one, other = EventHubWriter(options, COLUMNS), EventHubWriter(options, COLUMNS)
    assert pickle.loads(pickle.dumps(one))._name == one._name != other._name


def test_a_stream_takes_no_names_of_its_own(options_of: Callable[..., dict[str, str]]) -> None:
    options = parse_write_options(options_of("orders", queryId="copy", batchId="1"))
    with pytest.raises(IllegalOption, match="a stream has both in its checkpoint, leave them out"):
        EventHubStreamWriter(options, COLUMNS)


class _Context:
    """A task's context, as far as it is asked for properties."""

    def __init__(self, **properties: str) -> None:
        self.getLocalProperty = properties.get
        self.partitionId = self.attemptNumber = lambda: 0


def test_the_first_batch_of_each_run_may_repeat_what_another_run_began(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_first_of_run", {})

    def may_repeat(run: str, batch: int) -> bool:
        context: Any = _Context(**{"sql.streaming.queryId": "q", "spark.jobGroup.id": run})
        return writer._may_repeat(context, "q", batch)

    found = [may_repeat(*each) for each in (("a", 5), ("a", 5), ("a", 6), ("b", 6), ("b", 7), ("a", 7))]
    assert found == [True, True, False, True, False, False]
    outside: Any = _Context(**{"spark.jobGroup.id": "mine"})
    assert writer._may_repeat(outside, "q", 1) and writer._may_repeat(outside, "q", 2)


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({}, "NotExactlyOnce: .* set spark.sql.adaptive.enabled to false"),
        ({"spark.sql.adaptive.enabled": "false"}, ""),
        ({"sql.streaming.queryId": "q"}, "behind a shuffle .* set spark.sql.adaptive.enabled to false"),
        ({"sql.streaming.queryId": "q", "spark.sql.adaptive.enabled": "false"}, ""),
        # Of streams alone: a batch that foreachBatch makes is none.
        (
            {"sql.streaming.queryId": "q", "spark.sql.adaptive.streaming.stateless.enabled": "false"},
            "behind a shuffle .* set spark.sql.adaptive.enabled to false",
        ),
    ],
)
def test_adaptive_execution_is_told_of_where_it_may_change_a_repeat(
    options_of: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], told: str
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(writer, "_context", lambda: _Context(**properties))
    monkeypatch.setattr(writer, "warn_once", heard.append)
    monkeypatch.setattr(writer, "write_rows", lambda *_: Written(0, 0))
    named = options_of("orders", queryId="copy", batchId="1", exactlyOnce="require")
    try:
        EventHubWriter(parse_write_options(named), COLUMNS).write(iter([]))
    except NotExactlyOnce as error:
        heard.append(f"NotExactlyOnce: {error}")
    assert re.search(told, heard[0]) if told else heard == []


def test_rows_are_written_by_tasks_only(options_of: Callable[..., dict[str, str]]) -> None:
    options = parse_write_options(options_of("orders"))
    for each in (EventHubWriter(options, COLUMNS), EventHubStreamWriter(options, COLUMNS)):
        with pytest.raises(NotExactlyOnce, match="Spark's tasks only"):
            each.write(iter([rows([1])]))
