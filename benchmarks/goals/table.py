"""Figures as a table: the least, the median and the most of their rounds, the goal, and whether it was reached."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from goals.figure import Figure


def table_of(figures: Iterable[Figure]) -> Table:
    table = Table("figure", "least", "median", "most", "goal (moonshot)", "")
    for figure in figures:
        table.add_row(*figure.row())
    return table
