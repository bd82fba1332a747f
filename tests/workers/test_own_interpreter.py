"""Tests that run in an interpreter of their own say there what they would say here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.own_interpreter import IS_CHILD, outcomes_apart

ROOT = Path(__file__).resolve().parents[2]
FILE = """
import os
import pytest

def test_passes(): assert os.getpid() != {pid}
def test_fails(): assert os.getpid() == {pid}, "in a process of its own"
@pytest.mark.parametrize("number", [1, 2])
def test_of_many(number): assert number == 1
@pytest.mark.skip
def test_left_out(): pass
@pytest.fixture
def broken(): raise OSError
def test_without_its_fixture(broken): pass
"""


def test_each_test_of_a_file_has_its_outcome_of_one_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "test_apart.py"
    path.write_text(FILE.format(pid=os.getpid()))
    outcomes, output = outcomes_apart(ROOT, str(path))
    assert outcomes == {
        "test_passes": "passed",
        "test_fails": "failure",
        "test_of_many[1]": "passed",
        "test_of_many[2]": "failure",
        "test_left_out": "skipped",
        "test_without_its_fixture": "error",
    }
    assert "in a process of its own" in output


def test_a_file_that_cannot_be_read_has_no_outcome_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "test_apart.py"
    path.write_text("import nothing_of_this_name")
    outcomes, output = outcomes_apart(ROOT, str(path))
    assert "passed" not in outcomes.values() and "nothing_of_this_name" in output


@pytest.mark.own_interpreter
def test_a_marked_test_runs_apart() -> None:
    assert IS_CHILD in os.environ
