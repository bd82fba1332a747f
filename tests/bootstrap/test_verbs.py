"""./run answers a wrong call with a clear line and a status, before it installs anything."""

import subprocess
import sys
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
        (["bench", "spine"], "no benchmark 'spine'; there are: none yet"),
        (["bench"], "bench NAME; there are: none yet"),
        (["data", "trains"], "data flights"),
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
