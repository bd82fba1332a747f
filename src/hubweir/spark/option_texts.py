"""Options of the formats as they are given: by names with and without the prefix `eventhubs.`, in any case, as texts.

What each text means is told by the methods here. Errors are one line, and never show a connection string.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hubweir.errors import ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.spark.errors import IllegalOption

PREFIX = "eventhubs."
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class OptionTexts:
    """The options as they were given, by their names without prefix and case."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """IllegalOption for a name given twice."""
        self.texts: dict[str, str] = {}
        for name, text in given.items():
            folded = name.lower().removeprefix(PREFIX)
            if self.texts.get(folded, text) != text:
                raise IllegalOption(f"option {name} is given twice, with and without '{PREFIX}': take one away")
            self.texts[folded] = text

    def text(self, name: str) -> str | None:
        """The value of an option; None when it is not given or empty."""
        return self.texts.get(name.lower()) or None

    def count(self, name: str, otherwise: int | None, *, least: int = 1) -> int | None:
        """A whole number, or otherwise when it is not given. IllegalOption for anything else, and below least."""
        text = self.text(name)
        if text is None:
            return otherwise
        if not re.fullmatch("[0-9]{1,18}", text.strip()) or int(text) < least:
            raise IllegalOption(f"{name} is a whole number of at least {least}, not '{text[:64]}'")
        return int(text)

    def flag(self, name: str, otherwise: bool) -> bool:
        """true or false, in any case. IllegalOption for anything else."""
        text = (self.text(name) or str(otherwise)).strip().lower()
        if text not in ("true", "false"):
            raise IllegalOption(f"{name} is true or false, not '{text[:64]}'")
        return text == "true"

    def seconds(self, name: str, otherwise: float) -> float:
        """A duration: `60s`, `500 ms`, `2 minutes`, or ISO 8601 as the JVM connector has it: `PT1M30S`."""
        text = self.text(name)
        return otherwise if text is None else parse_seconds(name, text)


def target_of(texts: OptionTexts) -> tuple[str, str]:
    """The connection string and the event hub that it, or the option eventHub, names.

    IllegalOption: one of them is missing, is none, or the two name different hubs. No error shows the string.
    """
    text = texts.text("connectionString")
    if text is None:
        raise IllegalOption("connectionString is missing: .option('connectionString', 'Endpoint=sb://…')")
    try:
        target = ConnectionString.parse(text)
    except ServiceError as error:
        raise IllegalOption(
            f"connectionString: {error.text} It is taken in plain text; one that EventHubsUtils.encrypt made is not"
        ) from None
    hub = texts.text("eventHub") or target.entity_path
    if hub is None:
        raise IllegalOption("no event hub is named: give eventHub, or a connection string with EntityPath")
    if target.entity_path is not None and hub.lower() != target.entity_path.lower():
        raise IllegalOption(f"eventHub is '{hub}' and the connection string is for '{target.entity_path}'")
    return text, hub


def parse_seconds(name: str, text: str) -> float:
    """See OptionTexts.seconds. IllegalOption also for a bare number: nobody knows its unit."""
    plain = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*", text.lower())
    if plain:
        unit = re.sub(r"^(h)(ou)?rs?$|^(m)inutes?$|^(s)ec(ond)?s?$", lambda m: m[1] or m[3] or m[4], plain[2])
        if unit in _UNITS_S:
            return float(plain[1]) * _UNITS_S[unit]
    iso = re.fullmatch(r"PT(?:([0-9.]+)H)?(?:([0-9.]+)M)?(?:([0-9.]+)S)?", text.strip().upper())
    if iso and any(iso.groups()):
        try:
            return sum(
                float(number or 0) * unit for number, unit in zip(iso.groups(), (3600.0, 60.0, 1.0), strict=True)
            )
        except ValueError:
            pass
    raise IllegalOption(f"{name} is a duration such as 60s, 500ms, 5m or PT60S, not '{text[:64]}'")
