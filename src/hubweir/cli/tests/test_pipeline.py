"""hubweir pipeline: what can be listed, checked and told without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubweir.cli import pipeline as module
from hubweir.cli.pipeline import pipeline
from hubweir.pipelines.description import describe
from hubweir.pipelines.ready_made import READY_MADE
from hubweir.pipelines.run_status import RUNNING, STOPPED, PartitionStatus, RunStatus, write_status
from hubweir.testing.running_namespace import running_namespace

NOWHERE = "Endpoint=sb://127.0.0.1:9;SharedAccessKeyName=r;SharedAccessKey=k;UseDevelopmentEmulator=true"


def test_all_are_listed() -> None:
    said = CliRunner().invoke(pipeline, ["list"])
    assert said.exit_code == 0 and all(name in said.output for name in READY_MADE)


@pytest.mark.parametrize("name", READY_MADE)
def test_what_is_shown_is_a_description_to_fill_in(name: str) -> None:
    said = CliRunner().invoke(pipeline, ["show", name])
    shown = tomllib.loads(said.output.replace("= …", '= "…"'))
    assert shown["pipeline"] == name
    assert set(shown["sink"]) == {field.name for field in READY_MADE[name].sink}
    assert describe(shown, "shown", connection_string=NOWHERE).pipeline == name


def test_listing_loads_neither_spark_nor_arrow() -> None:
    code = (
        "import sys; from hubweir.cli.main import hubweir; hubweir(['pipeline', 'list'], standalone_mode=False); "
        "print(sorted({'pyspark', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.splitlines()[-1] == "[]"


def test_without_spark_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    right = ["run", "to-lake", "--set", "source.eventHub=orders", "--set", "sink.path=lake"]
    said = CliRunner().invoke(pipeline, right)
    assert said.exit_code == 1
    assert "pip install 'hubweir[spark]'" in said.output and "./run python --with spark -m hubweir" in said.output


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "cannot be read"),
        ("pipeline =", "is no TOML"),
        ('pipeline = "to-lake"\n[source]\neventHub = "orders"', "sink.path is missing: folder of the table"),
        ('pipeline = "to-lake"\n[source]\ncolumns = "bodi"\n[sink]\npath = "lake"', "source: "),
    ],
)
def test_a_description_that_is_wrong_is_refused_where_there_is_no_spark(
    text: str | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anybody looks for it, which ./run would fetch."""
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    file = tmp_path / "orders.toml"
    if text is not None:
        file.write_text(text)
    for check in ([], ["--check"]):
        said = CliRunner().invoke(pipeline, ["run", str(file), "--set", "trigger=once", *check])
        assert said.exit_code == 1 and str(said.exception).startswith(f"{file}") and why in str(said.exception)


