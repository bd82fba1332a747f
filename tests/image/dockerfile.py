"""A Dockerfile as instructions, as far as ours uses the language."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field


@dataclass
class Stage:
    """From one FROM to the next: the base, the name or None, and (instruction, arguments) in order."""

    base: str
    name: str | None
    steps: list[tuple[str, str]] = field(default_factory=list)

    def of(self, instruction: str) -> list[str]:
        return [arguments for name, arguments in self.steps if name == instruction]

    def environment(self) -> dict[str, str]:
        return dict(part.split("=", 1) for text in self.of("ENV") for part in shlex.split(text))

    def commands(self) -> list[list[str]]:
        """The commands of its RUN lines, taken apart at `&&`."""
        return [shlex.split(part) for text in self.of("RUN") for part in text.split("&&")]

    def copied(self) -> list[tuple[list[str], str]]:
        """Sources and target of each COPY from the build context."""
        parts = [shlex.split(text) for text in self.of("COPY") if not text.startswith("--from")]
        return [(words[:-1], words[-1]) for words in parts]


def parse(text: str) -> list[Stage]:
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    stages: list[Stage] = []
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        instruction, _, arguments = line.strip().partition(" ")
        if instruction == "FROM":
            base, _, name = arguments.partition(" AS ")
            stages.append(Stage(base, name or None))
        else:
            stages[-1].steps.append((instruction, arguments.strip()))
    return stages
