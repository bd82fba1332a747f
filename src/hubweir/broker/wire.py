"""Commands, answers and pushes as bytes, for brokers in other processes.

A frame is a head and a body (drivers/broker_driver.py). The body is the class's run of stored batches, if it has one.
The head:

| offset | size | name       | meaning |
|-------:|-----:|------------|---------|
|      0 |    8 | request id | an answer carries its command's; 0 for a push; big-endian |
|      8 |    1 | number     | the class's (commands/command.py) |
|      9 |      | fields     | an array of MessagePack: the class's other fields in order |

A run is not part of the array, so it is sent from where it lies and taken as it was received. Decoding is strict: an
unknown number, a field too many or too few, a value of another type, a body where none belongs or bytes left over are
a DecodeError, and the receiver ends the connection. Both ends are ours and of one version.
"""

from __future__ import annotations

import struct
import typing
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

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
    sign_in,
    status,
    testcontrol,
    topic,
    transaction,
)
from hubweir.broker.commands.command import DECLARED, Answer, Command, Message, Push
from hubweir.errors import CONDITION_OF_SYMBOL, Condition, DecodeError, EncodeError

HEAD_START = struct.Struct(">QB")
FRAME_START = struct.Struct(">IIQB")  # what the driver reads, the lengths of head and body; then that of the head
# A gateway seals a run at 4 MiB, and the message that goes over it has 100 MiB at most (namespace/messaging_tier.py);
# the rest is for heads and properties. At either end sits a process of this service: the limit is for what is damaged.
FRAME_LIMIT_BYTES = 128 * 1024 * 1024

FrameBuffers = list[bytes | bytearray | memoryview]

# Annotations of a run, and what makes one of a body: a broker completes what it stores in place, others only read.
_RUN_FORMS: dict[Any, Callable[[bytearray], Any]] = {bytearray: lambda body: body, bytes | memoryview: memoryview}

_encode_fields = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Form:
    """How one class travels.

    decode: fields from bytes, each checked against its annotation; a condition as its symbol. condition_at: the place
    of that one in the array, if the class has one. run_at: the place of the run among all fields, if there is one;
    run_of: what makes it of a body.
    """

    made: type[Message]
    decode: Callable[[memoryview], tuple[Any, ...]]
    condition_at: int | None
    run_at: int | None
    run_of: Callable[[bytearray], Any]


def _made_form(made: type[Message]) -> _Form:
    hints = typing.get_type_hints(made)
    annotations = [hints[name] for name in made.__struct_fields__]
    run_at, run_of = None, _RUN_FORMS[bytearray]
    for place, annotation in enumerate(annotations):
        if annotation in _RUN_FORMS:
            run_at, run_of = place, _RUN_FORMS[annotation]
    if run_at is not None:
        del annotations[run_at]
    condition_at = annotations.index(Condition) if Condition in annotations else None
    if condition_at is not None:
        annotations[condition_at] = str
    decode = msgspec.msgpack.Decoder(tuple[tuple(annotations)]).decode  # type: ignore[misc]  # made at run time
    return _Form(made, decode, condition_at, run_at, run_of)


@cache
def form_of(number: int) -> _Form | None:
    """Made when it is first needed: a process needs few of them, and all would be a fortieth of its start. None: no
    class has the number."""
    made = DECLARED.get(number)
    return None if made is None else _made_form(made)


def encode_frame(request_id: int, message: Message) -> FrameBuffers:
    """The buffers of one frame, in order; the run is the message's own, so it must not change before it is sent.

    Raises EncodeError when the frame would be over FRAME_LIMIT_BYTES or MessagePack has no form for a value.
    """
    form = form_of(message.number)
    assert form is not None  # its class is declared
    values = list(msgspec.structs.astuple(message))
    run = b"" if form.run_at is None else values.pop(form.run_at)
    if form.condition_at is not None:
        values[form.condition_at] = values[form.condition_at].symbol
    try:
        fields = _encode_fields(values)
    except (OverflowError, UnicodeEncodeError) as error:
        raise EncodeError(f"a {type(message).__name__} cannot be sent: {error}") from None
    head_length, body_length = HEAD_START.size + len(fields), len(run)
    size = head_length + body_length
    if size > FRAME_LIMIT_BYTES:
        raise EncodeError(f"a {type(message).__name__} of {size} bytes is over the limit of {FRAME_LIMIT_BYTES}")
    start = FRAME_START.pack(head_length, body_length, request_id, message.number) + fields
    return [start, run] if body_length else [start]


def decode_command(head: memoryview, body: bytearray) -> tuple[int, Command]:
    """Request id and command of a frame; head is not kept. A run in it is the body itself."""
    return _decode(head, body, Command)


def decode_answer(head: memoryview, body: bytearray) -> tuple[int, Answer | Push]:
    """Request id and answer, or 0 and a push; head is not kept. A run in it is a view of the body."""
    return _decode(head, body, Answer, Push)


def _decode(head: memoryview, body: bytearray, *expected: type[Message]) -> tuple[int, Any]:
    if len(head) < HEAD_START.size:
        raise DecodeError(f"the head of a broker frame has {len(head)} bytes, less than its start")
    request_id, number = HEAD_START.unpack_from(head)
    form = form_of(number)
    if form is None or not issubclass(form.made, expected):
        raise DecodeError(f"a broker frame of number {number} does not belong here")
    try:
        values = list(form.decode(head[HEAD_START.size :]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(f"a broker frame is no {form.made.__name__}: {error}") from None
    if form.condition_at is not None:
        values[form.condition_at] = _condition(values[form.condition_at])
    if form.run_at is not None:
        values.insert(form.run_at, form.run_of(body))
    elif body:
        raise DecodeError(f"a broker frame of number {number} has a body, and no run")
    if issubclass(form.made, Push) != (request_id == 0):
        raise DecodeError("request id 0 is for pushes, and for nothing else")
    return request_id, form.made(*values)


def _condition(symbol: str) -> Condition:
    condition = CONDITION_OF_SYMBOL.get(symbol)
    if condition is None:
        raise DecodeError(f"a broker frame names the condition {symbol}, which does not exist")
    return condition