def test_a_description_is_checked_without_spark() -> None:
    code = (
        "import sys; from hubweir.cli.main import hubweir; hubweir(['pipeline', 'run', 'to-lake', '--check', "
        f"'--set', 'source.eventHub=orders', '--set', 'sink.path=lake', '--connection-string', {NOWHERE!r}], "
        "standalone_mode=False); print(sorted({'pyspark', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.splitlines() == ["to-lake: the description is right", "[]"]


def test_a_hub_that_is_not_there_is_refused_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which ./run asks for before it fetches Spark."""
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with running_namespace() as namespace:
        command = ["run", "to-lake", "--check", "--set", "source.eventHub=orders", "--set", "sink.path=lake"]
        command += ["--connection-string", namespace.connection_string()]
        refused = CliRunner().invoke(pipeline, command)
        namespace.create_event_hub("orders")
        right = CliRunner().invoke(pipeline, command)
    assert refused.exit_code == 1 and "`hubweir eventhub create orders`" in str(refused.exception)
    assert right.output == "to-lake: the description is right\n"


def test_a_name_that_is_no_pipeline_is_refused_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anybody looks for Spark, which ./run would fetch."""
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    said = CliRunner().invoke(pipeline, ["run", "to-lak", "--set", "source.eventHub=orders"])
    assert str(said.exception).startswith("there is no pipeline 'to-lak': use to-lake, ")


def test_status_tells_what_the_last_batch_saw_when_the_namespace_does_not_answer(tmp_path: Path) -> None:
    partitions = {"0": PartitionStatus(70, 5), "1": PartitionStatus(9, 0)}
    write_status(tmp_path / "orders", RunStatus("orders", "to-lake", "hub", STOPPED, 1, 0, 3, 79, 12.0, partitions))
    said = CliRunner().invoke(
        pipeline, ["status", "--checkpoint", str(tmp_path / "orders"), "--connection-string", NOWHERE]
    )
    assert "orders (to-lake): stopped, batch 3, 12 events/s, behind 5 when it last looked" in said.output
    assert ["0", "70", "5"] in [line.split() for line in said.output.splitlines()]


def test_status_asks_the_hub_how_far_it_is_now(tmp_path: Path) -> None:
    with running_namespace() as namespace:
        namespace.create_event_hub("hub", partition_count=2)
        text = namespace.connection_string()
        with module.BlockingEventHubClient.from_connection_string(text, "hub") as client:
            client.sender(partition_id="1").send([b"x"] * 30)
        endpoint = module.ConnectionString.parse(text).endpoint
        partitions = {"1": PartitionStatus(9, 0)}
        status = RunStatus("orders", "to-lake", "hub", STOPPED, 1, 0, 3, 9, 1.0, partitions, endpoint=endpoint)
        write_status(tmp_path / "orders", status)
        said = CliRunner().invoke(
            pipeline, ["status", "--checkpoint", str(tmp_path / "orders"), "--connection-string", text]
        )
        write_status(tmp_path / "other", replace(status, endpoint="sb://elsewhere"))
        other = CliRunner().invoke(
            pipeline, ["status", "--checkpoint", str(tmp_path / "other"), "--connection-string", text]
        )
    assert "behind 0 when it last looked" in other.output
    assert "behind 21 now" in said.output
    assert [line.split() for line in said.output.splitlines()[-2:]] == [["0", "0", "0"], ["1", "9", "21"]]


def test_status_over_tls_trusts_the_authority_that_the_command_line_names(tmp_path: Path) -> None:
    with running_namespace() as namespace:
        namespace.create_event_hub("hub", partition_count=1)
        text = namespace.connection_string(plain=False)
        endpoint = module.ConnectionString.parse(text).endpoint
        status = RunStatus("orders", "to-lake", "hub", STOPPED, 1, 0, endpoint=endpoint)
        write_status(tmp_path / "orders", status)
        command = ["status", "--checkpoint", str(tmp_path / "orders"), "--connection-string", text]
        said = CliRunner().invoke(pipeline, command, env={"HUBWEIR_CA_FILE": str(namespace.ca_file)})
        without = CliRunner().invoke(pipeline, command)
    assert "behind 0 now" in said.output and "behind 0 when it last looked" in without.output


def test_a_run_that_was_killed_is_told_from_one_that_runs(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    for pid, state in ((os.getpid(), "running"), (ended.pid, "killed")):
        write_status(tmp_path / "orders", RunStatus("orders", "to-lake", "hub", RUNNING, pid, 0))
        said = CliRunner().invoke(pipeline, ["status", "--checkpoint", str(tmp_path / "orders")])
        assert f"orders (to-lake): {state}, no batch in this run, behind 0" in said.output


def test_a_checkpoint_of_another_name_than_its_pipeline_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs may have one name: of `status` alone nobody could tell which is which."""
    monkeypatch.chdir(tmp_path)
    for folder in ("first", "second"):
        write_status(Path("checkpoints") / folder, RunStatus("to-lake", "to-lake", "hub", STOPPED, 1, 0, 3))
    said = CliRunner().invoke(pipeline, ["status", "--connection-string", NOWHERE]).output
    assert [line.partition(":")[0] for line in said.splitlines() if line.startswith("to-lake")] == [
        f"to-lake (to-lake) in checkpoints/{folder}" for folder in ("first", "second")
    ]


def test_no_pipelines_are_said_to_be_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "no pipeline has run here" in CliRunner().invoke(pipeline, ["status"]).output


def test_status_takes_a_name_or_a_file_and_says_which_names_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    for name in ("orders", "bills"):
        write_status(Path("checkpoints") / name, RunStatus(name, "to-lake", "hub", STOPPED, 1, 0))
    write_status(Path("elsewhere"), RunStatus("tea", "to-lake", "hub", STOPPED, 1, 0))
    Path("tea.toml").write_text(
        'pipeline = "to-lake"\ncheckpoint = "elsewhere"\n[source]\neventHub = "hub"\n[sink]\npath = "lake"\n'
    )
    said = {name: CliRunner().invoke(pipeline, ["status", name]) for name in ("orders", "tea.toml", "beer")}
    assert "orders (to-lake)" in said["orders"].output and "bills" not in said["orders"].output
    assert "tea (to-lake): stopped" in said["tea.toml"].output
    assert str(said["beer"].exception) == (
        "no pipeline beer has run here; in checkpoints: bills, orders; --checkpoint DIR names another place"
    )
    both = CliRunner().invoke(pipeline, ["status", "orders", "--checkpoint", "elsewhere"])
    assert both.exit_code == 2 and "not both" in both.output
