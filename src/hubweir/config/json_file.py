"""One JSON file being read: its value, where each part of it stands, and the problems that are noted on the way.

Nothing is raised for what the file holds: a file that cannot be read has a problem and no root.
"""

from __future__ import annotations

from hubweir.config.file_text import LinePositions, NotText, decode_text
from hubweir.config.jsonc import Duplicate, JsonError, JsonNode, parse_jsonc
from hubweir.config.problems import Kind, Location, Problem, Problems, Severity, Step, path_text


class ConfigFile:
    """file: its name in problems. root: its value, None when it could not be read, which was noted then.

    strict: what would be a warning of an unknown member is an error.
    """

    def __init__(self, data: bytes, *, file: str, problems: Problems, strict: bool) -> None:
        self.file = file
        self._problems = problems
        self._strict = strict
        self._positions = LinePositions("")
        self.root = self._parse(data)

    def _parse(self, data: bytes) -> JsonNode | None:
        try:
            text = decode_text(data)
            self._positions = LinePositions(text)
            document = parse_jsonc(text)
        except NotText as error:
            place = Location(self.file, error.line, error.column, "$")
            self._problems.add(Problem(Severity.ERROR, Kind.UNREADABLE, place, error.what, error.found, error.allowed))
            return None
        except JsonError as error:
            self.error(Kind.SYNTAX, error.at, error.steps, error.what, found=error.found, allowed=error.allowed)
            return None
        for duplicate in document.duplicates:
            self._note_duplicate(duplicate)
        return document.root

    def _note_duplicate(self, duplicate: Duplicate) -> None:
        line, _ = self._positions.line_and_column(duplicate.first_at)
        found = f"the name again; it stands on line {line} already"
        what = "a member is given twice"
        self.error(Kind.DUPLICATE_MEMBER, duplicate.at, duplicate.steps, what, found=found, allowed="each name once")

    def location(self, at: int, steps: tuple[Step, ...]) -> Location:
        """The place of the character with index at; steps: the path to it."""
        line, column = self._positions.line_and_column(at)
        return Location(self.file, line, column, path_text(steps))

    def error(
        self, kind: Kind, at: int, steps: tuple[Step, ...], what: str, *, found: str = "", allowed: str = ""
    ) -> None:
        """Note an error: what is wrong, what was found, and what is allowed there."""
        place = self.location(at, steps)
        self._problems.add(Problem(Severity.ERROR, kind, place, what, found, allowed))

    def warn(
        self, kind: Kind, at: int, steps: tuple[Step, ...], what: str, *, found: str = "", allowed: str = ""
    ) -> None:
        """Note a warning, in the same words; of an unknown member it is an error where the reader is strict."""
        strict = self._strict and kind is Kind.UNKNOWN_MEMBER
        severity = Severity.ERROR if strict else Severity.WARNING
        self._problems.add(Problem(severity, kind, self.location(at, steps), what, found, allowed))
