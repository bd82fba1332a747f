"""A fragment's state as bytes, for the log's snapshots, and back.

All integers are big-endian. Lengths stand in front of what they are of.

| part | fields |
|------|--------|
| head | version 3; next count 8; next number of a session 8; settings as their operation, 2 + bytes (0: none) |
| pages | how many 4; for each: its number 8, rows 4, bytes 4, what pack_rows made of it |
| changed properties | how many 4; for each: count 8, 4 + bytes |
| sessions | how many 4; for each: number 8, 2 + id, time of its state 8 signed, 4 + state (0xFFFFFFFF: none) |
| ids | of messages, within the window of duplicate detection (duplicate_window.py) |
| transfers | sent and received (transfers.py); version 1 has none |
| transactions | in doubt and decided (logged_transactions.py); since version 3 |

Packed pages are kept until they change, so a snapshot costs by what changed since the one before. Marks and locks are
no part of it, nor are deliveries whose LOCKED is not visible yet: a replay behind it counts these.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.kernels.queue_contract import M_SESSION, M_STATE, PAGE_ROWS, QUEUE_WIDTH, STATE_BITS, SUB_QUEUE_BITS
from hubweir.queue.fragment_state import FragmentState
from hubweir.queue.message_page import Page, packed
from hubweir.queue.message_table import MessageTable
from hubweir.queue.operation import LOCKED, RELEASED, SETTINGS, Operation, decode_operation, encode_operation

VERSION = 3
_READ = (1, 2, 3)
_HEAD = struct.Struct(">BQQH")
_COUNT = struct.Struct(">I")
_PAGE = struct.Struct(">QII")
_CHANGED = struct.Struct(">QI")
_SESSION = struct.Struct(">QHqI")
_NO_STATE = 0xFFFFFFFF


def encode_snapshot(state: FragmentState, under_way: Sequence[Operation]) -> bytes:
    """The state as of the visible end of the log. under_way: operations that are not visible yet."""
    settings = b""
    if state.settings is not None:
        settings = encode_operation(Operation(SETTINGS, settings=state.settings))
    messages, sessions = state.messages, state.sessions
    out = bytearray(_HEAD.pack(VERSION, messages.next_count, sessions.next_number, len(settings)) + settings)
    pages = [page for page in messages.pages.values() if page.live]
    early = _early_deliveries(messages, under_way)
    out += _COUNT.pack(len(pages))
    for page in pages:
        data = _without(page, early[page]) if page in early else messages.pack(page)
        out += _PAGE.pack(page.first // PAGE_ROWS, len(page.rows) // QUEUE_WIDTH, len(data)) + data
    out += _COUNT.pack(len(state.changed))
    for count, properties in state.changed.items():
        out += _CHANGED.pack(count, len(properties)) + properties
    kept = [each for each in sessions.by_number.values() if each.live or each.state is not None]
    out += _COUNT.pack(len(kept))
    for each in kept:
        size = _NO_STATE if each.state is None else len(each.state)
        out += _SESSION.pack(each.number, len(each.session_id), each.state_ms, size) + each.session_id
        out += each.state or b""
    return bytes(out + state.duplicates.encode() + state.transfers.encode() + state.transactions.encode())


def decode_snapshot(data: bytes, *, keeps_sessions: bool = False) -> FragmentState:
    """The state that was encoded, as of a fragment that is made so. NewerFormat; CorruptStore when it is none."""
    if not data or data[0] not in _READ:
        raise NewerFormat(f"the snapshot of a fragment has format {data[:1].hex()}; this version reads {_READ}")
    try:
        return _decode(memoryview(data), FragmentState(keeps_sessions=keeps_sessions))
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise CorruptStore(f"the snapshot of a fragment, of {len(data)} bytes, is none") from error


def _early_deliveries(messages: MessageTable, under_way: Sequence[Operation]) -> dict[Page, list[tuple[int, int, int]]]:
    """Rows that count deliveries which are not visible yet: first row, last row, change, by page; newest first."""
    early: dict[Page, list[tuple[int, int, int]]] = {}
    for operation in reversed(under_way):  # undone in this order a count never stops at 0 on its way
        if operation.code in (LOCKED, RELEASED):
            change = 1 if operation.code == LOCKED else -1
            for first, many in zip(operation.ranges[::2], operation.ranges[1::2], strict=True):
                for page, row, last_row in messages.parts(first, many):
                    early.setdefault(page, []).append((row, last_row, change))
    return early


def _without(page: Page, early: list[tuple[int, int, int]]) -> bytes:
    """A page as it is without these deliveries; it is not kept, as they will be visible."""
    rows = page.rows[:]
    table = MessageTable()
    table.pages[page.first // PAGE_ROWS] = Page(page.first, rows)
    for row, last_row, change in early:
        table.count_deliveries(page.first + row, last_row - row, -change)
    return packed(rows)


def _decode(data: memoryview, state: FragmentState) -> FragmentState:
    version, next_count, next_session, size = _HEAD.unpack_from(data)
    at = _HEAD.size
    if size:
        state.settings = decode_operation(data[at : at + size]).settings
    at = _decode_pages(state.messages, data, at + size)
    state.messages.next_count = next_count
    (many,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    for _ in range(many):
        count, size = _CHANGED.unpack_from(data, at)
        at += _CHANGED.size
        state.set_changed(count, _cut(data, at, size))
        at += size
    at = state.duplicates.restore(data, _decode_sessions(state, data, at))
    if version > 1:
        at = state.transfers.restore(data, at)
    if version > 2:
        at = state.transactions.restore(data, at)
    state.sessions.next_number = next_session
    if at != len(data):
        raise ValueError("bytes are left over")
    return state


def _decode_pages(messages: MessageTable, data: memoryview, at: int) -> int:
    (many,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    for _ in range(many):
        number, rows, size = _PAGE.unpack_from(data, at)
        at += _PAGE.size
        if rows > PAGE_ROWS or at + size > len(data) or not messages.restore(number, rows, data, at, at + size):
            raise ValueError("a page is damaged")
        at += size
    return at


def _decode_sessions(state: FragmentState, data: memoryview, at: int) -> int:
    (many,) = _COUNT.unpack_from(data, at)
    at += _COUNT.size
    for _ in range(many):
        number, id_size, state_ms, size = _SESSION.unpack_from(data, at)
        at += _SESSION.size
        session = state.sessions.add(_cut(data, at, id_size), number)
        at += id_size
        session.state_ms = state_ms
        if size != _NO_STATE:
            state.sessions.keep_state(session, _cut(data, at, size))
            at += size
    if many:
        for page in state.messages.pages.values():
            for row in range(0, len(page.rows), QUEUE_WIDTH):
                bits, number = page.rows[row + M_STATE], page.rows[row + M_SESSION]
                found = state.sessions.by_number.get(number)
                if found is not None and bits & STATE_BITS and not bits & SUB_QUEUE_BITS:
                    state.sessions.place(found, page.first + row // QUEUE_WIDTH)
    return at


def _cut(data: memoryview, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise ValueError("it ends early")
    return bytes(data[at : at + size])
