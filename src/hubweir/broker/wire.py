"""Commands, answers and pushes as bytes, for brokers in other processes.

A frame:

| offset | size | name       | meaning |
|-------:|-----:|------------|---------|
|      0 |    4 | length     | bytes behind this field |
|      4 |    8 | request id | an answer carries its command's; 0 for a push |
|     12 |    4 | head       | bytes of the head |
|     16 |      | head       | an AMQP list: the class's number (commands/command.py), then its fields in order |
|        |      | run        | the class's run of stored batches, if it has one: what is left of the frame |

All integers are big-endian. A run is not part of the list, so it is sent from where it lies and taken as a slice of
what was received. Decoding is strict: an unknown number, a field too many or too few, a value of another type or
bytes left over is a DecodeError, and the receiver ends the connection. Both ends are ours and of one version.
"""

from __future__ import annotations

import dataclasses
import struct
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode

# Every page of the folder, so that all that travels is declared.
from hubweir.broker.commands import (  # noqa: F401
    broker_process,
    capture,
    forwarding,
    fragment,
    keeper,
    partition,
    process,
    producer,
    reader,
    status,
    topic,
    transaction,
)
from hubweir.broker.commands.command import DECLARED, Answer, Command, Message, Push
from hubweir.errors import CONDITION_OF_SYMBOL, Condition, DecodeError, EncodeError

FRAME_HEAD = struct.Struct(">IQI")
LENGTH = struct.Struct(">I")
# A gateway seals a run at 4 MiB, and the message that goes over it has 100 MiB at most (namespace/messaging_tier.py);
# the rest is for heads and properties. At either end sits a process of this service: the limit is for what is damaged.
FRAME_LIMIT_BYTES = 128 * 1024 * 1024

Wire = Callable[[Any], Any]
FrameBuffers = list[bytes | bytearray | memoryview]


# A run stands behind the head. What a broker stores it completes in place, so that one is copied out of the frame.
RUN_FORMS: dict[Any, Callable[[Any], Any]] = {bytearray: bytearray, bytes | memoryview: lambda data: data}


@dataclass(frozen=True, slots=True)
class _FieldForm:
    """How the values of one annotation travel: to a value of AMQP, and back with a check."""

    to_wire: Wire
    from_wire: Wire


@dataclass(frozen=True, slots=True)
class _Form:
    """How one class travels: its fields in order, and the name of its run with what takes it from a frame."""

    made: type[Message]
    fields: tuple[tuple[str, _FieldForm], ...]
    run: tuple[str, Wire] | None


def _field_form(annotation: Any) -> _FieldForm:
    """int, str, bool and bytes travel as they are, an enum as its value, a condition as its symbol, None as null, a
    dataclass as a list of its fields, and a tuple of any number of items as a list of them.
    """
    if annotation in (int, str, bool, bytes):
        return _FieldForm(lambda value: value, _exactly(annotation))
    if typing.get_origin(annotation) is types.UnionType:
        [inner] = [_field_form(each) for each in typing.get_args(annotation) if each is not types.NoneType]
        return _FieldForm(_unless_none(inner.to_wire), _unless_none(inner.from_wire))
    if typing.get_origin(annotation) is dict:
        key, value = (_field_form(each).from_wire for each in typing.get_args(annotation))
        return _FieldForm(
            lambda entries: entries,
            lambda entries: {key(name): value(each) for name, each in _exactly(dict)(entries).items()},
        )
    if typing.get_origin(annotation) is tuple:
        item = _field_form(typing.get_args(annotation)[0])
        return _FieldForm(
            lambda items: [item.to_wire(each) for each in items],
            lambda items: tuple(item.from_wire(each) for each in _exactly(list)(items)),
        )
    if annotation is Condition:
        return _FieldForm(lambda condition: condition.symbol, _condition)
    if issubclass(annotation, Enum):
        return _FieldForm(lambda member: member.value, _member_of(annotation))
    return _list_form(annotation)


def _list_form(made: Any) -> _FieldForm:
    """A dataclass inside a message."""
    hints = typing.get_type_hints(made)
    fields = [(field.name, _field_form(hints[field.name])) for field in dataclasses.fields(made)]

    def from_wire(value: Any) -> Any:
        entries = _entries(value, len(fields))
        return made(**{name: form.from_wire(entry) for (name, form), entry in zip(fields, entries, strict=True)})

    return _FieldForm(lambda part: [form.to_wire(getattr(part, name)) for name, form in fields], from_wire)


def _exactly(kind: type) -> Wire:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise DecodeError(f"a broker frame holds a {type(value).__name__} where {kind.__name__} has to stand")
        return value

    return check


def _unless_none(form: Wire) -> Wire:
    return lambda value: None if value is None else form(value)


def _member_of(kind: type[Enum]) -> Wire:
    check = _exactly(type(next(iter(kind)).value))

    def member(value: Any) -> Any:
        try:
            return kind(check(value))
        except ValueError:
            raise DecodeError(f"a broker frame names the {kind.__name__} {value}, which does not exist") from None

    return member


def _condition(symbol: Any) -> Condition:
    condition = CONDITION_OF_SYMBOL.get(_exactly(str)(symbol))
    if condition is None:
        raise DecodeError(f"a broker frame names the condition {symbol}, which does not exist")
    return condition


def _entries(value: Any, count: int) -> list[Any]:
    entries: list[Any] = _exactly(list)(value)
    if len(entries) != count:
        raise DecodeError(f"a broker frame holds a list of {len(entries)} where {count} have to stand")
    return entries


def _form_of(made: type[Message]) -> _Form:
    hints = typing.get_type_hints(made)
    fields, run = [], None
    for name in made.__struct_fields__:
        annotation = hints[name]
        if annotation in RUN_FORMS:
            run = name, RUN_FORMS[annotation]
        else:
            fields.append((name, _field_form(annotation)))
    return _Form(made, tuple(fields), run)


FORMS = {number: _form_of(made) for number, made in DECLARED.items()}


def encode_frame(request_id: int, message: Message) -> FrameBuffers:
    """The buffers of one frame, in order; the run is the message's own, so it must not change before it is sent.

    Raises EncodeError when the frame would be over FRAME_LIMIT_BYTES or a field is out of its type's range.
    """
    form = FORMS[message.number]
    head = encode([message.number, *(field.to_wire(getattr(message, name)) for name, field in form.fields)])
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
    return _decode(frame, Command)


def decode_answer(frame: memoryview) -> tuple[int, Answer | Push]:
    """Request id and answer, or 0 and a push. A run is a slice of frame: keep the frame's buffer as it is."""
    return _decode(frame, Answer, Push)


def _decode(frame: memoryview, *expected: type[Message]) -> tuple[int, Any]:
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
    if form is None or not issubclass(form.made, expected):
        raise DecodeError(f"a broker frame of number {value[0]} does not belong here")
    fields = _entries(value, 1 + len(form.fields))
    made = {name: field.from_wire(entry) for (name, field), entry in zip(form.fields, fields[1:], strict=True)}
    if form.run is not None:
        name, take = form.run
        made[name] = take(frame[head_end:])
    elif head_end != len(frame):
        raise DecodeError(f"a broker frame of number {value[0]} has bytes left over")
    if issubclass(form.made, Push) != (request_id == 0):
        raise DecodeError("request id 0 is for pushes, and for nothing else")
    return request_id, form.made(**made)
