"""Start positions of readers: parses the filter text that clients send.

The text is `amqp.annotation.<name> (> | >=) <value>`, any case, spaces around the operator optional, the value bare or
in single quotes. `>` starts behind the value, `>=` at it. (Client libraries' selector filters; Event Hubs AMQP guide)

| name                                            | value |
|-------------------------------------------------|-------|
| `x-opt-offset`                                  | decimal offset; `-1` the oldest event; `@latest` events to come |
| `x-opt-sequence-number`                         | decimal integer, may be -1 |
| `x-opt-enqueued-time`, `x-opt-enqueuedtimeutc`  | milliseconds since 1970, may be negative |

What a position means in a given partition is decided by partition.py, which knows the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from hubweir.errors import ARGUMENT_ERROR, INVALID_FIELD, ServiceError
from hubweir.namespace.error_text import printable


class PositionKind(IntEnum):
    """What the value of a position counts. The numbers are used on the wire between brokers: never change one."""

    EARLIEST = 1
    LATEST = 2
    OFFSET = 3
    SEQUENCE_NUMBER = 4
    ENQUEUED_TIME = 5


@dataclass(frozen=True, slots=True)
class EventPosition:
    """A start position. value: 0 for EARLIEST and LATEST; else an offset, a sequence number or milliseconds.

    inclusive: the event at the value is wanted too. It means nothing for EARLIEST and LATEST.
    """

    kind: PositionKind
    value: int = 0
    inclusive: bool = False


EARLIEST = EventPosition(PositionKind.EARLIEST)
LATEST = EventPosition(PositionKind.LATEST)

# The longest legal text has about 60 characters; a bound keeps a peer's text out of every loop below.
SELECTOR_LIMIT = 512
# Digits of 2**63: no offset, sequence number or time has more.
DIGITS_LIMIT = 19
_PREFIX = "amqp.annotation."
_KINDS = {
    "x-opt-offset": PositionKind.OFFSET,
    "x-opt-sequence-number": PositionKind.SEQUENCE_NUMBER,
    "x-opt-enqueued-time": PositionKind.ENQUEUED_TIME,
    "x-opt-enqueuedtimeutc": PositionKind.ENQUEUED_TIME,
}


def parse_selector(text: str) -> EventPosition:
    """The position that a selector filter asks for.

    Raises ServiceError INVALID_FIELD when the text is no such expression, ARGUMENT_ERROR when its value is not one
    that its name takes.
    """
    if len(text) > SELECTOR_LIMIT:
        raise _invalid(text, f"it has {len(text)} characters, over the limit of {SELECTOR_LIMIT}")
    name, operator, value = text.partition(">")
    if not operator:
        raise _invalid(text, "it has no > or >=")
    inclusive = value.startswith("=")
    annotation = name.strip(" ").lower()
    kind = _KINDS.get(annotation.removeprefix(_PREFIX)) if annotation.startswith(_PREFIX) else None
    if kind is None:
        raise _invalid(text, f"'{printable(name.strip(), 64)}' is no annotation that events are ordered by")
    return _position(kind, _unquoted(value[inclusive:].strip(" "), text), inclusive, text)


def selector_of(position: EventPosition) -> str:
    """The filter text for a position: what a client sends, and what parse_selector reads back as the same position."""
    name, value = {
        PositionKind.EARLIEST: ("x-opt-offset", "-1"),
        PositionKind.LATEST: ("x-opt-offset", "@latest"),
        PositionKind.OFFSET: ("x-opt-offset", str(position.value)),
        PositionKind.SEQUENCE_NUMBER: ("x-opt-sequence-number", str(position.value)),
        PositionKind.ENQUEUED_TIME: ("x-opt-enqueued-time", str(position.value)),
    }[position.kind]
    return f"{_PREFIX}{name} {'>=' if position.inclusive else '>'} '{value}'"


def _position(kind: PositionKind, value: str, inclusive: bool, text: str) -> EventPosition:
    if kind is PositionKind.OFFSET:
        if value.lower() == "@latest":
            return LATEST
        if value == "-1":
            return EARLIEST
    number = _integer(value)
    if number is None or (kind is PositionKind.OFFSET and number < 0):
        wanted = {
            PositionKind.OFFSET: "an offset: decimal digits, -1 or @latest",
            PositionKind.SEQUENCE_NUMBER: "a sequence number: an integer",
            PositionKind.ENQUEUED_TIME: "an enqueued time: milliseconds since 1970",
        }[kind]
        raise ServiceError(
            ARGUMENT_ERROR,
            f"The supplied value '{printable(value, 64)}' is invalid. It must be {wanted}. Take it "
            f"from an event as it was received. Filter: {printable(text, 128)}",
        )
    return EventPosition(kind, number, inclusive)


def _unquoted(value: str, text: str) -> str:
    if not value:
        raise _invalid(text, "it has no value")
    if "'" not in value:
        return value
    if len(value) < 2 or value[0] != "'" or value[-1] != "'" or "'" in value[1:-1]:
        raise _invalid(text, "its quotes do not match")
    return value[1:-1]


def _integer(text: str) -> int | None:
    """A decimal integer of ASCII digits, with an optional minus; None for everything else that int() would take."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS_LIMIT):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _invalid(text: str, why: str) -> ServiceError:
    return ServiceError(
        INVALID_FIELD,
        f"The filter '{printable(text, 128)}' is not a start position: {why}. "
        "Write amqp.annotation.x-opt-offset > '-1', or x-opt-sequence-number or x-opt-enqueued-time in its place.",
    )
