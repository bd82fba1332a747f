"""A message run: messages of a queue that came together, as rows over the bytes that they came in.

A message is opened when somebody asks for one of its fields: its sequence number, its enqueued time and its body are
columns that a kernel finds for all of them at once (kernels/contract.py, open_events); the rest is decoded with the
whole message, once. Who settles a run by its delivery ids opens nothing. A run owns its bytes, so it may be kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Protocol, overload
from uuid import UUID

from hubweir.amqp.messaging.message import DataBody, Header, Message, Properties, decode_message
from hubweir.amqp.messaging.outcome import Outcome
from hubweir.amqp.transport.delivery import IdRange
from hubweir.amqp.types.values import Symbol
from hubweir.errors import ServiceError
from hubweir.kernels import open_events
from hubweir.kernels.contract import (
    D_DELIVERY_ID,
    D_LENGTH,
    D_START,
    DELIVERY_WIDTH,
    E_BODY,
    E_BODY_LENGTH,
    E_ENQUEUED_TIME,
    E_SEQUENCE_NUMBER,
    EVENT_WIDTH,
)
from hubweir.queue.dead_letter_properties import DEAD_LETTER_DESCRIPTION, DEAD_LETTER_REASON

LOCK_TOKEN = Symbol("x-opt-lock-token")
LOCKED_UNTIL = Symbol("x-opt-locked-until")
MESSAGE_STATE = Symbol("x-opt-message-state")
STATES = ("active", "deferred", "scheduled")
_NO_HEADER, _NO_PROPERTIES = Header(), Properties()


class SettlingLink(Protocol):
    """The link that brought a run, for whoever settles its messages."""

    @property
    def error(self) -> ServiceError | None:
        """Why the link is over; None while it stands."""

    @property
    def given_up(self) -> Collection[int]:
        """Ids of deliveries that it cannot settle any more, though nobody has: their locks' tokens can."""

    async def settle(self, spans: Iterable[IdRange[None]], outcome: Outcome, *, txn_id: bytes | None = None) -> None:
        """Tell the outcome of deliveries (spans of their ids), in a transaction or none, and wait for the answers."""

    def gave_up(self, spans: Iterable[IdRange[None]]) -> None:
        """What was settled in a transaction is not settled: it was rolled back."""


class MessageRun(Sequence["ReceivedMessage"]):
    """Messages of one sub-queue, in the order in which they came.

    link: the link whose delivery ids settle them; None when they came in an answer, as peeked and deferred ones do.
    """

    __slots__ = ("_columns", "_opened_count", "data", "link", "rows", "tokens")

    def __init__(
        self, data: bytes, rows: array[int], link: SettlingLink | None = None, tokens: Sequence[UUID | None] = ()
    ) -> None:
        """data: the bytes that rows (delivery rows, kernels.contract) point into. tokens: of an answer, one each."""
        self.data = data
        self.rows = rows
        self.link = link
        self.tokens = tokens
        self._columns: array[int] | None = None
        self._opened_count = 0

    @classmethod
    def of_messages(cls, messages: Iterable[bytes], tokens: Sequence[UUID | None] = ()) -> MessageRun:
        """A run of encoded messages that no link brought."""
        rows, parts, at = array("q"), [], 0
        for message in messages:
            rows.extend((-1, at, len(message), 1, 0))
            parts.append(message)
            at += len(message)
        return cls(b"".join(parts), rows, None, tokens)

    @classmethod
    def joined(cls, runs: Sequence[MessageRun]) -> MessageRun:
        """One run of all that came on one link; EMPTY when runs is empty."""
        if len(runs) <= 1:
            return runs[0] if runs else EMPTY
        rows, base = array("q"), 0
        for run in runs:
            moved = run.rows[:]
            moved[D_START::DELIVERY_WIDTH] = array("q", [start + base for start in moved[D_START::DELIVERY_WIDTH]])
            rows.extend(moved)
            base += len(run.data)
        return cls(b"".join(run.data for run in runs), rows, runs[0].link)

    def part(self, first: int, last: int) -> MessageRun:
        """The messages from place first to last - 1, over the same bytes."""
        rows = self.rows[first * DELIVERY_WIDTH : last * DELIVERY_WIDTH]
        return MessageRun(self.data, rows, self.link, self.tokens[first:last])

    def __len__(self) -> int:
        return len(self.rows) // DELIVERY_WIDTH

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return (ReceivedMessage(self, place) for place in range(len(self)))

    @overload
    def __getitem__(self, place: int) -> ReceivedMessage: ...

    @overload
    def __getitem__(self, place: slice) -> list[ReceivedMessage]: ...

    def __getitem__(self, place: int | slice) -> ReceivedMessage | list[ReceivedMessage]:
        if isinstance(place, slice):
            return list(self)[place]
        at = place + len(self) if place < 0 else place
        if not 0 <= at < len(self):
            raise IndexError(f"message {place} of a run of {len(self)}")
        return ReceivedMessage(self, at)

    def delivery_ids(self) -> array[int]:
        """One a message, as its link counts them; -1 in a run that no link brought."""
        return self.rows[D_DELIVERY_ID::DELIVERY_WIDTH]

    def spans(self) -> list[IdRange[None]]:
        """The delivery ids as ranges, in order: mostly one."""
        count = len(self)
        if not count:
            return []
        first, last = self.rows[D_DELIVERY_ID], self.rows[(count - 1) * DELIVERY_WIDTH + D_DELIVERY_ID]
        if last - first == count - 1:  # ids rise
            return [IdRange(first, last, None)]
        return spans_of(self.delivery_ids())

    def sequence_numbers(self) -> list[int]:
        """One a message."""
        return [self.column(place, E_SEQUENCE_NUMBER) for place in range(len(self))]

    def bodies(self) -> list[bytes]:
        """One a message; empty where the body is of another kind than data."""
        return [self.body(place) or b"" for place in range(len(self))]

    def body(self, place: int) -> bytes | None:
        """The bytes of a body of data sections; None for a body of another kind, or none at all."""
        length = self.column(place, E_BODY_LENGTH)
        if length >= 0:
            at = self.column(place, E_BODY)
            return self.data[at : at + length]
        body = self.open_message(place).body
        return b"".join(body.parts) if isinstance(body, DataBody) else None

    def column(self, place: int, column: int) -> int:
        """A number of the event row of one message; -1 where it has none, or is no legal message."""
        if self._columns is None:
            count = len(self)
            columns = array("q", bytes(8 * EVENT_WIDTH * count))
            self._opened_count = open_events(self.data, self.rows, 0, count, columns)
            self._columns = columns
        return self._columns[place * EVENT_WIDTH + column] if place < self._opened_count else -1

    def encoded(self, place: int) -> memoryview:
        """The bytes of one message as it came."""
        base = place * DELIVERY_WIDTH
        start = self.rows[base + D_START]
        return memoryview(self.data)[start : start + self.rows[base + D_LENGTH]]

    def open_message(self, place: int) -> Message:
        """The whole AMQP message. DecodeError when it is none."""
        return decode_message(self.encoded(place))

    def token(self, place: int) -> UUID | None:
        """The lock's token, for a settlement that goes over another link; None of what is not locked."""
        return self[place].lock_token


