"""What of running a pipeline needs no Spark: signals, and the line of an error that a person wants."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from hubweir.pipelines import runner
from hubweir.pipelines.description import describe
from hubweir.pipelines.errors import CheckpointInUse, IllegalDescription, PipelineFailed
from hubweir.pipelines.run_status import FAILED, STOPPED, read_status, status_path
from hubweir.pipelines.runner import PipelineRun, first_line, stop_signals
from hubweir.testing.running_namespace import running_namespace

TRACEBACK = """[STREAM_FAILED] Query [id = 3, runId = 5] ended: [PYTHON_EXCEPTION] Traceback (most recent):
  File "/x/stream_reader.py", line 5, in partitions
    raise DataLoss(
hubweir.spark.errors.DataLoss: 30 events of partition 0 are missing: they were removed
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: x
org.apache.spark.Other: no
"""


def test_a_signal_is_remembered_and_the_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals([]) as is_over:
        assert not is_over()
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_over()
    assert signal.getsignal(signal.SIGTERM) is before


def test_our_own_error_is_found_in_the_text_of_spark() -> None:
    assert first_line(RuntimeError(TRACEBACK)) == "30 events of partition 0 are missing: they were removed"


def test_other_errors_give_the_line_that_ends_their_traceback_or_their_first() -> None:
    other = TRACEBACK.replace("hubweir.spark.errors.DataLoss", "pyarrow.lib.ArrowInvalid")
    assert first_line(RuntimeError(other)).startswith("pyarrow.lib.ArrowInvalid: 30 events")
    other = TRACEBACK.replace("hubweir.spark.errors.DataLoss", "ImportError")
    assert first_line(RuntimeError(other)).startswith("ImportError: 30 events")
    assert first_line(ValueError("short\nlong")) == "short"
    java = (
        "An error occurred while calling o7.agg.\n: org.apache.X: no such column. SQLSTATE: 42703; line 1 pos 4;\n\tat"
    )
    assert first_line(ValueError(java)) == "org.apache.X: no such column."
    failed = "[STREAM_FAILED] Query [id = 6-a, runId = 3-b] terminated with exception: no worker. SQLSTATE: XXKST"
    assert first_line(ValueError(failed)) == "no worker."
    assert first_line(ValueError()) == "ValueError"


class Query:
    """A stream, its writer and its query: two micro-batches, then an error or an end."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self._looks = 0
        self.set: dict[str, Any] = {}
        self.is_stopped = False
        self.recentProgress: list[dict[str, Any]] = []

    def queryName(self, name: str) -> Query:
        self.set["name"] = name
        return self

    def option(self, name: str, value: str) -> Query:
        self.set[name] = value
        return self

    def trigger(self, **how: Any) -> Query:
        self.set |= how
        return self

    def start(self) -> Query:
        return self

    def awaitTermination(self, seconds: float) -> bool:
        number = self._looks = self._looks + 1
        if number == 3:
            if self._error is not None:
                raise self._error
            return True
        source = {"startOffset": {"0": number - 1}, "endOffset": {"0": number}, "latestOffset": {"0": 5}}
        self.recentProgress.append(
            {"batchId": number - 1, "durationMs": {"addBatch": 1, "triggerExecution": 500}, "sources": [source]}
        )
        return False

    def stop(self) -> None:
        self.is_stopped = True


def one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: Query) -> tuple[PipelineRun, list[str]]:
    told: list[str] = []
    text = "Endpoint=sb://h;SharedAccessKeyName=r;SharedAccessKey=secret"
    raw = {
        "pipeline": "to-lake",
        "checkpoint": str(tmp_path / "c"),
        "source": {"eventHub": "o", "connectionString": text},
        "sink": {"path": "lake"},
    }
    monkeypatch.setattr(runner, "load_program", lambda name: lambda job: query)
    return PipelineRun(describe(raw, "test"), told.append), told


def test_each_batch_has_a_line_and_the_status_has_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(None)
    run, told = one_run(tmp_path, monkeypatch, query)
    run.run(None, once=False)  # type: ignore[arg-type]
    assert told == [
        "to-lake: batch 0, 1 events, 2/s, behind 4, 1 in all", "to-lake: batch 1, 1 events, 2/s, behind 3, 2 in all",
    ]  # fmt: skip
    status = read_status(tmp_path / "c")
    assert (status.state, status.batch, status.events, status.behind, status.endpoint) == (STOPPED, 1, 2, 3, "sb://h")
    assert query.is_stopped and "secret" not in (tmp_path / "c.status.json").read_text()
    assert query.set == {
        "name": "to-lake", "checkpointLocation": str(tmp_path / "c"), "processingTime": "60000 milliseconds",
    }  # fmt: skip


def test_a_failure_is_told_and_kept_unless_the_run_was_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, told = one_run(tmp_path, monkeypatch, Query(RuntimeError(TRACEBACK)))
    with pytest.raises(PipelineFailed, match="^pipeline to-lake: 30 events of partition 0 are missing"):
        run.run(None, once=True)  # type: ignore[arg-type]
    status = read_status(tmp_path / "c")
    assert status.state == FAILED and status.failure.startswith("30 events") and len(told) == 2
    asked = iter([False, False, False, True])
    run, _ = one_run(tmp_path, monkeypatch, Query(RuntimeError(TRACEBACK)))
    run.run(None, once=True, is_over=lambda: next(asked))  # type: ignore[arg-type]
    assert read_status(tmp_path / "c").state == STOPPED


