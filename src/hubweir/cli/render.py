"""Tables for people: plain columns, so that they can be read, copied and cut."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

# Of what is not a terminal: so wide that no row is folded when it is piped or kept. A table is as wide as its longest
# row, and metadata of users and SQL expressions alone have 1,024 characters.
PIPE_WIDTH = 100_000


class _Console(Console):
    """Leaves a pipe that its reader closed to main.py, as all other printing does."""

    def on_broken_pipe(self) -> None:
        raise


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under headings on standard output."""
    grid = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        grid.add_column(heading, overflow="fold")  # a terminal may be too narrow: nothing is cut off there either
    for row in rows:
        grid.add_row(*row)
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    _Console(markup=False, highlight=False, width=width).print(grid)
