"""Commands, answers and pushes as bytes, for brokers in other processes.

A frame:

| offset | size | name       | meaning |
|-------:|-----:|------------|---------|
|      0 |    4 | length     | bytes behind this field |
|      4 |    8 | request id | an answer carries its command's; 0 for a push |
|     12 |    4 | head       | bytes of the head |
|     16 |      | head       | an AMQP list: the class's number (table below), then its fields in order |
|        |      | run        | the class's run of stored batches, if it has one: what is left of the frame |

All integers are big-endian. A run is not part of the list, so it is sent from where it lies and taken as a slice of
what was received. Decoding is strict: an unknown number, a field too many or too few, a value of another type or
bytes left over is a DecodeError, and the receiver ends the connection. Both ends are ours and of one version; a
number is never used again for another class.
"""

from __future__ import annotations

import dataclasses
import struct
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode
from hubweir.broker.commands import (
    AlreadyAppended,
    Answer,
    AppendEvents,
    AppendNumbered,
    AskCaptureState,
    AskCounters,
    AskPartitionInfo,
    CancelRead,
    CapPartitions,
    CaptureState,
    ChangePartition,
    CloseOwner,
    CloseProducer,
    CloseReader,
    Command,
    ConfirmReaderClosed,
    CountersTaken,
    CreatePartition,
    DeletePartition,
    Done,
    EventsAppended,
    EventsRead,
    OpenProducer,
    OpenReader,
    Owner,
    PartitionInfo,
    ProducerOpened,
    Push,
    ReaderClosed,
    ReaderOpened,
    ReadEvents,
    Refusal,
)
from hubweir.errors import DecodeError, EncodeError
from hubweir.event_hub.event_position import EventPosition, PositionKind
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination

NUMBERS: dict[type, int] = {
    CreatePartition: 1, DeletePartition: 2, ChangePartition: 3, AppendEvents: 4, OpenReader: 5, CloseReader: 6,
    CloseOwner: 7, ReadEvents: 8, CancelRead: 9, AskPartitionInfo: 10, AskCounters: 11,
    ConfirmReaderClosed: 12, OpenProducer: 13, CloseProducer: 14, AppendNumbered: 15,
    CapPartitions: 16, AskCaptureState: 20,
    Done: 64, EventsAppended: 65, ReaderOpened: 66, EventsRead: 67, PartitionInfo: 68, CountersTaken: 69, Refusal: 70,
    ProducerOpened: 71, AlreadyAppended: 72, CaptureState: 80,
    ReaderClosed: 128,
}  # fmt: skip

FRAME_HEAD = struct.Struct(">IQI")
LENGTH = struct.Struct(">I")
# A gateway seals a run at 4 MiB, and the delivery that goes over it has 1 MiB; the rest is room to change that.
FRAME_LIMIT_BYTES = 16 * 1024 * 1024

Wire = Callable[[Any], Any]
FrameBuffers = list[bytes | bytearray | memoryview]


def _same(value: Any) -> Any:
    return value


def _exactly(kind: type) -> Wire:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise DecodeError(f"a broker frame holds a {type(value).__name__} where {kind.__name__} has to stand")
        return value

    return check


def _or_none(check: Wire) -> Wire:
    return lambda value: None if value is None else check(value)


def _durability(value: Any) -> Durability:
    try:
        return Durability(_exactly(int)(value))
    except ValueError:
        raise DecodeError(f"a broker frame names the durability {value}, which does not exist") from None


def _position(value: Any) -> EventPosition:
    kind, number, inclusive = _entries(value, 3)
    try:
        named = PositionKind(_exactly(int)(kind))
    except ValueError:
        raise DecodeError(f"a broker frame names the position kind {kind}, which does not exist") from None
    return EventPosition(named, _exactly(int)(number), _exactly(bool)(inclusive))


def _owner(value: Any) -> Owner:
    process, connection = _entries(value, 2)
    return Owner(_exactly(int)(process), _exactly(int)(connection))


def _capture(value: Any) -> CaptureDescription:
    entries = iter(_entries(value, len(_CAPTURE_FIELDS)))
    made = {name: _exactly(kind)(next(entries)) for name, kind in _CAPTURE_FIELDS.items()}
    try:
        return CaptureDescription(**{**made, "destination": CaptureDestination(made["destination"])})
    except ValueError:
        named = made["destination"]
        raise DecodeError(f"a broker frame names the destination {named}, which does not exist") from None


def _capture_list(capture: CaptureDescription | None) -> list[Any] | None:
    if capture is None:
        return None
    values = [getattr(capture, name) for name in _CAPTURE_FIELDS]
    return [value.value if isinstance(value, CaptureDestination) else value for value in values]


# In the order in which they travel.
_CAPTURE_FIELDS: dict[str, type] = {
    "enabled": bool, "interval_s": int, "size_limit_bytes": int, "destination": str, "container": str,
    "storage_account": str, "archive_name_format": str, "skip_empty_archives": bool,
}  # fmt: skip


