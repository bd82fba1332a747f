"""A message as filters and actions see it: its properties, never its body.

FilteredMessage is all that they ask for. EncodedMessage answers it for a message as it lies in memory, and decodes a
section when the first of its properties is asked for. Names of properties are compared folded: case does not count.

| name behind `sys.`                            | where it lies                           | value    | set by |
| --------------------------------------------- | --------------------------------------- | -------- | ------ |
| MessageId, CorrelationId                      | properties                              | str      | action |
| To, Label or Subject, ReplyTo, ContentType    | properties                              | str      | action |
| SessionId, ReplyToSessionId                   | properties: group-id, reply-to-group-id | str      | action |
| PartitionKey                                  | annotation x-opt-partition-key          | str      | action |
| TimeToLive                                    | BrokerValues                            | TimeSpan | action |
| DeadLetterSource                              | annotation x-opt-deadletter-source      | str      |        |
| ScheduledEnqueueTimeUtc                       | annotation x-opt-scheduled-enqueue-time | Instant  |        |
| SequenceNumber, EnqueuedSequenceNumber        | BrokerValues                            | int      |        |
| DeliveryCount, State                          | BrokerValues                            | int      |        |
| EnqueuedTimeUtc, ExpiresAtUtc, LockedUntilUtc | BrokerValues                            | Instant  |        |
| LockToken                                     | BrokerValues                            | UUID     |        |

A message need not have a value for each: then it is NULL. What receivers see counts: the id that is given to a message
that came without one, the time to live that the topic left it, and of a dead-letter source what a forward wrote. A name
that is not in this table is what the service calls a missing system property. An id that is no string has the text that
people write it with.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, cast
from uuid import UUID

from hubweir.amqp.messaging import sections as section_of
from hubweir.amqp.messaging.annotations import DEADLETTER_SOURCE, PARTITION_KEY, SCHEDULED_ENQUEUE_TIME
from hubweir.amqp.messaging.sections import Section, walk_sections
from hubweir.amqp.types import format_codes as code_of
from hubweir.amqp.types.decode import ENTRIES_LIMIT, decode
from hubweir.amqp.types.read_scalar import Buffer
from hubweir.errors import DecodeError
from hubweir.kernels.contract import (
    FORWARDED_BIT,
    Q_ENQUEUE_NUMBER,
    Q_ENQUEUED_MS,
    Q_EXPIRES_MS,
    Q_ID_NUMBER,
    Q_RECORD,
    Q_SEQUENCE_NUMBER,
    Q_TTL_MS,
)
from hubweir.kernels.stored_batch import RECORD_HEADER_SIZE
from hubweir.namespace.resource_path import fold
from hubweir.queue.given_id import given_id
from hubweir.topic.sql_values import (
    TICKS_OF_MS,
    EvaluationFailed,
    Instant,
    TimeSpan,
    Value,
    text_of,
    value_of,
)


class FilteredMessage(Protocol):
    """A message as rules see it. Each of the three raises EvaluationFailed when the message cannot be read."""

    @property
    def application_properties(self) -> Mapping[str, object]:
        """AMQP values by their names, as the message has them."""

    @property
    def user_properties(self) -> Mapping[str, object]:
        """The same by folded name; of names that differ in case alone, the first."""

    @property
    def properties_size(self) -> int:
        """Their bytes in the message."""

    def system_property(self, name: str) -> Value:
        """The value of a property of SYSTEM_PROPERTIES, by its folded name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerValues:
    """What the broker knows of a message, and the message does not say. Times in milliseconds since 1970.

    state: 0 active, 1 deferred, 2 scheduled. enqueued_sequence_number: its number before a forward, if there was one.
    id_prefix, id_number: what its id is made of where it came without one (given_id.py). time_to_live_ms: the shorter
    of its sender's and its entity's. was_forwarded: so what it says of where it was dead-lettered is not its sender's.
    """

    sequence_number: int | None = None
    enqueued_sequence_number: int | None = None
    enqueued_time_ms: int | None = None
    expires_at_ms: int | None = None
    time_to_live_ms: int | None = None
    locked_until_ms: int | None = None
    lock_token: UUID | None = None
    delivery_count: int = 0
    state: int = 0
    id_prefix: str | None = None
    id_number: int = 0
    was_forwarded: bool = False

    @property
    def given_id(self) -> str | None:
        """Its id where it came without one; written when a rule asks for it, as most never do."""
        return None if self.id_prefix is None else given_id(self.id_prefix, self.id_number)


