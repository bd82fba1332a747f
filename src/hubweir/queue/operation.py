"""Operations: what a fragment's log says besides its messages. One operation is one record of an operations batch.

All integers are big-endian. A record begins with the code, 1 byte. *Ranges* are pairs to the end of the record: the
count of a first message, 8 bytes, and how many messages from it on, 4 bytes; no message stands twice. SETTLED without
any says nothing.

| code | name          | fields | what it says |
|-----:|---------------|--------|--------------|
|    1 | SETTINGS      | time to live 8, window 8, signed, -1 none; deliveries 4; flags 1 | held from here on |
|    2 | LOCKED        | ranges | delivered once more |
|    3 | RELEASED      | ranges | not delivered after all |
|    4 | SETTLED       | ranges | gone: completed, deleted, cancelled, received and deleted |
|    5 | EXPIRED       | ranges | gone: their time to live was over |
|    6 | DEFERRED      | ranges | received by their numbers alone from here on; their last delivery does not count |
|    7 | DEAD_LETTERED | sub-queue 1; ranges | they lie in that sub-queue from here on |
|    8 | MODIFIED      | length 4, an AMQP map of that length; ranges | application properties that are set |
|    9 | ACTIVATED     | ranges | scheduled no more: each has the next count, in this order |
|   10 | MOVED         | ranges | the records of the next batch are these messages again, in this order |
|   11 | SESSION_STATE | time 8; length 2, id of that length; 1 when there is a state; the state | set, or cleared |
|   12 | REJECTED      | ranges | dead letters by their receiver's word; their last delivery does not count |
|   13 | SKIPPED       | milliseconds 8 | so much less passed than the enqueued times before and behind it say |
|   14 | TRANSFERRING  | sub-queue 1; number 8; length 2, destination; ranges | this transfer takes them there |
|   15 | TRANSFERRED   | sub-queue 1; number 8 | the messages of this transfer are there, and gone from here |
|   16 | RETURNED      | sub-queue 1; number 8 | they are not there, and stay here |
|   17 | RECEIVED      | number 8; length 2, source; pairs | a transfer's messages are in the next records |
|   18 | HELD          | how many 4 | so many messages in the next records are in doubt, too |
|   19 | UNDELIVERED   | how many 4; length 4, an AMQP map | transfer dead letters are in the next records |
|   20 | PREPARED      | of a transaction | the next operations are in doubt, until ENDED says what became of them |
|   21 | DECIDED       | of a transaction | it is committed, here and in the logs that it names |
|   22 | ENDED         | of a transaction | what PREPARED has is done (flag 1), or not |
|   23 | FORGOTTEN     | of a transaction | all those logs know of the decision |
|   24 | RESERVED      | how many 4 | the next counts are nobody's, until NUMBERED names them |
|   25 | NUMBERED      | count 8; how many 4 | the next records are messages of these counts, which were reserved |

*Of a transaction*: id 16; flag 1; how many operations 4; how many logs 2; for each its id, 2 + bytes; ranges of all
messages that are in doubt. PREPARED stands in one chain with its operations, in front of them, and names the log of the
coordinator; DECIDED stands in one with what is done here, and names the others (logged_transactions.py). HELD is one of
PREPARED's operations: the messages behind it are none yet. ENDED stands in one chain with them, in front, when they are
committed.

Flags of SETTINGS: 1 expired messages are dead-lettered, 2 sessions are required, 4 a message id counts together with
its key where duplicates are detected. A MOVED operation stands in one chain with its batch of messages, in front of it;
so does RECEIVED. Its pairs are for each record what the message was first (forward_origin.py), 8, and when it expires,
8, signed, -1 never. What transfers are says transfers.py. UNDELIVERED and NUMBERED stand in one chain with their
messages, which stand in front of others there, in the order of these operations; the map of UNDELIVERED says why they
are dead letters.
"""

from __future__ import annotations

import struct
from array import array

from msgspec import Struct

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.queue.fragment_settings import FragmentSettings

(
    SETTINGS, LOCKED, RELEASED, SETTLED, EXPIRED, DEFERRED, DEAD_LETTERED, MODIFIED, ACTIVATED, MOVED, SESSION_STATE,
    REJECTED, SKIPPED, TRANSFERRING, TRANSFERRED, RETURNED, RECEIVED, HELD,
    UNDELIVERED,
) = range(1, 20)  # fmt: skip
PREPARED, DECIDED, ENDED, FORGOTTEN, RESERVED, NUMBERED = range(20, 26)
OF_TRANSACTIONS = (PREPARED, DECIDED, ENDED, FORGOTTEN)

