"""Operations of a topic's log besides those of its own messages: one operation is one record of an operations batch.

A topic's messages and their operations stand in its log as those of a queue do (queue/operation.py). A subscription has
a number in the log, which is never another's. All integers are big-endian; a record begins with the code, 1 byte.

| code | name    | fields | what it says |
|-----:|---------|--------|--------------|
|   32 | ADDED   | number 4; the subscription's id | it is there from here on |
|   33 | REMOVED | number 4 | it and all that it had is gone |
|   34 | WITHIN  | number 4; an operation of a queue | what its fragment says of the messages that it has |
|   35 | COPIED  | how many 2, their numbers 4 each; ranges | these messages of the topic are messages of theirs, too |
|   36 | CHANGED | pairs of number 4 and count 8 | the next records are these copies, which COPIED behind them makes |
|   37 | PARTLY  | count 8; two places; how many 4 | the next so many COPIED copy this message from place to place |

*Ranges* are those of a queue's operations; in COPIED a message may stand more than once. COPIED stands in one chain
with the operation that settles the topic's messages; so a message is with all its subscriptions, or with the topic.
Copies of one message that are too much for one chain are made by several, in the order of the subscriptions' numbers:
all but the last have PARTLY in front, and leave the message with the topic. A *place* is the number of a subscription,
4, and how many of its copies there are, 4; those with a lower number have all. Where a message is not at the first
place, the chain stands twice, and makes nothing.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence

from msgspec import Struct

from hubweir.errors import CorruptStore, NewerFormat

ADDED, REMOVED, WITHIN, COPIED, CHANGED, PARTLY = range(32, 38)
FIRST_CODE = ADDED  # those of queues are below

_NUMBER = struct.Struct(">BI")
_COPIED = struct.Struct(">BH")
_VIEW = struct.Struct(">I")
_PAIR = struct.Struct(">IQ")
_RANGE = struct.Struct(">QI")
_PARTLY = struct.Struct(">BQIIIII")

# How far the copies of a message are made: number of a subscription, and how many of its.
Place = tuple[int, int]
FIRST_PLACE: Place = (0, 0)


class TopicOperation(Struct, frozen=True):
    """One operation (table above); fields that its code has not keep their defaults.

    numbers: of subscriptions. ranges: pairs of the topic's counts. copies: pairs of number and count. inner: the record
    of an operation of a queue. places: from and to; many: how many COPIED.
    """

    code: int
    numbers: tuple[int, ...] = ()
    subscription_id: str = ""
    ranges: array[int] = array("q")
    copies: tuple[tuple[int, int], ...] = ()
    inner: bytes | memoryview = b""
    places: tuple[Place, Place] = (FIRST_PLACE, FIRST_PLACE)
    many: int = 0


def prefix_of(number: int) -> bytes:
    """What the operations of this subscription's fragment begin with."""
    return _NUMBER.pack(WITHIN, number)


def added(number: int, subscription_id: str) -> bytes:
    """The record of ADDED."""
    return _NUMBER.pack(ADDED, number) + subscription_id.encode()


def removed(number: int) -> bytes:
    """The record of REMOVED."""
    return _NUMBER.pack(REMOVED, number)


def copied(numbers: Sequence[int], ranges: array[int]) -> bytes:
    """The record of COPIED. ranges: at most RANGES_LIMIT pairs."""
    head = _COPIED.pack(COPIED, len(numbers)) + b"".join(map(_VIEW.pack, numbers))
    return head + b"".join(map(_RANGE.pack, ranges[::2], ranges[1::2]))


def changed(copies: Sequence[tuple[int, int]]) -> bytes:
    """The record of CHANGED. copies: at most RANGES_LIMIT."""
    return bytes((CHANGED,)) + b"".join(_PAIR.pack(number, count) for number, count in copies)


def partly(count: int, place: Place, next_place: Place, many: int) -> bytes:
    """The record of PARTLY, in front of so many of COPIED."""
    return _PARTLY.pack(PARTLY, count, *place, *next_place, many)


def decode_topic_operation(record: memoryview) -> TopicOperation:
    """The operation of a record. CorruptStore when it is none; NewerFormat for a code of a later version."""
    code = record[0] if record else 0
    try:
        if code in (ADDED, REMOVED, WITHIN):
            _, number = _NUMBER.unpack_from(record)
            rest = record[_NUMBER.size :]
            if code == REMOVED and len(rest):
                raise ValueError("bytes are left over")
            identity = bytes(rest).decode() if code == ADDED else ""
            return TopicOperation(code, (number,), identity, inner=rest if code == WITHIN else b"")
        if code == COPIED:
            _, many = _COPIED.unpack_from(record)
            at = _COPIED.size + many * _VIEW.size
            numbers = tuple(number for (number,) in _VIEW.iter_unpack(record[_COPIED.size : at]))
            pairs = [each for pair in _RANGE.iter_unpack(record[at:]) for each in pair]
            if len(numbers) != many or any(not 0 < each < 2**48 for each in pairs):
                raise ValueError("no copies")
            return TopicOperation(code, numbers, ranges=array("q", pairs))
        if code == CHANGED:
            return TopicOperation(code, copies=tuple(_PAIR.iter_unpack(record[1:])))
        if code == PARTLY:
            _, count, number, made, next_number, next_made, many = _PARTLY.unpack(record)
            places = (number, made), (next_number, next_made)
            return TopicOperation(code, ranges=array("q", (count, 1)), places=places, many=many)
    except (struct.error, ValueError) as error:
        raise CorruptStore(f"an operation of code {code} and {len(record)} bytes is none") from error
    raise NewerFormat(f"a topic's log holds an operation of code {code}, which this version does not know")
