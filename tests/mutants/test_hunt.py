"""The hunt on a small checkout of its own: what its tests find, what they miss, what was judged to change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mutants import coverage_map
from tests.mutants.areas import AREAS, Area
from tests.mutants.coverage_map import CoverageMap, measure
from tests.mutants.equivalent import HEADING
from tests.mutants.hunt import draw, hunt_in, percent, report

ROOT = Path(__file__).resolve().parents[2]
AREA = Area("store", ("src/hubweir/store/*.py",), ("src/hubweir/store",))
MODULE = "src/hubweir/store/bounds.py"
SOURCE = """
def is_below(index, end):
    return index < end

def note(seen, index):
    seen.append(index)
    seen.sort()

def nobody_calls_this(index):
    return index < 7
"""
TESTS = """
from hubweir.store.bounds import is_below, note

def test_the_end_is_exclusive():
    assert is_below(1, 2) and not is_below(2, 2)

def test_what_is_noted_is_there():
    seen = []
    note(seen, 1)
    assert seen == [1]

def test_control_of_another_defect_is_asked_about_none():
    seen = [2]
    note(seen, 1)
    assert seen == [1, 2]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A package with one module and its tests, and the hunt's own modules, which measure in the copy."""
    root = tmp_path / "checkout"
    for path, text in {
        "src/hubweir/__init__.py": "",
        # Where a release was made, pytest finds its metadata in src, which names this plugin.
        "src/hubweir/testing/__init__.py": "",
        "src/hubweir/testing/pytest_plugin.py": "",
        "src/hubweir/store/__init__.py": "",
        MODULE: SOURCE,
        "src/hubweir/store/tests/test_bounds.py": TESTS,
        "docs/reliability.md": "# Reliability\n",
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src", "."]\naddopts = "--import-mode=importlib"\n',
        **{f"tests/mutants/{path.name}": path.read_text() for path in (ROOT / "tests/mutants").glob("[!t]*.py")},
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_a_defect_that_no_test_sees_is_told_and_those_that_tests_see_count(checkout: Path) -> None:
    hunt = hunt_in(checkout, AREA, seed=1, minutes=5, workers=1)
    missed = {" ".join(defect.old.split()) for _, defect in hunt.survivors}
    assert missed == {"seen.sort()", "seen.append(index) seen.sort()"}
    assert hunt.found == 2  # the bound, and what is noted
    assert percent(hunt) == 50
    told = report(checkout, hunt)
    assert f"{MODULE}:7: a statement is left out; no test finds it" in told
    assert "  - seen.sort()\n  + pass" in told
    assert (checkout / MODULE).read_text() == SOURCE


def test_what_was_measured_is_kept_until_the_test_or_what_it_runs_changes(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test, measured, failed = "src/hubweir/store/tests/test_bounds.py", 0, ["test that fails"]

    def run(tree: Path, files: list[str], environ: dict[str, str]) -> dict[str, Any]:
        nonlocal measured
        measured += 1
        return {test: {"tests": {"the only test": (0.1, {MODULE: [3], "gone.py": [1]})}, "failed": failed}}

    monkeypatch.setattr(coverage_map, "_run", run)
    expected = CoverageMap(["the only test"], [0.1], {MODULE: {3: [0]}}, failed)
    assert measure(checkout, checkout, AREA, {}) == expected
    assert measure(checkout, checkout, AREA, {}) == expected
    assert measured == 2, "a file with a test that fails is measured each time"
    failed.clear()
    measure(checkout, checkout, AREA, {})
    for number, path in enumerate((test, MODULE, "src/hubweir/store/tests/world.py"), 3):
        assert measure(checkout, checkout, AREA, {}) == expected
        assert measured == number
        with (checkout / path).open("a") as file:
            file.write("\n")
        measure(checkout, checkout, AREA, {})
    assert measured == 6


def test_what_was_judged_to_change_nothing_is_not_planted(checkout: Path) -> None:
    rows = "| `store/bounds.py` | `seen.sort()` | `pass` | nobody reads the order |\n"
    (checkout / "docs/reliability.md").write_text(f"# Reliability\n\n{HEADING}\n|---|---|---|---|\n{rows}")
    known = CoverageMap(["t"], [0.1], {MODULE: dict.fromkeys(range(1, 12), [0])})
    drawn = [" ".join(defect.old.split()) for _, defect in draw(checkout, AREA, known, 1, None)]
    assert "seen.sort()" not in drawn
    assert "seen.append(index)" in drawn


def test_an_area_whose_tests_cannot_run_is_an_error_and_no_score(checkout: Path) -> None:
    (checkout / "src/hubweir/store/tests/test_bounds.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(RuntimeError, match="nothing_of_that_name"):
        hunt_in(checkout, AREA, seed=1, minutes=5, workers=1)


@pytest.mark.parametrize("area", AREAS, ids=lambda area: area.name)
def test_every_pattern_of_an_area_names_something(area: Area) -> None:
    for pattern in area.modules + area.tests:
        assert any(ROOT.glob(pattern)), f"{pattern} names nothing any more"


def test_a_line_that_no_test_runs_gets_no_defect(checkout: Path) -> None:
    known = CoverageMap(["t"], [0.1], {MODULE: {3: [0]}})
    assert {defect.line for _, defect in draw(checkout, AREA, known, 1, None)} == {3}


def test_the_same_seed_draws_the_same_defects_and_another_draws_others_first(checkout: Path) -> None:
    known = CoverageMap(["t"], [0.1], {MODULE: dict.fromkeys(range(1, 12), [0])})

    def order(seed: int) -> list[tuple[int, str]]:
        return [(defect.start, defect.new) for _, defect in draw(checkout, AREA, known, seed, None)]

    assert order(1) == order(1)
    assert sorted(order(1)) == sorted(order(2))
    assert any(order(1) != order(seed) for seed in range(2, 6))


def test_the_quickest_tests_come_first_and_the_slowest_is_always_asked() -> None:
    known = CoverageMap(["slow", "quick", "middle"], [100.0, 0.1, 15.0], {MODULE: {3: [0, 1, 2]}})
    assert known.covering(MODULE, 3, 3, 20.0) == ["quick", "middle", "slow"]
    assert known.covering(MODULE, 3, 3, 1.0) == ["quick", "slow"]
    assert known.covering(MODULE, 4, 4, 20.0) == []
