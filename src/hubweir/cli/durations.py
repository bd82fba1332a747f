"""Durations as people write them: 90s, 15m, 24h, 7d."""

from __future__ import annotations

import re

import click

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Duration(click.ParamType[int]):
    """A command line value: a number with a unit, as milliseconds."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"([0-9]{1,9})(ms|s|m|h|d)", str(value).strip())
        if match is None:
            self.fail(f"{value!r} is no duration: write a number and ms, s, m, h or d, such as 24h", param, ctx)
        return int(match[1]) * _UNITS_MS[match[2]]


def duration_text(ms: int) -> str:
    """The shortest exact way to write a duration."""
    for unit, size in reversed(_UNITS_MS.items()):
        if ms and ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"