_SETTINGS = struct.Struct(">BqqIB")
_RANGE = struct.Struct(">QI")
_MODIFIED = struct.Struct(">BI")
_SESSION_STATE = struct.Struct(">BqH")
_SKIPPED = struct.Struct(">BQ")
_TRANSFER = struct.Struct(">BBQ")
_RECEIVED = struct.Struct(">BQH")
_MANY = struct.Struct(">BI")
_NUMBERED = struct.Struct(">BQI")
_UNDELIVERED = struct.Struct(">BII")
_LENGTH = struct.Struct(">H")
_TRANSACTION = struct.Struct(">B16sBIH")
_DEAD_LETTERS_FLAG, _SESSIONS_FLAG, _KEYS_FLAG = 1, 2, 4
_WITH_RANGES = {LOCKED, RELEASED, SETTLED, EXPIRED, DEFERRED, ACTIVATED, MOVED, REJECTED}
# A record must fit into a batch of its own; more ranges are more operations.
RANGES_LIMIT = 4_096


class LoggedSettings(Struct, frozen=True):
    """The settings that change what the log means; -1: none."""

    default_ttl_ms: int = -1
    duplicate_window_ms: int = -1
    max_delivery_count: int = 10
    dead_letters_on_expiry: bool = False
    requires_session: bool = False
    duplicates_have_keys: bool = False


class Operation(Struct, frozen=True):
    """One operation (table above); fields that its code has not keep their defaults. ranges: pairs, array('q').

    number, name: of a transfer, and its other end; number: of NUMBERED, a count. firsts, ends_ms: of the messages of a
    transfer. many: of operations that are in doubt, or of messages.
    """

    code: int
    ranges: array[int] = array("q")
    sub_queue: int = 0
    properties: bytes = b""
    settings: LoggedSettings = LoggedSettings()
    session_id: bytes = b""
    state: bytes | None = None
    time_ms: int = 0
    number: int = 0
    name: bytes = b""
    firsts: array[int] = array("q")
    ends_ms: array[int] = array("q")
    transaction: bytes = b""
    is_committed: bool = False
    many: int = 0
    logs: tuple[bytes, ...] = ()


def counts_in(ranges: array[int]) -> array[int]:
    """The counts of ranges, one by one."""
    pairs = zip(ranges[::2], ranges[1::2], strict=True)
    return array("q", [count for first, many in pairs for count in range(first, first + many)])


def logged_settings(settings: FragmentSettings) -> LoggedSettings:
    """What of a fragment's settings stands in its log."""
    return LoggedSettings(
        -1 if settings.default_ttl_ms is None else settings.default_ttl_ms,
        -1 if settings.duplicate_window_ms is None else settings.duplicate_window_ms,
        settings.max_delivery_count,
        settings.dead_letters_on_expiry,
        settings.requires_session,
        settings.duplicates_have_keys,
    )


def encode_operation(operation: Operation) -> bytes:
    """The record's bytes. Ranges must be at most RANGES_LIMIT."""
    code = operation.code
    if code == SETTINGS:
        said = operation.settings
        flags = _DEAD_LETTERS_FLAG * said.dead_letters_on_expiry | _SESSIONS_FLAG * said.requires_session
        flags |= _KEYS_FLAG * said.duplicates_have_keys
        return _SETTINGS.pack(code, said.default_ttl_ms, said.duplicate_window_ms, said.max_delivery_count, flags)
    if code == SESSION_STATE:
        head = _SESSION_STATE.pack(code, operation.time_ms, len(operation.session_id)) + operation.session_id
        return head + (b"\x00" if operation.state is None else b"\x01" + operation.state)
    if code == SKIPPED:
        return _SKIPPED.pack(code, operation.time_ms)
    if code == RECEIVED:
        pairs = array("q", bytes(16 * len(operation.firsts)))
        pairs[::2], pairs[1::2] = operation.firsts, operation.ends_ms
        head = _RECEIVED.pack(code, operation.number, len(operation.name)) + operation.name
        return head + struct.pack(f">{len(pairs)}q", *pairs)
    if code in (HELD, RESERVED):
        return _MANY.pack(code, operation.many)
    if code == NUMBERED:
        return _NUMBERED.pack(code, operation.number, operation.many)
    if code == UNDELIVERED:
        return _UNDELIVERED.pack(code, operation.many, len(operation.properties)) + operation.properties
    if code in OF_TRANSACTIONS:
        head = _TRANSACTION.pack(
            code, operation.transaction, operation.is_committed, operation.many, len(operation.logs)
        )
        logs = b"".join(_LENGTH.pack(len(each)) + each for each in operation.logs)
        return head + logs + b"".join(map(_RANGE.pack, operation.ranges[::2], operation.ranges[1::2]))
    if code in (TRANSFERRED, RETURNED):
        return _TRANSFER.pack(code, operation.sub_queue, operation.number)
    if code == TRANSFERRING:
        head = _TRANSFER.pack(code, operation.sub_queue, operation.number)
        head += _LENGTH.pack(len(operation.name)) + operation.name
    elif code == MODIFIED:
        head = _MODIFIED.pack(code, len(operation.properties)) + operation.properties
    else:
        head = bytes((code, operation.sub_queue)) if code == DEAD_LETTERED else bytes((code,))
    ranges = operation.ranges
    if len(ranges) == 2:
        return head + _RANGE.pack(ranges[0], ranges[1])
    return head + b"".join(map(_RANGE.pack, ranges[::2], ranges[1::2]))


