"""Tables for people: plain columns, so that they can be read, copied and cut."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headings on standard output."""
    grid = Table(*headings, box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for row in rows:
        grid.add_row(*row)
    Console(markup=False, highlight=False).print(grid)
