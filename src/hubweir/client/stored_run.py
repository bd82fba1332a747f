"""Events that came as stored batches: the same run to its reader, and Arrow columns straight from the batches.

The batches are checked when they come: magic, version, lengths, checksum. Who wants single events gets them as ever:
the kernel that a service sends them with writes the deliveries here, when one is first asked for.
"""

from __future__ import annotations

from array import array

from hubweir.client.event_run import EventRun
from hubweir.errors import DECODE_ERROR, KernelRefusal, ServiceError
from hubweir.event_hub.partition_key import KEY_LIMIT_CHARACTERS
from hubweir.kernels import collect_deliveries, deliver, scan_batches, scan_frames, stored_columns
from hubweir.kernels.contract import (
    B_COUNT,
    B_FIRST_INDEX,
    B_KIND,
    B_LENGTH,
    B_POSITION,
    B_RECORDS,
    BATCH_WIDTH,
    BATCHES_OK,
    D_FORMAT,
    D_LENGTH,
    D_START,
    DELIVERY_WIDTH,
    FRAME_WIDTH,
    STORED_FORMAT,
    RunCursor,
    SendRoom,
    TransferForm,
)
from hubweir.kernels.stored_batch import HEADER_SIZE, KIND_EVENTS, RECORD_HEADER_SIZE
from hubweir.namespace.names import PUBLISHER_NAME_LIMIT

# No event needs more than one frame: these are never sent.
_FRAME_BYTES = 2**31 - 1
_FORM = TransferForm(channel=0, handle=0, max_frame_size=_FRAME_BYTES, settled=True)
# Of a partition key or a publisher, in UTF-8.
_NAME_LIMIT_BYTES = 4 * max(KEY_LIMIT_CHARACTERS, PUBLISHER_NAME_LIMIT)
_LAST_NUMBER = 2**63 - 1
# For one scan at a time: the kernel fills it and nothing keeps it.
_TABLE_ROWS = 16


class StoredRun(EventRun):
    """Events of one partition, in order, out of deliveries of STORED_FORMAT."""

    __slots__ = ("_batches", "_brought", "_credit_count", "_stored")

    def __init__(self, data: bytes, rows: array[int], count: int) -> None:
        """As EventRun, a row for each delivery of batches. ServiceError DECODE_ERROR when they are not sound."""
        self._stored, self._brought, self._credit_count = data, rows, count
        self._batches = _batches_of(data, rows, count)
        super().__init__(b"", array("q"), sum(self._batches[B_COUNT::BATCH_WIDTH]))
        if not self.delivery_count:
            raise _unsound("they hold no event")

    @property
    def credit_count(self) -> int:
        return self._credit_count

    @property
    def last_sequence_number(self) -> int:
        last = len(self._batches) - BATCH_WIDTH
        return self._batches[last + B_FIRST_INDEX] + self._batches[last + B_COUNT] - 1

    @property
    def data(self) -> bytes:
        self._expand()
        return self._data

    @property
    def deliveries(self) -> array[int]:
        self._expand()
        return self._rows

    def sequence_numbers(self) -> array[int]:
        numbers = array("q")
        for at in range(0, len(self._batches), BATCH_WIDTH):
            first = self._batches[at + B_FIRST_INDEX]
            numbers.extend(range(first, first + self._batches[at + B_COUNT]))
        return numbers

    def append_columns(
        self, first: int, last: int, expected: int, until: int, mask: int, rows: int, columns: list[bytearray]
    ) -> tuple[int, int, int, int, int]:
        return stored_columns(self._stored, self._batches, first, last, expected, until, mask, rows, columns)

    def _expand(self) -> None:
        """Write each event as a delivery of its own, once."""
        if self._rows:
            return
        out, view, events = bytearray(), memoryview(self._stored), self.delivery_count
        room = SendRoom(deliveries=events, frames=events, bytes=2**62)
        written = 0
        for start, end in _ranges(self._brought, self._credit_count):
            try:
                written += deliver(view[start:end], RunCursor(), _FORM, written, room, out)[0]
            except KernelRefusal as refusal:
                raise _unsound(str(refusal)) from refusal
        frames, rows = array("q", bytes(8 * FRAME_WIDTH * written)), array("q", bytes(8 * DELIVERY_WIDTH * written))
        scan_frames(out, 0, len(out), _FRAME_BYTES, frames)
        collect_deliveries(frames, 0, written, rows)
        self._data, self._rows = bytes(out), rows


def _batches_of(data: bytes, rows: array[int], count: int) -> array[int]:
    """A batch row (kernels.contract) for each batch of the deliveries."""
    if rows[D_FORMAT : count * DELIVERY_WIDTH : DELIVERY_WIDTH].count(STORED_FORMAT) != count:
        raise _unsound("a delivery has another message format")
    batches, table = array("q"), array("q", bytes(8 * BATCH_WIDTH * _TABLE_ROWS))
    for start, end in _ranges(rows, count):
        while start < end:
            found, start, status = scan_batches(data, start, end, 0, table)
            if status != BATCHES_OK:
                raise _unsound(f"{end - start} bytes are no batch of a version that this client knows, or damaged")
            batches += table[: found * BATCH_WIDTH]
    for at in range(0, len(batches), BATCH_WIDTH):
        most = (batches[at + B_LENGTH] - HEADER_SIZE) // RECORD_HEADER_SIZE
        if batches[at + B_KIND] != KIND_EVENTS or not 0 < batches[at + B_COUNT] <= most:
            raise _unsound("one does not hold as many events as it says")
        if not 0 <= batches[at + B_FIRST_INDEX] <= _LAST_NUMBER - batches[at + B_COUNT]:
            raise _unsound("the numbers of one go beyond 63 bits")
        # Each of its events is given the name, so a long one would become terabytes.
        if batches[at + B_RECORDS] - batches[at + B_POSITION] - HEADER_SIZE > _NAME_LIMIT_BYTES:
            raise _unsound("the name of one is longer than a partition key may be, or it names a producer")
    return batches


def _ranges(rows: array[int], count: int) -> list[tuple[int, int]]:
    """Where each delivery lies in the bytes."""
    starts = rows[D_START : count * DELIVERY_WIDTH : DELIVERY_WIDTH]
    lengths = rows[D_LENGTH : count * DELIVERY_WIDTH : DELIVERY_WIDTH]
    return [(start, start + length) for start, length in zip(starts, lengths, strict=True)]


def _unsound(why: str) -> ServiceError:
    return ServiceError(DECODE_ERROR, f"the stored batches that came are not sound: {why}")
