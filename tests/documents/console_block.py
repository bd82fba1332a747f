"""What a console block of a page holds: commands, and what each of them prints."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A command and what the page says that it prints."""

    command: str
    output: str


def steps(block: str) -> list[Step]:
    return [
        Step(command, output) for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]
