"""What a demo tells while it runs, and the table at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table


class Report:
    """The table at the end: one row a step, with its rate, and whether what it proves holds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.failed: list[str] = []
        self._rows: list[tuple[str, str, str, str, str]] = []

    @contextmanager
    def step(self, what: str, total: int, *, noun: str = "events") -> Iterator[Callable[[int], None]]:
        """Time a step that handles `total` events (or noun), with a progress bar; yields what moves the bar."""
        columns = TextColumn("{task.description:<26}"), BarColumn(24), MofNCompleteColumn(), TimeElapsedColumn()
        start = time.perf_counter()
        with Progress(*columns, console=self.console, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
        seconds = time.perf_counter() - start
        self._rows.append((what, f"{total:,}", f"{seconds:.1f}", f"{total / seconds:,.0f}", ""))
        self.console.print(f"{what}: {total:,} {noun} in {seconds:.1f} s")

    def check(self, what: str, findings: list[str]) -> None:
        """Note whether the step before proved its point."""
        self._rows[-1] = (*self._rows[-1][:4], "ok" if not findings else "FAILED")
        self.failed += [f"{what}: {finding}" for finding in findings]

    def show(self) -> None:
        """Print the table and what failed."""
        table = Table("step", "count", "seconds", "per second", "equal to the CSV")
        for row in self._rows:
            table.add_row(*row)
        self.console.print(table)
        for line in self.failed:
            self.console.print(line, style="red", markup=False)
