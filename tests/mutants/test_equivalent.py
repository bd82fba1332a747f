"""The table of planted defects that change nothing: each row still names one, and a row names no more than its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.areas import PACKAGE
from tests.mutants.defects import defects_of
from tests.mutants.equivalent import HEADING, Judged, judged_equivalent
from tests.mutants.hunt import judged

ROOT = Path(__file__).resolve().parents[2]
ROWS = sorted(judged_equivalent(ROOT), key=lambda row: (row.module, row.source, row.planted))
MODULES = sorted({row.module for row in ROWS})


@pytest.mark.parametrize("name", MODULES)
def test_every_row_names_a_defect_of_the_present_source(name: str) -> None:
    module = f"{PACKAGE}/{name}"
    plantable = {judged(module, defect) for defect in defects_of((ROOT / module).read_bytes())}
    assert [row for row in ROWS if row.module == name and row not in plantable] == [], "stale: take them out"


def test_a_row_is_read_with_the_bars_of_its_source(tmp_path: Path) -> None:
    page = tmp_path / "docs/reliability.md"
    page.parent.mkdir()
    page.write_text(f"{HEADING}\n|---|---|---|---|\n| `a.py` | `x = y \\| 1` | `x = y \\| 2` | nobody reads x |\n")
    assert judged_equivalent(tmp_path) == {Judged("a.py", "x = y | 1", "x = y | 2")}


def test_a_row_names_the_whole_line_so_that_the_same_number_elsewhere_is_planted() -> None:
    source = b"def first():\n    return 7\n\ndef second():\n    x = [7]\n    return x\n"
    named = {judged("a.py", defect) for defect in defects_of(source)}
    assert named == {Judged("a.py", "return 7", "return 8"), Judged("a.py", "x = [7]", "x = [8]")}