EMPTY = MessageRun(b"", array("q"))


class ReceivedMessage:
    """One message of a run. Every field is read from its bytes when it is asked for. Times are ms since 1970, UTC."""

    __slots__ = ("_opened", "place", "run")

    def __init__(self, run: MessageRun, place: int) -> None:
        self.run = run
        self.place = place
        self._opened: Message | None = None

    @property
    def message(self) -> Message:
        """The whole AMQP message: annotations and any kind of body, too."""
        if self._opened is None:
            self._opened = self.run.open_message(self.place)
        return self._opened

    @property
    def body(self) -> bytes | None:
        """The bytes of data sections; None for a body of another kind (message tells)."""
        return self.run.body(self.place)

    @property
    def sequence_number(self) -> int:
        return self.run.column(self.place, E_SEQUENCE_NUMBER)

    @property
    def enqueued_time_ms(self) -> int:
        """When it became active."""
        return self.run.column(self.place, E_ENQUEUED_TIME)

    @property
    def delivery_count(self) -> int:
        """How many deliveries before this one failed."""
        return (self.message.header or _NO_HEADER).delivery_count

    @property
    def time_to_live_ms(self) -> int | None:
        return (self.message.header or _NO_HEADER).ttl

    @property
    def locked_until_ms(self) -> int | None:
        """When its lock ends unless it is renewed; None: there is none of its own."""
        return self._number(LOCKED_UNTIL)

    @property
    def lock_token(self) -> UUID | None:
        if self.run.tokens:
            return self.run.tokens[self.place]
        token = (self.message.delivery_annotations or {}).get(LOCK_TOKEN)
        return token if isinstance(token, UUID) else None

    @property
    def state(self) -> str:
        """active, deferred or scheduled."""
        return STATES[self._number(MESSAGE_STATE) or 0]

    @property
    def message_id(self) -> object:
        """A string, or of the type that its sender chose."""
        return self._properties.message_id

    @property
    def session_id(self) -> str | None:
        return self._properties.group_id

    @property
    def subject(self) -> str | None:
        return self._properties.subject

    @property
    def correlation_id(self) -> object:
        """As message_id."""
        return self._properties.correlation_id

    @property
    def content_type(self) -> str | None:
        return self._properties.content_type

    @property
    def reply_to(self) -> str | None:
        return self._properties.reply_to

    @property
    def reply_to_session_id(self) -> str | None:
        return self._properties.reply_to_group_id

    @property
    def properties(self) -> dict[str, object]:
        """Application properties; empty when there are none."""
        return self.message.application_properties or {}

    @property
    def dead_letter_reason(self) -> str | None:
        return self._text(DEAD_LETTER_REASON)

    @property
    def dead_letter_description(self) -> str | None:
        return self._text(DEAD_LETTER_DESCRIPTION)

    @property
    def _properties(self) -> Properties:
        return self.message.properties or _NO_PROPERTIES

    def _number(self, name: Symbol) -> int | None:
        value = (self.message.message_annotations or {}).get(name)
        return int(value) if isinstance(value, int) else None

    def _text(self, name: str) -> str | None:
        value = self.properties.get(name)
        return value if isinstance(value, str) else None


def spans_of(delivery_ids: Iterable[int]) -> list[IdRange[None]]:
    """Delivery ids as ranges of ids that follow each other, in the order in which they come."""
    spans: list[IdRange[None]] = []
    first = last = -1
    for delivery_id in delivery_ids:
        if first >= 0 and delivery_id == (last + 1) & 0xFFFFFFFF:
            last = delivery_id
            continue
        if first >= 0:
            spans.append(IdRange(first, last, None))
        first = last = delivery_id
    if first >= 0:
        spans.append(IdRange(first, last, None))
    return spans
