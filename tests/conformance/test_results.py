"""What workers found out comes together where the page is written, and a run that lost some of it writes none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.results import PAGE

ROOT = Path(__file__).resolve().parents[2]
# The whole folder is asked for, and quick because most of it is not collected.
FEW = [
    "tests/conformance",
    *(f"--ignore-glob=*/{each}*" for each in ("test_[!p]", "test_p[!r]", "test_proton", "foreign/")),
]
# No test writes the page of this checkout.
ELSEWHERE = """
import os, pathlib
def pytest_configure():
    import tests.conformance.results as results
    results.PAGE = pathlib.Path(__file__).parent / results.PAGE.name
"""
DIE = """
def pytest_runtest_call(item):
    if "twenty_groups" in item.name:
        os._exit(3)
"""

STRANGE = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    items[0].add_marker(pytest.mark.client("somebody"))
"""


def run(folder: Path, workers: int, plugin: str = "") -> str:
    """What a run prints that writes the page into folder."""
    (folder / "planted.py").write_text(ELSEWHERE + plugin)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    options = ["-p", "planted", "-p", "no:cacheprovider", "-n", str(workers), "--write-table"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *FEW],
        cwd=ROOT,
        env={**environ, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")])},
        capture_output=True,
        text=True,
        timeout=140,
    )
    return done.stdout + done.stderr


@pytest.mark.timeout(300)  # two runs of pytest, 15 s each where nothing else runs
def test_workers_write_the_page_that_one_process_writes(tmp_path: Path) -> None:
    pages = []
    for workers in (0, 2):
        assert "compatibility.md is written" in run(tmp_path, workers)
        pages.append((tmp_path / PAGE.name).read_text())
        (tmp_path / PAGE.name).unlink()
    assert pages[0] == pages[1]
    assert pages[0].count("| holds | scripted |") == 2


def test_a_worker_that_is_lost_takes_results_with_it_so_no_page_is_written(tmp_path: Path) -> None:
    assert "compatibility.md is NOT written: a worker was lost, and its results with it" in run(tmp_path, 1, DIE)
    assert not (tmp_path / PAGE.name).exists()


def test_a_client_without_a_row_is_told_before_any_test_runs(tmp_path: Path) -> None:
    said = run(tmp_path, 0, STRANGE)
    assert "no row for somebody" in said and "passed" not in said