def decode_operation(record: memoryview) -> Operation:
    """The operation of a record. CorruptStore when it is none; NewerFormat for a code of a later version."""
    code = record[0] if record else 0
    try:
        if code in _WITH_RANGES:
            return Operation(code, _ranges(record[1:]))
        if code == DEAD_LETTERED:
            return Operation(code, _ranges(record[2:]), sub_queue=_checked(record[1], record[1] in (1, 2)))
        if code == MODIFIED:
            _, size = _MODIFIED.unpack_from(record)
            end = _checked(_MODIFIED.size + size, _MODIFIED.size + size <= len(record))
            return Operation(code, _ranges(record[end:]), properties=bytes(record[_MODIFIED.size : end]))
        if code == SETTINGS:
            _, ttl_ms, window_ms, deliveries, flags = _SETTINGS.unpack(record)
            said = LoggedSettings(
                ttl_ms,
                window_ms,
                deliveries,
                bool(flags & _DEAD_LETTERS_FLAG),
                bool(flags & _SESSIONS_FLAG),
                bool(flags & _KEYS_FLAG),
            )
            return Operation(code, settings=said)
        if code == SKIPPED:
            return Operation(code, time_ms=_SKIPPED.unpack(record)[1])
        if code in (HELD, RESERVED):
            _, many = _MANY.unpack(record)
            return Operation(code, many=_checked(many, many > 0))
        if code == NUMBERED:
            _, number, many = _NUMBERED.unpack(record)
            return Operation(code, number=_checked(number, number > 0), many=_checked(many, many > 0))
        if code == UNDELIVERED:
            _, many, size = _UNDELIVERED.unpack_from(record)
            _checked(size, _UNDELIVERED.size + size == len(record))
            return Operation(code, many=_checked(many, many > 0), properties=bytes(record[_UNDELIVERED.size :]))
        if code in OF_TRANSACTIONS:
            return _of_transaction(record)
        if code in (TRANSFERRED, RETURNED):
            _, sub_queue, number = _TRANSFER.unpack(record)
            return Operation(code, sub_queue=_checked(sub_queue, sub_queue in (0, 1)), number=number)
        if code == TRANSFERRING:
            return _transferring(record)
        if code == RECEIVED:
            return _received(record)
        if code == SESSION_STATE:
            _, time_ms, size = _SESSION_STATE.unpack_from(record)
            end = _SESSION_STATE.size + size
            state = bytes(record[end + 1 :]) if record[end] else None
            return Operation(
                code, session_id=bytes(record[_SESSION_STATE.size : end]), state=state, time_ms=time_ms
            )  # fmt: skip
    except (struct.error, IndexError, ValueError) as error:
        raise CorruptStore(f"an operation of code {code} and {len(record)} bytes is none") from error
    raise NewerFormat(f"a fragment's log holds an operation of code {code}, which this version does not know")


def _of_transaction(record: memoryview) -> Operation:
    code, transaction, is_committed, many, names = _TRANSACTION.unpack_from(record)
    at, logs = _TRANSACTION.size, []
    for _ in range(names):
        (size,) = _LENGTH.unpack_from(record, at)
        at += _LENGTH.size
        logs.append(bytes(record[at : _checked(at + size, at + size <= len(record))]))
        at += size
    return Operation(
        code,
        _ranges(record[at:]),
        transaction=transaction,
        is_committed=bool(_checked(is_committed, is_committed in (0, 1))),
        many=many,
        logs=tuple(logs),
    )


def _transferring(record: memoryview) -> Operation:
    code, sub_queue, number = _TRANSFER.unpack_from(record)
    (size,) = _LENGTH.unpack_from(record, _TRANSFER.size)
    start = _TRANSFER.size + _LENGTH.size
    end = _checked(start + size, start + size <= len(record) and sub_queue in (0, 1))
    return Operation(code, _ranges(record[end:]), sub_queue, number=number, name=bytes(record[start:end]))


def _received(record: memoryview) -> Operation:
    code, number, size = _RECEIVED.unpack_from(record)
    end = _checked(_RECEIVED.size + size, not (len(record) - _RECEIVED.size - size) % 16)
    pairs = array("q", struct.unpack(f">{(len(record) - end) // 8}q", record[end:]))
    name = bytes(record[_RECEIVED.size : end])
    return Operation(code, number=number, name=name, firsts=pairs[::2], ends_ms=pairs[1::2])


def _ranges(data: memoryview) -> array[int]:
    """Pairs of counts; ValueError when they are none."""
    if len(data) % _RANGE.size:
        raise ValueError("no whole ranges")
    ranges = array("q")
    for first, count in _RANGE.iter_unpack(data):
        ranges.append(_checked(first, 0 < first < 2**48))
        ranges.append(_checked(count, 0 < count <= 2**48 - first))
    return ranges


def _checked(value: int, holds: bool) -> int:
    if not holds:
        raise ValueError(f"{value} cannot stand here")
    return value
