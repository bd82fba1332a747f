"""The JSON of a request, read member by member; whatever nobody reads is refused, so that no wish is lost in silence.

Members that hold null, as generated clients send them, are as if they were not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from hubweir.errors import ARGUMENT_ERROR, NOT_IMPLEMENTED, ServiceError
from hubweir.namespace.resource_path import fold
from hubweir.namespace.strict_json import IllegalJson, read_object


class Members:
    """An object of the request. where: its path, as texts name it. Names come in any case."""

    def __init__(self, values: Mapping[str, object], where: str = "") -> None:
        """ServiceError ARGUMENT_ERROR for two names that differ in case alone: one of them would be lost."""
        self._where = where
        self._values: dict[str, tuple[str, object]] = {}
        for name, value in values.items():
            if value is None:
                continue
            if fold(name) in self._values:
                raise ServiceError(ARGUMENT_ERROR, f"The property '{self._path(name)[:128]}' is there twice.")
            self._values[fold(name)] = (name, value)

    @classmethod
    def of_body(cls, body: bytes) -> Members:
        """An empty body is an empty object. ServiceError ARGUMENT_ERROR."""
        try:
            return cls(read_object(body) if body.strip() else {})
        except IllegalJson as error:
            raise ServiceError(ARGUMENT_ERROR, f"The body is no JSON object: {error}.") from None

    def members(self, name: str) -> Members:
        """The object under a name; an empty one where it is not there."""
        value = self._take(name)
        if value is None:
            return Members({}, self._path(name))
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return Members(value, self._path(name))

    def text(self, name: str) -> str | None:
        value = self._take(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "a text")
        return value

    def number(self, name: str) -> int | None:
        value = self._take(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise self.wrong(name, "a whole number")
        return value

    def flag(self, name: str) -> bool | None:
        value = self._take(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def texts(self, name: str) -> list[str] | None:
        value = self._take(name)
        if value is not None and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise self.wrong(name, "a list of texts")
        return value

    def own_texts(self, name: str) -> dict[str, str] | None:
        """The object of texts under a name, whose names are somebody's own, such as a message's properties or tags:
        their case counts.
        """
        value = self._take(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        for each, text in value.items():
            if text is not None and not isinstance(text, str):
                raise self.wrong(f"{name}.{each}", "a text")
        return {each: text for each, text in value.items() if text is not None}

    def take_all(self) -> dict[str, object]:
        """Everything that was not read yet, by the names as they came."""
        taken = dict(self._values.values())
        self._values.clear()
        return taken

    def pass_over(self, *names: str) -> None:
        """What the service says itself, or keeps nothing of: a request that repeats it is no mistake."""
        for name in names:
            self._take(name)

    def finish(self) -> None:
        """Refuse what nobody read, but for values that ask for nothing: false, 0, and what is empty."""
        for name, value in self._values.values():
            if value not in (False, "", [], {}):
                text = f"The property '{self._path(name)[:128]}' is not served here: leave it out."
                raise ServiceError(NOT_IMPLEMENTED, text)

    def wrong(self, name: str, allowed: str) -> ServiceError:
        return ServiceError(ARGUMENT_ERROR, f"The property '{self._path(name)[:128]}' must be {allowed}.")

    def _take(self, name: str) -> object:
        found = self._values.pop(fold(name), None)
        return None if found is None else found[1]

    def _path(self, name: str) -> str:
        return f"{self._where}.{name}" if self._where else name
