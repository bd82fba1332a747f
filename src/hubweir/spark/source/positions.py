"""Start and end of a read of an event hub, as users write them, in both dialects.

| text | means |
|---|---|
| `earliest`, `latest` | the oldest event there is; behind the newest |
| `4711` | the event with this sequence number |
| `2026-01-31T12:00:00Z` | the first event that was enqueued then or later; without a zone it is UTC |
| `{"offset": "-1", "seqNo": -1, "enqueuedTime": null, "isInclusive": true}` | the JVM connector's: one is set |
| `{"0": 17, "1": "latest"}` | for each partition one of the above |
| an object with keys like `{\"ehName\": \"orders\", \"partitionId\": 0}` | the JVM connector's for each partition |

A start is the first event that is read; an end is the first that is not. In the JVM dialect offset `-1` is the start of
the stream and `@latest` its end; `isInclusive` false puts a position behind the event that it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind
from hubweir.spark.errors import IllegalOption

_JVM_KEYS = {"offset", "seqno", "enqueuedtime", "isinclusive"}
_EXAMPLES = 'earliest, latest, a sequence number, an ISO time, or JSON such as {"0": 17, "1": "latest"}'


@dataclass(frozen=True, slots=True)
class Positions:
    """One position for all partitions, and others for some. of() says which is a partition's."""

    default: EventPosition
    by_partition: Mapping[str, EventPosition] = field(default_factory=dict)

    def of(self, partition_id: str) -> EventPosition:
        """The position of one partition."""
        return self.by_partition.get(partition_id, self.default)

    def check(self, partition_ids: tuple[str, ...], hub: str) -> None:
        """IllegalOption when a partition is named that the hub does not have."""
        unknown = sorted(set(self.by_partition) - set(partition_ids))
        if unknown:
            raise IllegalOption(
                f"a position names partition {', '.join(unknown)} of event hub '{hub}', which has only "
                f"{', '.join(partition_ids)}: take it out"
            )


def parse_positions(option: str, text: str, default: EventPosition, *, hub: str | None = None) -> Positions:
    """The positions that the value of an option asks for; default: of the partitions that it does not name.

    Both dialects of docs/spark.md. IllegalOption with examples; whether the partitions exist is `Positions`'s to check.
    hub: the event hub that is read, which is the one that keys of the JVM connector have to name.
    """
    text = text.strip()
    if not text.startswith("{"):
        return Positions(_plain(option, text))
    try:
        value = json.loads(text)
    except ValueError as error:
        raise IllegalOption(f"{option} is no JSON ({error}): write {_EXAMPLES}") from None
    if {key.lower() for key in value} <= _JVM_KEYS and value:
        return Positions(_jvm(option, value))
    return Positions(default, {_partition(option, key, hub): _one(option, one) for key, one in value.items()})


def _partition(option: str, key: str, hub: str | None) -> str:
    """A partition's id: the key itself, or the one inside the JVM connector's key."""
    name: object = key
    if key.lstrip().startswith("{"):
        try:
            given = json.loads(key)
        except ValueError:
            given = {}
        name, its_hub = given.get("partitionId"), given.get("ehName", hub)
        if hub is not None and str(its_hub).lower() != hub.lower():
            raise IllegalOption(
                f"{option}: '{key[:128]}' is a partition of another event hub than '{hub}': take it out"
            )
    found = str(name)
    if not found.isascii() or not found.isdigit():
        raise IllegalOption(f"{option}: '{key[:64]}' names no partition: the keys are ids such as \"0\"")
    return str(int(found))


def _one(option: str, value: object) -> EventPosition:
    if isinstance(value, dict):
        return _jvm(option, value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise IllegalOption(f"{option}: {str(value)[:64]} is no position: write {_EXAMPLES}")
    return _plain(option, str(value))


def _plain(option: str, text: str) -> EventPosition:
    match text.strip().lower():
        case "earliest" | "-1":
            return EARLIEST
        case "latest" | "@latest":
            return LATEST
        case number if re.fullmatch("[0-9]{1,19}", number):
            return EventPosition(PositionKind.SEQUENCE_NUMBER, int(number), True)
    return _time(option, text, is_inclusive=True)


def _time(option: str, text: str, *, is_inclusive: bool) -> EventPosition:
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise IllegalOption(f"{option}: '{text[:64]}' is no position: write {_EXAMPLES}") from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    microseconds = round(when.timestamp() * 1_000_000)
    # Enqueued times are whole milliseconds: the first that is not before this one. (-(-a // b) rounds up)
    return EventPosition(PositionKind.ENQUEUED_TIME, -(-microseconds // 1000), is_inclusive)


def _jvm(option: str, value: dict[str, object]) -> EventPosition:
    """The JVM connector's form. Fields that are absent, null, "" or -1 are not set; none set is the start."""
    given = {key.lower(): one for key, one in value.items()}
    if unknown := sorted(set(given) - _JVM_KEYS):
        raise IllegalOption(
            f"{option}: a position has no field {unknown[0]}: they are offset, seqNo, enqueuedTime, isInclusive"
        )
    is_inclusive = given.get("isinclusive", True)
    number, offset, time = given.get("seqno", -1), given.get("offset"), given.get("enqueuedtime")
    if not isinstance(is_inclusive, bool):
        raise IllegalOption(f"{option}: isInclusive is true or false")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise IllegalOption(f"{option}: seqNo is an integer, not {str(number)[:64]}")
    if isinstance(number, int) and number >= 0:
        return EventPosition(PositionKind.SEQUENCE_NUMBER, number, is_inclusive)
    if time:
        return _time(option, str(time), is_inclusive=is_inclusive)
    match str(offset or "-1"):
        case "-1":
            return EARLIEST
        case "@latest":
            return LATEST
        case digits if re.fullmatch("[0-9]{1,19}", digits):
            return EventPosition(PositionKind.OFFSET, int(digits), is_inclusive)
    raise IllegalOption(f'{option}: offset is decimal digits, "-1" or "@latest", not {str(offset)[:64]}')
