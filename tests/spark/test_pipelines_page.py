"""What docs/pipelines.md shows works: its descriptions, its program, and its own words about what there is."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest

from hubweir.pipelines.description import describe
from hubweir.pipelines.ready_made import READY_MADE
from hubweir.pipelines.runner import PipelineRun
from tests.documents.console_block import steps
from tests.documents.page_session import PageSession
from tests.spark.live_hub import Hub
from tests.spark.test_page import TEXT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "pipelines.md").read_text()
EXAMPLE, PROGRAM = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(DESCRIPTION,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(COMMANDS,) = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_example_runs(spark: SparkSession, hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = TEXT.sub(lambda _: f"TEXT = {hub.namespace.connection_string()!r}\n", EXAMPLE)
    assert "./run hubweir eventhub create breakfast" in PAGE
    own = own.replace('"breakfast"', repr(hub.name))
    for name in ("checkpoint", "lake"):
        own = own.replace(f': "{name}"', f": {str(tmp_path / name)!r}")
    exec(compile(own, "docs/pipelines.md", "exec"), {"__name__": "example"})
    assert "behind 0, 3 in all" in capsys.readouterr().out
    table = ds.dataset(tmp_path / "lake", format="parquet", partitioning="hive").to_table()
    assert sum(filter(None, table["tea"].to_pylist())) == 3


def test_the_commands_run_in_their_order(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the description behind them, until what there is now is read.

    The session is in another folder than the commands, so what they write is named from the root.
    """
    monkeypatch.chdir(tmp_path)
    Path("orders.toml").write_text(DESCRIPTION)
    assert COMMANDS.count(" --set sink.path=lake --once") == 1
    own = COMMANDS.replace(
        " --once", f" --set sink.path={tmp_path}/lake --set checkpoint={tmp_path}/checkpoints/o --once"
    )
    own += f"$ hubweir pipeline run orders.toml --once --set sink.path={tmp_path}/table --set checkpoint={tmp_path}/c\n"
    with PageSession(tmp_path) as session:
        assert [problem for step in steps(own) if (problem := session.problem(step))] == []
    bodies, columns = (ds.dataset(name, format="parquet", partitioning="hive").to_table() for name in ("lake", "table"))
    assert sorted(bodies["body"].to_pylist()) == [b'{"coffee": 1}', b'{"tea": 2}']
    assert sorted(filter(None, columns["tea"].to_pylist() + columns["coffee"].to_pylist())) == [1, 2]


def test_the_description_is_one(hub: Hub) -> None:
    raw = tomllib.loads(DESCRIPTION)
    found = describe(raw, "orders.toml", connection_string=hub.namespace.connection_string())
    assert (found.name, found.trigger_s, found.parameters["schema"]) == ("orders", 30.0, "tea int, coffee int")


def test_a_program_of_ones_own_runs(
    spark: SparkSession, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_counts_of_the_page.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    hub.send("0", 7)
    raw = {
        "pipeline": "own_counts_of_the_page:start",
        "checkpoint": str(tmp_path / "checkpoint"),
        "source": hub.options(),
        "sink": {"format": "noop"},
    }
    told: list[str] = []
    one = PipelineRun(describe(raw, "test"), told.append)
    one.run(spark, once=True)
    assert one.events == 7 and told[0].startswith("own_counts_of_the_page.start: batch 0, 7 events")


def test_every_pipeline_has_its_line_and_its_promise() -> None:
    for name in READY_MADE:
        assert len(re.findall(rf"^\|.*`{name}`.*\|", PAGE, re.MULTILINE)) >= 2, name
