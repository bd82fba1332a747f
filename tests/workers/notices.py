"""What did not run, said loudly at the end, once, also when workers found it out."""

from __future__ import annotations

from typing import Any

import pytest

NOTICES = pytest.StashKey[dict[str, list[str]]]()
OUTPUT = "notices"  # in what a worker hands over when it ends


def notice(config: pytest.Config, title: str, line: str) -> None:
    """Show line under title behind the results."""
    lines = config.stash.setdefault(NOTICES, {}).setdefault(title, [])
    if line not in lines:
        lines.append(line)


def hand_over(config: pytest.Config) -> None:
    """In a worker that ends: give its notices to the process that started it."""
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is not None:
        output[OUTPUT] = config.stash.get(NOTICES, {})


def take_over(config: pytest.Config, output: dict[str, Any]) -> None:
    """Where the results are shown: take the notices of a worker that has ended."""
    for title, lines in output.get(OUTPUT, {}).items():
        for line in lines:
            notice(config, title, line)


def show(config: pytest.Config, reporter: pytest.TerminalReporter) -> None:
    for title, lines in sorted(config.stash.get(NOTICES, {}).items()):
        reporter.section(title, yellow=True)
        for line in sorted(lines):
            reporter.line(line)