def _counters(value: Any) -> dict[str, int]:
    entries = _exactly(dict)(value)
    return {_exactly(str)(name): _exactly(int)(count) for name, count in entries.items()}


def _entries(value: Any, count: int) -> list[Any]:
    entries: list[Any] = _exactly(list)(value)
    if len(entries) != count:
        raise DecodeError(f"a broker frame holds a list of {len(entries)} where {count} have to stand")
    return entries


# Per annotation: to AMQP, and back with a check. IntEnums travel as their numbers.
FIELD_FORMS: dict[Any, tuple[Wire, Wire]] = {
    int: (_same, _exactly(int)),
    str: (_same, _exactly(str)),
    bool: (_same, _exactly(bool)),
    int | None: (_same, _or_none(_exactly(int))),
    str | None: (_same, _or_none(_exactly(str))),
    Durability: (int, _durability),
    EventPosition: (lambda position: [int(position.kind), position.value, position.inclusive], _position),
    Owner: (lambda owner: [owner.process, owner.connection], _owner),
    dict[str, int]: (_same, _counters),
    CaptureDescription | None: (_capture_list, _or_none(_capture)),
}
# A run stands behind the head. What a broker stores it completes in place, so that one is copied out of the frame.
RUN_FORMS: dict[Any, Wire] = {bytearray: bytearray, bytes | memoryview: _same}


@dataclass(frozen=True, slots=True)
class _Form:
    """How one class travels."""

    made: type
    fields: tuple[tuple[str, Wire, Wire], ...]
    run: tuple[str, Wire] | None


def _form_of(made: type) -> _Form:
    hints = typing.get_type_hints(made)
    fields, run = [], None
    for field in dataclasses.fields(made):
        annotation = hints[field.name]
        if annotation in RUN_FORMS:
            run = field.name, RUN_FORMS[annotation]
        else:
            fields.append((field.name, *FIELD_FORMS[annotation]))
    return _Form(made, tuple(fields), run)


FORMS = {number: _form_of(made) for made, number in NUMBERS.items()}
COMMANDS, ANSWERS, PUSHES = (frozenset(typing.get_args(union) or (union,)) for union in (Command, Answer, Push))


def encode_frame(request_id: int, message: Command | Answer | Push) -> FrameBuffers:
    """The buffers of one frame, in order; the run is the message's own, so it must not change before it is sent.

    Raises EncodeError when the frame would be over FRAME_LIMIT_BYTES or a field is out of its type's range.
    """
    number = NUMBERS[type(message)]
    form = FORMS[number]
    head = encode([number, *(to_wire(getattr(message, name)) for name, to_wire, _ in form.fields)])
    run = getattr(message, form.run[0]) if form.run is not None else b""
    length = FRAME_HEAD.size - LENGTH.size + len(head) + len(run)
    if length > FRAME_LIMIT_BYTES:
        raise EncodeError(f"a {type(message).__name__} of {length} bytes is over the limit of {FRAME_LIMIT_BYTES}")
    buffers: FrameBuffers = [FRAME_HEAD.pack(length, request_id, len(head)) + head]
    if len(run):
        buffers.append(run)
    return buffers


def decode_command(frame: memoryview) -> tuple[int, Command]:
    """Request id and command of a whole frame, length field included; a run in it is copied where it is written to."""
    return _decode(frame, COMMANDS)


def decode_answer(frame: memoryview) -> tuple[int, Answer | Push]:
    """Request id and answer, or 0 and a push. A run is a slice of frame: keep the frame's buffer as it is."""
    return _decode(frame, ANSWERS | PUSHES)


def _decode(frame: memoryview, expected: frozenset[Any]) -> tuple[int, Any]:
    if len(frame) < FRAME_HEAD.size:
        raise DecodeError(f"a broker frame has {len(frame)} bytes, less than its head")
    length, request_id, head_length = FRAME_HEAD.unpack_from(frame)
    head_end = FRAME_HEAD.size + head_length
    if length + LENGTH.size != len(frame) or head_end > len(frame):
        raise DecodeError("the lengths in a broker frame do not fit it")
    value, end = decode(frame, FRAME_HEAD.size, head_end)
    if end != head_end or type(value) is not list or not value:
        raise DecodeError("the head of a broker frame is not one list")
    form = FORMS.get(_exactly(int)(value[0]))
    if form is None or form.made not in expected:
        raise DecodeError(f"a broker frame of number {value[0]} does not belong here")
    fields = _entries(value, 1 + len(form.fields))
    made = {name: check(entry) for (name, _, check), entry in zip(form.fields, fields[1:], strict=True)}
    if form.run is not None:
        name, take = form.run
        made[name] = take(frame[head_end:])
    elif head_end != len(frame):
        raise DecodeError(f"a broker frame of number {value[0]} has bytes left over")
    if (form.made in PUSHES) != (request_id == 0):
        raise DecodeError("request id 0 is for pushes, and for nothing else")
    return request_id, form.made(**made)