NO_BROKER_VALUES: Final = BrokerValues()

# Places in the list of the section properties (AMQP part 3, section 3.2.4).
PROPERTY_PLACES: Final = {
    "messageid": 0,
    "to": 2,
    "label": 3,
    "subject": 3,
    "replyto": 4,
    "correlationid": 5,
    "contenttype": 6,
    "sessionid": 10,
    "replytosessionid": 12,
}

_BROKER: Final[dict[str, Callable[[BrokerValues], Value]]] = {
    "sequencenumber": lambda broker: broker.sequence_number,
    "enqueuedsequencenumber": lambda broker: broker.enqueued_sequence_number,
    "enqueuedtimeutc": lambda broker: _instant(broker.enqueued_time_ms),
    "expiresatutc": lambda broker: _instant(broker.expires_at_ms),
    "timetolive": lambda broker: _span(broker.time_to_live_ms),
    "lockeduntilutc": lambda broker: _instant(broker.locked_until_ms),
    "locktoken": lambda broker: broker.lock_token,
    "deliverycount": lambda broker: broker.delivery_count,
    "state": lambda broker: broker.state,
}
_TEXT_ANNOTATIONS: Final = {"partitionkey": PARTITION_KEY, "deadlettersource": DEADLETTER_SOURCE}
# Folded names of all system properties.
SYSTEM_PROPERTIES: Final = frozenset({*PROPERTY_PLACES, *_BROKER, *_TEXT_ANNOTATIONS, "scheduledenqueuetimeutc"})


class EncodedMessage:
    """A message in its encoding. The buffer must not change while filters and actions look at it."""

    __slots__ = ("_broker", "_sections", "_user_properties", "_values", "buffer")

    def __init__(self, buffer: Buffer, broker: BrokerValues = NO_BROKER_VALUES) -> None:
        self.buffer = buffer
        self._broker = broker
        self._sections: dict[int, Section] | None = None
        self._values: dict[int, object] = {}
        self._user_properties: dict[str, object] | None = None

    @property
    def sections(self) -> dict[int, Section]:
        """Where its sections are, by code; of the body only the last. EvaluationFailed when this is no message."""
        if self._sections is None:
            try:
                self._sections = {section.code: section for section in walk_sections(self.buffer)}
            except DecodeError as error:
                raise EvaluationFailed(f"the message cannot be read: {error}") from None
        return self._sections

    @property
    def application_properties(self) -> Mapping[str, object]:
        """As FilteredMessage says; so are the other two."""
        return self.map_section(section_of.APPLICATION_PROPERTIES)

    @property
    def user_properties(self) -> Mapping[str, object]:
        """The application properties by folded name."""
        if self._user_properties is None:
            self._user_properties = folded(self.application_properties)
        return self._user_properties

    @property
    def properties_size(self) -> int:
        section = self.sections.get(section_of.APPLICATION_PROPERTIES)
        return 0 if section is None else section.end - section.value

    def system_property(self, name: str) -> Value:
        """The value, None where the message has none. name: one of SYSTEM_PROPERTIES."""
        place = PROPERTY_PLACES.get(name)
        if place is not None:
            text = _text(_entry(self.list_section(section_of.PROPERTIES), place))
            return self._broker.given_id if text is None and name == "messageid" else text
        ask = _BROKER.get(name)
        if ask is not None:
            return ask(self._broker)
        if name == "deadlettersource" and not self._broker.was_forwarded:
            return None
        annotations = self.map_section(section_of.MESSAGE_ANNOTATIONS)
        if name in _TEXT_ANNOTATIONS:
            return _text(annotations.get(_TEXT_ANNOTATIONS[name]))
        scheduled = value_of(annotations.get(SCHEDULED_ENQUEUE_TIME))
        return scheduled if type(scheduled) is Instant else None

    def list_section(self, code: int) -> list[object]:
        """The entries of the header or of the properties, decoded once; empty when the section is not there."""
        return cast(list[object], self._decoded(code, []))

    def map_section(self, code: int) -> dict[str, object]:
        """The same of annotations and of application properties."""
        return cast(dict[str, object], self._decoded(code, {}))

    def _decoded(self, code: int, absent: object) -> object:
        value = self._values.get(code)
        if value is None:
            section = self.sections.get(code)
            value = self._values[code] = absent if section is None else self._decode(section)
        return value

    def _decode(self, section: Section) -> object:
        is_large_map = (
            section.code == section_of.APPLICATION_PROPERTIES and section.end - section.value > 2 * ENTRIES_LIMIT
        )
        try:
            if is_large_map:
                value: object = _decode_map(self.buffer, section.value, section.end)
            else:
                value, _ = decode(self.buffer, section.value, section.end)
        except DecodeError as error:
            raise EvaluationFailed(f"the message cannot be read: {error}") from None
        if section.code == section_of.APPLICATION_PROPERTIES and not _has_text_names(value):
            raise EvaluationFailed("the message cannot be read: a name of its application properties is no string")
        return value


