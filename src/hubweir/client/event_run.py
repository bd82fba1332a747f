"""An event run: many received events at once, as columns over the bytes they came in.

No object is made per event until somebody asks for one. The columns are integers found by a kernel
(kernels/contract.py, open_events) when one of them is first wanted: who asks for Arrow columns does not pay for them.
Bodies are views into `data`. A run owns its bytes, so it may be kept. stored_run.py is the same over stored batches.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hubweir.amqp.messaging.message import Message, decode_message
from hubweir.kernels import event_columns, open_events
from hubweir.kernels.contract import (
    D_LENGTH,
    D_START,
    DELIVERY_WIDTH,
    E_BODY,
    E_BODY_LENGTH,
    E_ENQUEUED_TIME,
    E_KEY,
    E_KEY_LENGTH,
    E_OFFSET,
    E_SEQUENCE_NUMBER,
    EVENT_WIDTH,
)


@dataclass(frozen=True, slots=True)
class Event:
    """One received event. body: its data section's bytes; None when the body is of another kind (open_message tells).

    offset is opaque for clients, and a string on the wire; enqueued_time_ms is UTC, ms since 1970.
    """

    sequence_number: int
    offset: str
    enqueued_time_ms: int
    partition_key: str | None
    body: bytes | None


class EventRun:
    """Events of one partition, in order. Iterating makes an Event each; the columns cost nothing per event."""

    __slots__ = ("_data", "_opened", "_opened_count", "_rows", "delivery_count")

    def __init__(self, data: bytes, rows: array[int], count: int) -> None:
        """data: the bytes that rows (delivery rows, kernels.contract) point into. Both belong to the run now."""
        self._data = data
        self._rows = rows
        self.delivery_count = count
        self._opened: array[int] | None = None
        self._opened_count = 0

    @property
    def credit_count(self) -> int:
        """How many deliveries of its link brought it."""
        return self.delivery_count

    @property
    def count(self) -> int:
        """How many events; fewer than delivery_count when one is no legal message: those up to it."""
        self._open()
        return self._opened_count

    @property
    def last_sequence_number(self) -> int:
        """Of the last event, which alone is looked at."""
        last = array("q", bytes(8 * EVENT_WIDTH))
        if open_events(self.data, self.deliveries, self.delivery_count - 1, self.delivery_count, last):
            return last[E_SEQUENCE_NUMBER]
        return self[self.count - 1].sequence_number

    def __len__(self) -> int:
        return self.count

    @property
    def data(self) -> bytes:
        """The bytes as they came, for a kernel."""
        return self._data

    @property
    def deliveries(self) -> array[int]:
        """A delivery row (kernels.contract) for each event of `data`, for a kernel."""
        return self._rows

    def __iter__(self) -> Iterator[Event]:
        return (self[place] for place in range(self.count))

    def __getitem__(self, place: int) -> Event:
        if not 0 <= place < self.count:
            raise IndexError(f"event {place} of a run of {self.count}")
        base = place * EVENT_WIDTH
        columns = self._open()
        key_at = columns[base + E_KEY]
        body_at, body_length = columns[base + E_BODY], columns[base + E_BODY_LENGTH]
        return Event(
            sequence_number=columns[base + E_SEQUENCE_NUMBER],
            offset=str(columns[base + E_OFFSET]),
            enqueued_time_ms=columns[base + E_ENQUEUED_TIME],
            partition_key=None if key_at < 0 else self._text(key_at, columns[base + E_KEY_LENGTH]),
            body=None if body_length < 0 else self.data[body_at : body_at + body_length],
        )

    def sequence_numbers(self) -> array[int]:
        """One integer an event, rising by one."""
        return self._column(E_SEQUENCE_NUMBER)

    def offsets(self) -> array[int]:
        """One integer an event, rising."""
        return self._column(E_OFFSET)

    def enqueued_times_ms(self) -> array[int]:
        """One integer an event, never falling."""
        return self._column(E_ENQUEUED_TIME)

    def bodies(self) -> list[memoryview]:
        """One view an event into the run's bytes; empty where the body is not one data section."""
        view = memoryview(self.data)
        starts, lengths = self._column(E_BODY), self._column(E_BODY_LENGTH)
        return [view[at : at + length] if length >= 0 else view[:0] for at, length in zip(starts, lengths, strict=True)]

    def partition_keys(self) -> list[str | None]:
        """One key an event, None where it has none."""
        starts, lengths = self._column(E_KEY), self._column(E_KEY_LENGTH)
        return [None if at < 0 else self._text(at, length) for at, length in zip(starts, lengths, strict=True)]

    def open_message(self, place: int) -> Message:
        """The whole AMQP message of one event: properties, application properties, any kind of body."""
        base = place * DELIVERY_WIDTH
        rows = self.deliveries
        start = rows[base + D_START]
        return decode_message(memoryview(self.data)[start : start + rows[base + D_LENGTH]])

    def properties(self, place: int) -> dict[Any, Any]:
        """The application properties of one event; empty when it has none."""
        return self.open_message(place).application_properties or {}

    def append_columns(
        self, first: int, last: int, expected: int, until: int, mask: int, rows: int, columns: list[bytearray]
    ) -> tuple[int, int, int, int, int]:
        """Append the events first to last - 1 to columns: what event_columns (kernels/columns_contract.py) does and
        returns.
        """
        return event_columns(self.data, self.deliveries, first, last, expected, until, mask, rows, columns)

    def _column(self, column: int) -> array[int]:
        return self._open()[column : self._opened_count * EVENT_WIDTH : EVENT_WIDTH]

    def _open(self) -> array[int]:
        """EVENT_WIDTH integers an event, found once."""
        if self._opened is None:
            columns = array("q", bytes(8 * EVENT_WIDTH * self.delivery_count))
            self._opened_count = open_events(self.data, self.deliveries, 0, self.delivery_count, columns)
            self._opened = columns
        return self._opened

    def _text(self, at: int, length: int) -> str:
        return self.data[at : at + length].decode("utf-8", "replace")