def test_a_master_that_gives_no_session_is_a_failure_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the checkpoint is free again, for the run that names the right master."""
    pytest.importorskip("pyspark")

    def session(**how: Any) -> None:
        raise RuntimeError(f"All masters are unresponsive! Giving up.\n\tat org.apache.spark ({how['master']})")

    run, _ = one_run(tmp_path, monkeypatch, Query(None))
    monkeypatch.setattr(runner, "session", session)
    told: list[str] = []
    for _ in range(2):
        with pytest.raises(
            PipelineFailed,
            match=r"^pipeline to-lake: Spark's master spark://h:1 gives no session, .*\\? All masters .* up.$",
        ):
            runner.run(run._description, master="spark://h:1", once=True, tell=told.append)
    # What runs is said before Spark is waited for.
    assert told[1:] == [f"to-lake: to-lake over event hub o, checkpoint {tmp_path}/c, by Spark of spark://h:1"]
    assert read_status(tmp_path / "c").state == FAILED


def test_a_hub_that_is_not_there_is_refused_before_spark_is_asked_for_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "session", lambda **how: pytest.fail("Spark was started"))
    told: list[str] = []
    with running_namespace() as namespace:
        raw = {
            "pipeline": "to-lake",
            "checkpoint": str(tmp_path / "c"),
            "source": {"eventHub": "dishes", "connectionString": namespace.connection_string()},
            "sink": {"path": "lake"},
        }
        with pytest.raises(IllegalDescription, match="no event hub 'dishes'"):
            runner.run(describe(raw, "test"), master="local[2]", once=True, tell=told.append)
    assert not told and not status_path(tmp_path / "c").exists(), "nothing ran"


@pytest.mark.parametrize("how", ["of ours", "of PySpark"])
def test_a_signal_while_spark_starts_ends_the_run_before_its_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """PySpark puts a handler for Ctrl-C in place of ours while it makes its session."""
    sql = pytest.importorskip("pyspark.sql")
    # Tests with Spark in the same process leave theirs.
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", staticmethod(lambda: None))

    class Session:
        is_stopped = False

        def stop(self) -> None:
            self.is_stopped = True
            raise ConnectionRefusedError("the JVM has got the signal, too")

    made, before = Session(), signal.getsignal(signal.SIGINT)

    def session(**_: Any) -> Session:
        if how == "of PySpark":
            signal.signal(signal.SIGINT, signal.default_int_handler)
        os.kill(os.getpid(), signal.SIGINT)
        return made

    query = Query(None)
    run, told = one_run(tmp_path, monkeypatch, query)
    monkeypatch.setattr(runner, "session", session)
    assert runner.run(run._description, master="local[2]", once=False, tell=told.append) == 0
    assert read_status(tmp_path / "c").state == STOPPED and query.set == {} and len(told) == 1
    assert made.is_stopped is (how == "of ours") and signal.getsignal(signal.SIGINT) is before


def test_a_second_run_leaves_the_status_of_the_first_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = one_run(tmp_path, monkeypatch, Query(None))
    run.run(None, once=True)  # type: ignore[arg-type]
    before = read_status(tmp_path / "c")
    second, _ = one_run(tmp_path, monkeypatch, Query(None))
    with run.locked():
        with pytest.raises(CheckpointInUse):
            second.run(None, once=True)  # type: ignore[arg-type]
        with pytest.raises(CheckpointInUse):  # before Spark is asked for anything
            runner.run(second._description, master="nonsense", once=True, tell=pytest.fail)
    assert read_status(tmp_path / "c") == before


def test_batches_that_ended_before_a_stop_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(None)
    run, told = one_run(tmp_path, monkeypatch, query)
    query.awaitTermination(0)
    run.run(None, once=False, is_over=lambda: True)  # type: ignore[arg-type]
    assert len(told) == 1 and read_status(tmp_path / "c").batch == 0


def test_a_batch_without_events_has_no_line_and_the_status_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query(None)
    run, told = one_run(tmp_path, monkeypatch, query)
    source = {"startOffset": {"0": 5}, "endOffset": {"0": 5}, "latestOffset": {"0": 5}}
    query.recentProgress = [{"batchId": 9, "durationMs": {"addBatch": 1, "triggerExecution": 5}, "sources": [source]}]
    run.run(None, once=False, is_over=lambda: True)  # type: ignore[arg-type]
    assert told == [] and (read_status(tmp_path / "c").batch, run.events) == (9, 0)


def test_a_restart_knows_how_far_it_was_until_the_hub_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is repeated is planned without asking: it is not at the end of the hub, though nothing says so."""
    first, _ = one_run(tmp_path, monkeypatch, Query(None))
    first.run(None, once=False)  # type: ignore[arg-type]
    assert read_status(tmp_path / "c").partitions["0"].behind == 3
    query = Query(None)
    source = {"startOffset": {"0": 2}, "endOffset": {"0": 4}, "latestOffset": None}
    query.recentProgress = [{"batchId": 2, "durationMs": {"addBatch": 1, "triggerExecution": 500}, "sources": [source]}]
    again, told = one_run(tmp_path, monkeypatch, query)
    monkeypatch.setattr(query, "start", lambda: (_ for _ in ()).throw(RuntimeError("no")))
    with pytest.raises(PipelineFailed):
        again.run(None, once=False)  # type: ignore[arg-type]
    assert read_status(tmp_path / "c").partitions["0"].next == 2  # a start that failed has read nothing
    monkeypatch.setattr(query, "start", lambda: query)
    again, told = one_run(tmp_path, monkeypatch, query)
    again.run(None, once=False, is_over=lambda: True)  # type: ignore[arg-type]
    assert told == ["to-lake: batch 2, 2 events, 4/s, behind 1, 2 in all"]
