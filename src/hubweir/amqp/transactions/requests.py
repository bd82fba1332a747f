"""Requests of a controller to a coordinator: declare and discharge, each the value of a message (part 4, section 4.5).

A declare is answered with the state Declared. A discharge is answered accepted when the transaction ended as it asks,
and else rejected.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.amqp.types.composite import Composite, CompositeTable, amqp_field, composite, encode_composite
from hubweir.amqp.types.decode import decode
from hubweir.amqp.types.encode import encode_into
from hubweir.amqp.types.field_types import BINARY, BOOLEAN, FieldType, WrongType
from hubweir.amqp.types.values import Described
from hubweir.errors import DecodeError


def _read_described(value: object) -> Described:
    if type(value) is not Described:
        raise WrongType
    return value


# Of transactions that span several coordinators; the standard names no form of it.
_GLOBAL_ID: Final = FieldType("a global id", _read_described, encode_into)


@composite
class Declare(Composite):
    """Begin a transaction. global_id: of one that spans several coordinators, which nobody offers; None."""

    CODE: ClassVar[int] = 0x31
    NAME: ClassVar[str] = "amqp:declare:list"
    global_id: Described | None = amqp_field(_GLOBAL_ID, default=None)


@composite
class Discharge(Composite):
    """End a transaction. fail: roll it back; else commit it."""

    CODE: ClassVar[int] = 0x32
    NAME: ClassVar[str] = "amqp:discharge:list"
    txn_id: bytes = amqp_field(BINARY)
    fail: bool = amqp_field(BOOLEAN, default=False)


Request = Declare | Discharge
_REQUESTS: Final[CompositeTable[Request]] = CompositeTable("request to a coordinator", (Declare, Discharge))


def request_of(message: Message) -> Request:
    """What a message asks a coordinator for. Raises DecodeError when it is neither declare nor discharge."""
    if not isinstance(message.body, ValueBody):
        raise DecodeError("the body of a request to a coordinator is one value")
    return _REQUESTS.read(message.body.value)


def message_of(request: Request) -> Message:
    """The message that asks for it."""
    value, _ = decode(encode_composite(request))
    return Message(body=ValueBody(value))
