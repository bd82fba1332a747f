"""When Spark is fetched, and with what, on a small checkout of its own: nothing is installed."""

import os
from pathlib import Path

import pytest

from bootstrap import spark, verbs
from bootstrap.environment import DEMO, TEST, Environment, NotReady
from bootstrap.spark import JAVA, SPARK
from bootstrap.steps import StepFailed
from hubweir.pipelines.ready_made import READY_MADE

Installed = list[tuple[str, ...]]


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    (tmp_path / "requirements").mkdir()
    for name in (DEMO, TEST, SPARK, JAVA):
        (tmp_path / "requirements" / name).write_text(f"{name}==1.0\n")
    made = Environment(tmp_path)
    made.python.parent.mkdir(parents=True)
    made.python.touch()
    made.state = {"python": made.identity(), DEMO: made.digest(f"requirements/{DEMO}")}
    made.state |= {TEST: made.digest(f"requirements/{TEST}"), "kernels": "no", "kernel sources": made.kernel_key()}
    made.write_state()
    return Environment(tmp_path)


@pytest.fixture
def installed(env: Environment, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """What would have been installed."""
    found: Installed = []

    def install(requirements: str, *options: str) -> None:
        found.append((requirements, *options))
        env.state[requirements] = env.digest(f"requirements/{requirements}")
        env.write_state()

    monkeypatch.setattr(env, "install", install)
    return found


def java(monkeypatch: pytest.MonkeyPatch, folder: Path, said: str) -> None:
    program = folder / "java-home" / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder / "java-home"))


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for Java")
@pytest.mark.parametrize(
    ("said", "expected"),
    [('openjdk version "17.0.15"', [SPARK]), ('java version "1.8.0_1"', [SPARK, JAVA]), ("what?", [SPARK, JAVA])],
)
def test_spark_comes_once_and_a_java_only_where_there_is_none(
    env: Environment,
    installed: Installed,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    said: str,
    expected: list[str],
) -> None:
    java(monkeypatch, tmp_path, said)
    for _ in range(2):
        spark.ensure(env)
    assert [name for name, *_ in installed] == expected
    assert all("--no-build-isolation" in options for _, *options in installed)


def test_machine_without_any_java_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not spark.has_java()


def failing(monkeypatch: pytest.MonkeyPatch, env: Environment) -> None:
    def install(requirements: str, *options: str) -> None:
        raise StepFailed("no index")

    monkeypatch.setattr(env, "install", install)


def test_spark_that_cannot_be_had_is_told(env: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, env)
    with pytest.raises(NotReady, match="no index\nSpark cannot be installed here"):
        spark.ensure(env)


def test_tests_go_on_without_spark_and_say_so(
    env: Environment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing(monkeypatch, env)
    spark.ensure_for_tests(env)
    assert "NOT run" in capsys.readouterr().err


@pytest.fixture
def finished(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    calls: list[list[str]] = []
    monkeypatch.setattr(verbs, "finish", lambda env, arguments: calls.append(list(arguments)) or 0)
    return calls


def test_python_gets_spark_when_it_is_asked_for(
    env: Environment, installed: Installed, finished: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "has_java", lambda: True)
    assert verbs.python(["job.py", "--with", "spark"], env) == 0
    assert installed == []  # the job's own words
    assert verbs.python(["--with", "spark", "job.py", "more"], env) == 0
    assert [name for name, *_ in installed] == [SPARK]
    assert finished == [["job.py", "--with", "spark"], ["job.py", "more"]]


def test_the_campaign_is_the_kill_test_at_twenty_kills(
    env: Environment, installed: Installed, finished: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "has_java", lambda: True)
    monkeypatch.setattr(verbs.Environment, "ensure", lambda *_: None)
    monkeypatch.delenv("HUBWEIR_SPARK_KILLS", raising=False)
    script = env.root / "tests" / "spark" / "test_exactly_once.py"
    script.parent.mkdir(parents=True)
    script.touch()
    try:
        assert verbs.campaign(["spark", "-x"], env) == 0
        assert os.environ["HUBWEIR_SPARK_KILLS"] == "20"
    finally:
        os.environ.pop("HUBWEIR_SPARK_KILLS", None)
    assert [name for name, *_ in installed] == [SPARK]
    assert finished == [["-m", "pytest", str(script), "--all", "-x"]]


def test_only_the_benchmark_of_spark_brings_it(
    env: Environment, installed: Installed, finished: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "has_java", lambda: True)
    (env.root / "benchmarks").mkdir()
    for name in ("spine", "spark"):
        (env.root / f"benchmarks/{name}.py").touch()
    assert verbs.run("bench", ["spine"], env) == 0
    assert installed == []
    assert verbs.run("bench", ["spark", "--only", "read"], env) == 0
    assert [name for name, *_ in installed] == [SPARK]
    assert finished[1] == [str(env.root / "benchmarks/spark.py"), "--only", "read"]


@pytest.fixture
def checked(env: Environment, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the command line would have looked at; a file that is not there is wrong."""
    calls: list[list[str]] = []

    def call(command: list[str], stdout: int) -> int:
        calls.append(command[1:])
        return int("misspelt.toml" in command)

    monkeypatch.setattr(verbs.subprocess, "call", call)
    return calls


def test_running_a_pipeline_brings_spark_and_listing_them_does_not(
    env: Environment,
    installed: Installed,
    finished: list[list[str]],
    checked: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark, "has_java", lambda: True)
    command_line = env.root / "src/hubweir/cli/main.py"
    command_line.parent.mkdir(parents=True)
    command_line.touch()
    (env.root / "src/hubweir/pipelines/lake").mkdir(parents=True)
    (env.root / "src/hubweir/pipelines/lake/to_lake.py").touch()
    run = ["pipeline", "run"]
    for rest in (["pipeline", "list"], [*run, "--help"], [*run, "to-lake", "-h"], run, [*run, "to-lak", "--once"]):
        assert verbs.run("hubweir", rest, env) == 0
    assert installed == checked == []
    calls = len(finished)
    assert verbs.run("hubweir", [*run, "misspelt.toml"], env) == 1
    assert installed == [] and len(finished) == calls
    for _ in range(2):
        assert verbs.run("hubweir", [*run, "--once", "to-lake"], env) == 0
    assert [name for name, *_ in installed] == [SPARK]
    assert finished[-1] == ["-m", "hubweir", *run, "--once", "to-lake"]
    # With Spark there it sees for itself.
    assert checked == [["-m", "hubweir", *run, "misspelt.toml", "--check"], [*finished[-1], "--check"]]


@pytest.mark.parametrize("name", [*READY_MADE, "orders.toml", "mine:start"])
def test_every_pipeline_that_there_is_counts_as_one(name: str) -> None:
    checkout = Environment(Path(__file__).resolve().parents[2])
    assert verbs.runs_pipeline(["pipeline", "run", name], checkout)
    assert not verbs.runs_pipeline(["pipeline", "show", name], checkout)


@pytest.mark.parametrize("arguments", [["--with"], ["--with", "flink", "job.py"]])
def test_other_extras_are_refused(env: Environment, finished: list[list[str]], arguments: list[str]) -> None:
    with pytest.raises(verbs.Wrong, match="the one extra is spark"):
        verbs.python(arguments, env)
    assert finished == []