def _decode_map(buffer: Buffer, start: int, end: int) -> dict[object, object]:
    """A map entry by entry: a sender may give a message more properties than one value of a peer may have entries.

    Its bytes are bounded where it comes in. Raises DecodeError.
    """
    if buffer[start] != code_of.MAP32:
        return cast(dict[object, object], decode(buffer, start, end)[0])
    position = start + 9  # constructor, size, count
    items: list[object] = []
    for _ in range(int.from_bytes(buffer[start + 5 : position], "big")):
        item, position = decode(buffer, position, end)
        items.append(item)
    keys = items[::2]
    if not _are_texts(keys):
        raise DecodeError(f"a name in the map at byte {start} is no string")
    found = dict(zip(keys, items[1::2], strict=False))
    if position != end or 2 * len(found) != len(items):
        raise DecodeError(
            f"the map at byte {start} ends elsewhere than it says, or has a name twice or without a value"
        )
    return found


def message_at(data: bytes | bytearray, rows: array[int], at: int, id_prefix: str) -> EncodedMessage:
    """The message of the message row at this place of rows (kernels/contract.py), whose record lies in data.

    id_prefix: see given_id.
    """
    start = rows[at + Q_RECORD]
    end = start + int.from_bytes(data[start : start + 4], "big")
    number, expires_ms, ttl_ms = rows[at + Q_ENQUEUE_NUMBER], rows[at + Q_EXPIRES_MS], rows[at + Q_TTL_MS]
    id_number = rows[at + Q_ID_NUMBER]
    values = BrokerValues(
        sequence_number=rows[at + Q_SEQUENCE_NUMBER],
        enqueued_sequence_number=number if number >= 0 else None,
        enqueued_time_ms=rows[at + Q_ENQUEUED_MS],
        expires_at_ms=expires_ms if expires_ms >= 0 else None,
        time_to_live_ms=ttl_ms if ttl_ms >= 0 else None,
        id_prefix=id_prefix,
        id_number=id_number,
        was_forwarded=bool(id_number >> FORWARDED_BIT & 1),
    )
    return EncodedMessage(memoryview(data)[start + RECORD_HEADER_SIZE : end], values)


def folded(properties: Mapping[str, object]) -> dict[str, object]:
    """Values by folded name; of names that differ in case alone, the first."""
    by_name: dict[str, object] = {}
    for name, value in properties.items():
        by_name.setdefault(fold(name), value)
    return by_name


def _has_text_names(value: object) -> bool:
    # It is a map: walk_sections has looked at its constructor.
    return _are_texts(cast(dict[object, object], value))


def _are_texts(names: Iterable[object]) -> bool:
    return all(type(name) is str for name in names)


def _entry(entries: list[object], place: int) -> object:
    """An entry of a list whose end may have been left out."""
    return entries[place] if place < len(entries) else None


def _text(amqp: object) -> str | None:
    """A property that is a text here: an id may have come as a number, a uuid or bytes."""
    return amqp.hex() if type(amqp) is bytes else text_of(value_of(amqp))


def _instant(time_ms: int | None) -> Instant | None:
    return None if time_ms is None else Instant(time_ms * TICKS_OF_MS)


def _span(duration_ms: int | None) -> TimeSpan | None:
    return None if duration_ms is None else TimeSpan(duration_ms * TICKS_OF_MS)
