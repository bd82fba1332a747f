"""Problems of a configuration file with their places: all of them are collected before anyone is told.

A Problem names file, line, column and JSON path, what was found there and what may stand there. Keys of authorization
rules are never quoted. A file's problems are bounded: a megabyte of nonsense gives PROBLEMS_LIMIT of them and a count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from hubweir.errors import HubweirError

# More than anyone reads at a time, few enough to print.
PROBLEMS_LIMIT = 100
# Of a quoted value or member name, in characters.
QUOTE_LIMIT = 64

Step = str | int  # a member's name, or an element's index


class Severity(Enum):
    """ERROR: the file is not used. WARNING: it is used; somebody may have meant something else."""

    ERROR = "error"
    WARNING = "warning"


class Kind(Enum):
    """Kinds of problems, for programs; the text is for people."""

    UNREADABLE = "unreadable"  # no such file, too large, not UTF-8
    SYNTAX = "syntax"  # not JSON
    DUPLICATE_MEMBER = "duplicate member"  # one object names a member twice
    MISSING = "missing"  # a required member is not there
    WRONG_TYPE = "wrong type"  # such as a text where an array belongs
    BAD_VALUE = "bad value"  # the right type, out of range or out of the grammar
    WRONG_COUNT = "wrong count"  # too few or too many elements
    DUPLICATE_NAME = "duplicate name"  # two entities with one name
    CONTRADICTION = "contradiction"  # two members that cannot both hold
    UNKNOWN_MEMBER = "unknown member"  # nobody reads it
    NOT_SERVED = "not served"  # legal, and hubweir does not do it


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file. line and column count from 1, in characters; a tab is one. path is a JSON path, root `$`."""

    file: str
    line: int
    column: int
    path: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.path}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. found and allowed are phrases; either may be empty where there is nothing to say."""

    severity: Severity
    kind: Kind
    location: Location
    what: str
    found: str
    allowed: str

    def __str__(self) -> str:
        found = f"; found {self.found}" if self.found else ""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{self.location}: {self.severity.value}: {self.what}{found}{allowed}"


class EmulatorFileError(HubweirError):
    """The configuration cannot be used. problems: errors, then warnings; left_out: how many more there were."""

    def __init__(self, problems: Iterable[Problem], *, left_out: int = 0) -> None:
        self.problems = tuple(problems)
        self.left_out = left_out
        more = [f"and {left_out} more problems"] if left_out else []
        super().__init__("\n".join([*map(str, self.problems), *more]))

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that must go; at least one, unless they are among the left out."""
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)


class Problems:
    """Collects the problems of any number of files. Errors push warnings out when there are too many."""

    def __init__(self) -> None:
        self._errors: list[Problem] = []
        self._warnings: list[Problem] = []
        self._left_out = 0

    def add(self, problem: Problem) -> None:
        """Keep a problem; above PROBLEMS_LIMIT of its severity it is only counted."""
        kept = self._errors if problem.severity is Severity.ERROR else self._warnings
        if len(kept) < PROBLEMS_LIMIT:
            kept.append(problem)
        else:
            self._left_out += 1

    @property
    def failed(self) -> bool:
        """Whether there is any error."""
        return bool(self._errors)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """Those that were kept, in the order in which they were found."""
        return tuple(self._warnings)

    def raise_errors(self) -> None:
        """Raise EmulatorFileError with everything, errors first, when there is any error."""
        if self._errors:
            room = PROBLEMS_LIMIT - len(self._errors)
            dropped = max(0, len(self._warnings) - room)
            raise EmulatorFileError([*self._errors, *self._warnings[:room]], left_out=self._left_out + dropped)


def path_text(steps: Iterable[Step]) -> str:
    """`$.UserConfig.NamespaceConfig[0]`; a name that is no plain word is quoted, and clipped when long."""
    parts = ["$"]
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif step.isascii() and step.isidentifier() and len(step) <= QUOTE_LIMIT:
            parts.append(f".{step}")
        else:
            parts.append(f"[{quoted(step)}]")
    return "".join(parts)


def quoted(text: str) -> str:
    """The text as JSON writes it, on one line, clipped when long."""
    return json.dumps(text if len(text) <= QUOTE_LIMIT else text[:QUOTE_LIMIT] + "…", ensure_ascii=False)
