"""What workers found out comes together where the page is written, and a run that lost some of it writes none."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

from tests.conformance.results import PAGE
from tests.conformance.runs_of_pytest import runs_of_pytest

# The whole folder is asked for, and quick because most of it is not collected: the page has results of two files, so
# each of two workers brings some.
FEW = [
    "tests/conformance",
    *(f"--ignore-glob=*/{each}*" for each in ("test_[!hp]", "test_h[!e]", "test_p[!r]", "test_pr[!o]", "test_proton")),
    "--ignore-glob=*/foreign/*",
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


# Of each run, how many workers it has, and a plugin of its own.
RUNS = {"alone": (0, ""), "two workers": (2, ""), "a lost worker": (1, DIE), "a strange client": (0, STRANGE)}

pytestmark = pytest.mark.timeout(300)  # all runs have one process, a minute on a busy machine


@dataclass(frozen=True)
class Told:
    """printed: by a run. page: what it wrote; None: nothing."""

    printed: str
    page: str | None = field(repr=False)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """What each run tells: all are asked to write the page, each into a folder of its own."""
    folders = {name: tmp_path_factory.mktemp("page") for name in RUNS}
    runs = []
    for number, (name, (workers, plugin)) in enumerate(RUNS.items()):
        (folders[name] / f"planted_{number}.py").write_text(ELSEWHERE + plugin)
        runs.append(["-p", f"planted_{number}", "-n", str(workers), "--write-table", *FEW])
    printed = runs_of_pytest(runs, list(folders.values()))
    pages = [folder / PAGE.name for folder in folders.values()]
    return {
        name: Told(text, page.read_text() if page.exists() else None)
        for name, text, page in zip(RUNS, printed, pages, strict=True)
    }


def test_workers_write_the_page_that_one_process_writes(told: dict[str, Told]) -> None:
    alone, workers = told["alone"], told["two workers"]
    assert "compatibility.md is written" in alone.printed and "compatibility.md is written" in workers.printed
    assert alone.page is not None and alone.page == workers.page
    assert alone.page.count("| holds | scripted |") == 3


def test_a_worker_that_is_lost_takes_results_with_it_so_no_page_is_written(told: dict[str, Told]) -> None:
    lost = told["a lost worker"]
    assert "compatibility.md is NOT written: a worker was lost, and its results with it" in lost.printed
    assert lost.page is None


def test_a_client_without_a_row_is_told_before_any_test_runs(told: dict[str, Told]) -> None:
    said = told["a strange client"].printed
    assert re.search(r"^ERROR: tests/conformance/test_health_page.py.* no row for somebody", said, re.MULTILINE)
    assert "%]" not in said, "no test has run"
