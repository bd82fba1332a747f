"""./run answers a wrong call with a clear line and a status, before it installs anything."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bootstrap import verbs

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dmeo"], "no verb 'dmeo'"),
        (["demo"], "does not have the demo (demo/flights_on_spark.py)"),
        (["demo", "--without-spark"], "does not have the demo (demo/flights.py)"),
        (["serve"], "does not have the command line"),
        (["hubweir", "serve"], "does not have the command line"),
        (["conformance"], "does not have its tests"),
        (["mutants", "auth"], "does not have the hunt for planted defects"),
        (["bench", "spine"], "no benchmark 'spine'; there are: none yet"),
        (["bench"], "bench NAME; there are: none yet"),
        (["data", "trains"], "data flights"),
        (["pictures"], "does not have its pictures"),
        (["campaign"], "campaign spark"),
        (["campaign", "spark"], "does not have its tests"),
    ],
)
def test_a_call_that_cannot_work_says_why(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verbs.main(str(tmp_path), "menu", arguments) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("option", "status"), [("--without-sprak", 2), ("--help", 0)])
def test_a_misspelt_option_of_the_demo_and_its_help_fetch_nothing(
    option: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        verbs.main(str(tmp_path), "menu", ["demo", option])
    assert ended.value.code == status
    assert "usage: ./run demo [-h] [--without-spark] [--keep DIR]" in "".join(capsys.readouterr())
    assert not list(tmp_path.iterdir())


def test_the_benchmarks_are_listed_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "benchmarks").mkdir()
    for name in ("spine", "scan", "_ceilings"):
        (tmp_path / f"benchmarks/{name}.py").touch()
    assert verbs.main(str(tmp_path), "menu", ["bench"]) == 2
    assert "there are: scan, spine" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_run_alone_prints_the_menu(arguments: list[str]) -> None:
    shown = subprocess.run([sys.executable, ROOT / "run", *arguments], capture_output=True, text=True, check=True)
    assert "./run VERB" in shown.stdout
    assert shown.stderr == ""


@pytest.mark.parametrize(
    ("cores", "rest", "passed_on"),
    [
        (1, [], ["-n", "4", "--durations=10"]),
        (2, [], ["-n", "8", "--durations=10"]),
        (64, ["--all"], ["-n", "8", "--all", "--durations=10"]),
        (2, ["-n", "0"], ["-n", "0", "--durations=10"]),
        (2, ["-n3", "--all"], ["-n3", "--all", "--durations=10"]),
    ],
)
def test_the_whole_run_is_checked_and_goes_on_in_workers(
    cores: int, rest: list[str], passed_on: list[str], calls: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert verbs.test(rest, verbs.Environment(ROOT)) == 0
    assert calls == [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"], ["pytest", *passed_on]]


@pytest.mark.parametrize("rest", [["src/hubweir/kernels", "-k", "crc"], ["src", "-n", "2"], ["-x"]])
def test_a_part_runs_alone_and_as_it_was_asked_for(rest: list[str], calls: list[list[str]]) -> None:
    assert verbs.test(rest, verbs.Environment(ROOT)) == 0
    assert calls == [["pytest", *rest]]


def test_a_check_that_fails_stops_before_the_tests(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "call", lambda command, cwd: 7)
    assert verbs.test([], verbs.Environment(ROOT)) == 7
    assert calls == []


@pytest.mark.parametrize(
    ("arguments", "told", "kept"),
    [
        (["-m", "pytest", "tests"], "1", True),
        (["-m", "pytest", "tests"], "", False),
        (["-m", "pytest", "tests"], None, False),
        (["-m", "hubweir", "serve"], "1", False),
    ],
)
def test_what_tests_compile_is_kept_apart_where_none_may_stand_beside_the_sources(
    arguments: list[str], told: str | None, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPYCACHEPREFIX", raising=False)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    if told is not None:
        monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", told)
    monkeypatch.setattr(os, "chdir", lambda folder: None)
    environs: list[dict[str, str]] = []
    monkeypatch.setattr(os, "execve", lambda program, command, environ: environs.append(environ))
    monkeypatch.setattr(subprocess, "call", lambda command, env: environs.append(env))  # on Windows
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    env = verbs.Environment(tmp_path)
    folders = [tmp_path / "temporary", tmp_path / "src"]
    compiled = [env.folder / "bytecode" / each.relative_to(each.anchor) / "x.pyc" for each in folders]
    for each in compiled:
        each.parent.mkdir(parents=True)
        each.touch()
    verbs.finish(env, arguments)
    assert [each.exists() for each in compiled] == [not kept, True]  # of temporary files nothing is kept for ever
    environ = environs.pop()
    assert environ.get("PYTHONPYCACHEPREFIX") == (str(env.folder / "bytecode") if kept else None)
    assert bool(environ.get("PYTHONDONTWRITEBYTECODE")) is bool(told and not kept)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would have run in the environment, which is taken for ready."""
    made: list[list[str]] = []

    def ran(arguments: list[str]) -> int:
        made.append([*arguments[1:]])  # behind -m
        return 0

    monkeypatch.setattr(verbs.spark, "ensure_for_tests", lambda env: None)
    monkeypatch.setattr(verbs, "tell_kernels", lambda env: None)
    monkeypatch.setattr(verbs, "finish", lambda env, arguments: ran(arguments))
    monkeypatch.setattr(subprocess, "call", lambda command, cwd: ran(command[1:]))
    return made
