"""Planted defects that were judged to change nothing: read from their table in docs/reliability.md.

A row is `module | source | planted | reason`: the whole lines that the defect changes, as they are and as planted,
with one space where they have more. A row that names no defect of the present source any more is stale; a test says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PAGE = "docs/reliability.md"
HEADING = "| module | source | planted | why nothing changes |"


@dataclass(frozen=True, slots=True)
class Judged:
    """One row of the table."""

    module: str
    source: str
    planted: str


def judged_equivalent(root: Path) -> set[Judged]:
    """The rows of the table, as texts."""
    rows: set[Judged] = set()
    inside = False
    for line in (root / PAGE).read_text().splitlines():
        if line.strip() == HEADING:
            inside = True
        elif inside and line.startswith("| `"):
            cells = [cell.strip().replace("\\|", "|").strip("`") for cell in line.strip("| ").split(" | ")]
            rows.add(Judged(cells[0], cells[1], cells[2]))
        elif inside and not line.startswith("|"):
            inside = False
    return rows


def cell(text: str) -> str:
    """Lines of source as one cell of the table."""
    return " ".join(text.split())
