"""The members of a JSON object, each read with its type and range; whatever is wrong is noted with its place.

Every reading method returns a value or None. None means: not there, null, or wrong, and then a Problem was noted, so
a reader goes on and finds the rest. Integers may be texts of ASCII digits and booleans `"true"` / `"false"` in any
case, as the official loaders take them. finish() warns of every member that nobody asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TypeVar

from hubweir.config.json_file import ConfigFile
from hubweir.config.jsonc import JsonNode, Member
from hubweir.config.problems import QUOTE_LIMIT, Kind, Location, Step, quoted
from hubweir.errors import ServiceError
from hubweir.namespace.iso_duration import BadDuration, WrittenDuration, duration_text, written_duration

_Choice = TypeVar("_Choice", bound=Enum)
# Of an integer that is given as a text.
_DIGITS_LIMIT = 18


class Fields:
    """The members of one object. steps: the path to it."""

    def __init__(self, file: ConfigFile, at: int, members: dict[str, Member], steps: tuple[Step, ...]) -> None:
        self.file = file
        self.at = at
        self.steps = steps
        self._members = members
        self._known: dict[str, None] = {}

    @property
    def location(self) -> Location:
        """The place of the object itself."""
        return self.file.location(self.at, self.steps)

    def member(self, name: str, *, required: bool = False, allowed: str = "") -> JsonNode | None:
        """The value, when it is there and not null. A required one that is not there is noted at the object."""
        self._known[name] = None
        member = self._members.get(name)
        if member is not None and member.node.value is not None:
            return member.node
        if required:
            at = self.at if member is None else member.node.at
            found = "nothing" if member is None else "null"
            what = f"the member {name} is needed"
            self.file.error(Kind.MISSING, at, (*self.steps, name), what, found=found, allowed=allowed)
        return None

    def ignore(self, *names: str) -> None:
        """These may stand here and mean nothing."""
        self._known.update(dict.fromkeys(names))

    def holds_any(self) -> bool:
        """True when at least one member is there that a method was asked for, and is not null."""
        return any(name in self._known and member.node.value is not None for name, member in self._members.items())

    def place(self, name: str) -> Location:
        """Where the member's value stands, or the object when the member is not there."""
        member = self._members.get(name)
        return self.location if member is None else self.file.location(member.node.at, (*self.steps, name))

    def bad(self, name: str, what: str, *, kind: Kind = Kind.BAD_VALUE, found: str = "", allowed: str = "") -> None:
        """Note an error at the member's value."""
        member = self._members.get(name)
        at = self.at if member is None else member.node.at
        self.file.error(kind, at, (*self.steps, name), what, found=found, allowed=allowed)

    def warn(self, name: str, what: str, *, kind: Kind, found: str = "", allowed: str = "") -> None:
        """Note a warning at the member's value."""
        member = self._members.get(name)
        at = self.at if member is None else member.node.at
        self.file.warn(kind, at, (*self.steps, name), what, found=found, allowed=allowed)

    def wrong(self, name: str, what: str, *, kind: Kind = Kind.CONTRADICTION, allowed: str = "") -> None:
        """Note at the member's value what the value itself does not show."""
        member = self._members.get(name)
        self.bad(name, what, kind=kind, found="nothing" if member is None else shown(member.node), allowed=allowed)

    def text(
        self,
        name: str,
        *,
        required: bool = False,
        allowed: str = "a text",
        check: Callable[[str], str] | None = None,
    ) -> str | None:
        """A text of any length. check: returns it as it is kept; its ServiceError is the problem."""
        node = self.member(name, required=required, allowed=allowed)
        if node is None:
            return None
        if not isinstance(node.value, str):
            self._not_a_text(name, shown(node), allowed)
            return None
        if check is None:
            return node.value
        try:
            return check(node.value)
        except ServiceError as error:
            self.bad(name, error.text.rstrip("."), found=quoted(node.value), allowed=allowed)
        return None

    def bounded_text(self, name: str, *, required: bool = False, allowed: str, least: int = 0, most: int) -> str | None:
        """A text of least to most characters."""
        text = self.text(name, required=required, allowed=allowed)
        return None if text is None else self._within(name, text, least, most, allowed)

    def secret_text(self, name: str, *, allowed: str, least: int, most: int) -> str | None:
        """A text of least to most characters; an error says no more of it than how long it is."""
        node = self.member(name, allowed=allowed)
        if node is None:
            return None
        if not isinstance(node.value, str):
            found = shown(node) if isinstance(node.value, dict | list) else "something else"
            self._not_a_text(name, found, allowed)
            return None
        return self._within(name, node.value, least, most, allowed)

    def _not_a_text(self, name: str, found: str, allowed: str) -> None:
        self.bad(name, f"{name} must be a text", kind=Kind.WRONG_TYPE, found=found, allowed=allowed)

    def _within(self, name: str, text: str, least: int, most: int, allowed: str) -> str | None:
        if least <= len(text) <= most:
            return text
        self.bad(name, f"{name} has the wrong length", found=f"{len(text)} characters", allowed=allowed)
        return None

    def integer(self, name: str, *, least: int, most: int, required: bool = False) -> int | None:
        """An integer of least to most; `2`, `2.0` and `"2"` are the same."""
        allowed = f"an integer from {least} to {most}" if least < most else f"the integer {least}"
        node = self.member(name, required=required, allowed=allowed)
        if node is None:
            return None
        value = _integer(node.value)
        if value is None:
            self.wrong(name, f"{name} must be an integer", kind=Kind.WRONG_TYPE, allowed=allowed)
        elif not least <= value <= most:
            self.wrong(name, f"{name} is out of range", kind=Kind.BAD_VALUE, allowed=allowed)
        else:
            return value
        return None

    def boolean(self, name: str) -> bool | None:
        """true or false, or `"true"` and `"false"` in any case."""
        node = self.member(name)
        if node is None:
            return None
        value = node.value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if isinstance(value, bool):
            return value
        self.wrong(name, f"{name} must be true or false", kind=Kind.WRONG_TYPE, allowed="true or false")
        return None

    def choice(self, name: str, choices: type[_Choice], *, required: bool = False) -> _Choice | None:
        """One of the values of an Enum of texts, in any case."""
        allowed = ", ".join(quoted(choice.value) for choice in choices)
        text = self.text(name, required=required, allowed=allowed)
        if text is None:
            return None
        for choice in choices:
            if choice.value.lower() == text.lower():
                return choice
        self.bad(name, f"{name} is none of the values it may have", found=quoted(text), allowed=allowed)
        return None

    def duration(self, name: str, *, least_ms: int, most_ms: int) -> WrittenDuration | None:
        """A length of time of least_ms to most_ms, from an ISO 8601 duration or `d.hh:mm:ss`."""
        allowed = f"a duration from {duration_text(least_ms)} to {duration_text(most_ms)}"
        text = self.text(name, allowed=allowed)
        if text is None:
            return None
        try:
            duration = written_duration(text)
        except BadDuration as error:
            self.bad(name, f"{name} is no duration: {error}", found=quoted(text), allowed=allowed)
            return None
        if least_ms <= duration.ms <= most_ms:
            return duration
        self.bad(name, f"{name} is out of range", found=quoted(text), allowed=allowed)
        return None

    def object(self, name: str, *, required: bool = False) -> Fields | None:
        """The members of the object that stands there."""
        node = self.member(name, required=required, allowed="an object")
        return None if node is None else fields_of(self.file, node, (*self.steps, name))

    def elements(
        self, name: str, *, required: bool = False, least: int = 0, most: int | None = None
    ) -> list[tuple[JsonNode, tuple[Step, ...]]]:
        """Each element of an array with its path; too few or too many are noted, and read all the same."""
        if most is None:
            allowed = "an array" if not least else f"an array of at least {least}"
        else:
            allowed = f"an array of {least} to {most}" if least < most else f"an array of {least}"
        node = self.member(name, required=required, allowed=allowed)
        if node is None:
            return []
        if not isinstance(node.value, list):
            self.wrong(name, f"{name} must be an array", kind=Kind.WRONG_TYPE, allowed=allowed)
            return []
        count = len(node.value)
        if count < least or (most is not None and count > most):
            what = f"{name} has too {'few' if count < least else 'many'} elements"
            self.wrong(name, what, kind=Kind.WRONG_COUNT, allowed=allowed)
        return [(element, (*self.steps, name, index)) for index, element in enumerate(node.value)]

    def objects(
        self, name: str, *, required: bool = False, least: int = 0, most: int | None = None
    ) -> Iterator[Fields]:
        """Each element that is an object; the others are noted."""
        for node, steps in self.elements(name, required=required, least=least, most=most):
            fields = fields_of(self.file, node, steps)
            if fields is not None:
                yield fields

    def texts(
        self, name: str, *, allowed: str, required: bool = False
    ) -> Iterator[tuple[str, JsonNode, tuple[Step, ...]]]:
        """Each element that is a text, with its place; the others are noted."""
        for node, steps in self.elements(name, required=required):
            if isinstance(node.value, str):
                yield node.value, node, steps
            else:
                what = f"an element of {name} must be a text"
                self.file.error(Kind.WRONG_TYPE, node.at, steps, what, found=shown(node), allowed=allowed)

    def members(self) -> Iterator[tuple[str, JsonNode]]:
        """All of them as they are, for an object with names of the user's choice."""
        for name, member in self._members.items():
            self._known[name] = None
            yield name, member.node

    def finish(self) -> None:
        """Warn of each member that no method above was asked for, with the known name that looks most like it."""
        for name, member in self._members.items():
            if name in self._known:
                continue
            near = nearest(name, self._known)
            hint = f'; did you mean "{near}"?' if near else ""
            known = ", ".join(sorted(self._known)) or "no members"
            self.file.warn(
                Kind.UNKNOWN_MEMBER,
                member.at,
                (*self.steps, name),
                f"nothing reads this member{hint}",
                found=quoted(name),
                allowed=known,
            )


def fields_of(file: ConfigFile, node: JsonNode, steps: tuple[Step, ...]) -> Fields | None:
    """The members of the object at node; None when something else stands there, which is noted. steps: its path."""
    if isinstance(node.value, dict):
        return Fields(file, node.at, node.value, steps)
    file.error(Kind.WRONG_TYPE, node.at, steps, "an object is needed", found=shown(node), allowed="an object")
    return None


def nearest(name: str, known: dict[str, None]) -> str | None:
    """The known name that name was probably meant to be, whatever its case."""
    by_folded = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name[:QUOTE_LIMIT].lower(), by_folded, n=1, cutoff=0.7)
    return by_folded[found[0]] if found else None


def shown(node: JsonNode) -> str:
    """What stands at node, in few words; no contents of objects and arrays."""
    value = node.value
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, str):
        return quoted(value)
    return "null" if value is None else str(value).lower()


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        digits = value[1:] if value.startswith("-") else value
        if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_LIMIT:
            return int(value)
    return None
