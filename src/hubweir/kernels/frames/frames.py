"""Cut bytes into AMQP frames and gather whole deliveries, in plain Python: scan_frames and collect_deliveries."""

from __future__ import annotations

from array import array

from hubweir.kernels.buffers.tables import check_range, check_rows
from hubweir.kernels.contract import (
    DELIVERY_WIDTH,
    EMPTY_FRAME,
    F_ABORTED,
    F_BODY,
    F_CHANNEL,
    F_CODE,
    F_DELIVERY_ID,
    F_END,
    F_FORMAT,
    F_HANDLE,
    F_MORE,
    F_PAYLOAD,
    F_SETTLED,
    F_STATE,
    F_TAG,
    F_TAG_LENGTH,
    F_TYPE,
    FRAME_WIDTH,
    MOST_TAG_BYTES,
    SCAN_MALFORMED,
    SCAN_OK,
    SCAN_TOO_LARGE,
    Readable,
)
from hubweir.kernels.messages.sections import BINARY, LIST, Malformed, compound, number, skip_value, take, variable

TRANSFER = 0x14
TRANSFER_FIELDS = 11


def scan_frames(data: Readable, start: int, end: int, max_frame_size: int, table: array[int]) -> tuple[int, int, int]:
    """Cut data[start:end] into frames, one row each; see contract.py."""
    view = memoryview(data)
    check_range(start, end, len(view))
    room, rows, at = len(table) // FRAME_WIDTH, 0, start
    while rows < room and end - at >= 4:
        size = number(view, at, 4, end)
        if size < 8:
            return rows, at, SCAN_MALFORMED
        if size > max_frame_size:
            return rows, at, SCAN_TOO_LARGE
        if end - at < 8:
            break
        body = at + 4 * view[at + 4]
        if body < at + 8 or body > at + size:
            return rows, at, SCAN_MALFORMED
        if size > end - at:
            break
        row = [at, at + size, number(view, at + 6, 2, end), view[at + 5], -1, body, *[-1] * (FRAME_WIDTH - 6)]
        row[F_CODE] = _code(view, body, at + size)
        if row[F_CODE] == TRANSFER:
            try:
                _fill_transfer(view, row)
            except Malformed:
                row[F_CODE:] = [-1, body, *[-1] * (FRAME_WIDTH - 6)]
        table[rows * FRAME_WIDTH : (rows + 1) * FRAME_WIDTH] = array("q", row)
        rows += 1
        at += size
    return rows, at, SCAN_OK


def collect_deliveries(frames: array[int], first: int, last: int, rows: array[int]) -> int:
    """Take the leading transfers of one link that are whole deliveries in order; see contract.py."""
    check_rows(frames, FRAME_WIDTH, first, last)
    room, taken = len(rows) // DELIVERY_WIDTH, 0
    channel = handle = expected = -1
    settled = False
    for index in range(first, last):
        frame = frames[index * FRAME_WIDTH : (index + 1) * FRAME_WIDTH]
        if taken == room or frame[F_CODE] != TRANSFER or frame[F_TYPE] != 0 or frame[F_DELIVERY_ID] < 0:
            break
        if frame[F_MORE] == 1 or frame[F_ABORTED] == 1 or frame[F_STATE] >= 0 or frame[F_TAG_LENGTH] > MOST_TAG_BYTES:
            break
        belongs = frame[F_CHANNEL], frame[F_HANDLE], frame[F_SETTLED] == 1, frame[F_DELIVERY_ID]
        if taken and belongs != (channel, handle, settled, expected):
            break
        channel, handle, settled, _ = belongs
        expected = (frame[F_DELIVERY_ID] + 1) % 2**32
        length = frame[F_END] - frame[F_PAYLOAD]
        delivery = (
            frame[F_DELIVERY_ID], frame[F_PAYLOAD], length, int(settled), max(0, frame[F_FORMAT]),
        )  # fmt: skip
        rows[taken * DELIVERY_WIDTH : (taken + 1) * DELIVERY_WIDTH] = array("q", delivery)
        taken += 1
    return taken


def _code(data: memoryview, body: int, end: int) -> int:
    """The numeric descriptor of the performative at body, EMPTY_FRAME without one, -1 when it is none."""
    if body == end:
        return EMPTY_FRAME
    if end - body >= 3 and data[body] == 0x00 and data[body + 1] == 0x53:
        # 00 53 14 alone says that the columns of a transfer are filled.
        return data[body + 2]
    if end - body >= 10 and data[body] == 0x00 and data[body + 1] == 0x80:
        code = number(data, body + 2, 8, end)
        return code if code < 2**63 and code != TRANSFER else -1
    return -1


def _fill_transfer(data: memoryview, row: list[int]) -> None:
    """Fill the columns of a transfer in the usual form; Malformed when it is in another.

    There is no column for resume and for a settle mode other than `first`: a transfer with one is not usual.
    """
    at, end = row[F_BODY] + 3, row[F_END]
    if row[F_TYPE] != 0 or (take(at, 1, end) and data[at] not in LIST):
        raise Malformed
    count, at, stop = compound(data, at, end)
    if not 1 <= count <= TRANSFER_FIELDS:
        raise Malformed
    for field in range(count):
        behind = skip_value(data, at, stop)
        null = data[at] == 0x40
        if field in (0, 1, 3):
            value = -1 if null else uint_of(data, at, behind)
            row[(F_HANDLE, F_DELIVERY_ID, 0, F_FORMAT)[field]] = value
        elif field == 2 and not null:
            if data[at] not in BINARY:
                raise Malformed
            row[F_TAG], tag_end = variable(data, at, behind)
            row[F_TAG_LENGTH] = tag_end - row[F_TAG]
        elif field in (4, 5, 8, 9, 10):
            flag = -1 if null else boolean_of(data, at)
            if field in (4, 5, 9):
                row[{4: F_SETTLED, 5: F_MORE, 9: F_ABORTED}[field]] = flag
            elif field == 8 and flag == 1:
                raise Malformed
        elif field == 6 and not null:
            if data[at] != 0x50 or data[at + 1] != 0:
                raise Malformed
        elif field == 7 and not null:
            row[F_STATE] = at
        at = behind
    if at != stop or row[F_HANDLE] < 0:
        raise Malformed
    row[F_PAYLOAD] = stop


def uint_of(data: memoryview, at: int, end: int) -> int:
    """The unsigned int from at to end; Malformed for another type."""
    if data[at] == 0x43:
        return 0
    if data[at] not in (0x52, 0x70):
        raise Malformed
    return int.from_bytes(data[at + 1 : end], "big")


def boolean_of(data: memoryview, at: int) -> int:
    """The boolean at `at`, 0 or 1; Malformed for another type."""
    if data[at] in (0x41, 0x42):
        return int(data[at] == 0x41)
    if data[at] != 0x56 or data[at + 1] > 1:
        raise Malformed
    return data[at + 1]
