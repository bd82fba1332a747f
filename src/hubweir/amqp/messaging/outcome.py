"""Delivery states and outcomes: received, accepted, rejected, released, modified (part 3, section 3.4).

Accepted, Rejected, Released and Modified are outcomes; Received only says how far a delivery has come. Two states are
of transactions (part 4, sections 4.5.5 and 4.5.8): Declared answers a declare, and TransactionalState says that a
delivery, or its outcome, is part of a transaction. A state that is none of these stays Described: whoever acts on the
delivery decides.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.types.composite import Composite, amqp_field, composite, composite_type
from hubweir.amqp.types.encode import encode_into
from hubweir.amqp.types.field_types import BINARY, BOOLEAN, NAMED, UINT, ULONG, FieldType, WrongType
from hubweir.amqp.types.values import Described, Symbol


@composite
class Received(Composite):
    """The receiver has the delivery up to this byte. Only for resuming, which no client does."""

    CODE: ClassVar[int] = 0x23
    NAME: ClassVar[str] = "amqp:received:list"
    section_number: int = amqp_field(UINT)
    section_offset: int = amqp_field(ULONG)


@composite
class Accepted(Composite):
    """The receiver has taken the delivery over."""

    CODE: ClassVar[int] = 0x24
    NAME: ClassVar[str] = "amqp:accepted:list"


@composite
class Rejected(Composite):
    """The receiver finds the delivery invalid; error says why."""

    CODE: ClassVar[int] = 0x25
    NAME: ClassVar[str] = "amqp:rejected:list"
    error: AmqpError | None = amqp_field(composite_type(AmqpError), default=None)


@composite
class Released(Composite):
    """The receiver did not act on the delivery and will not."""

    CODE: ClassVar[int] = 0x26
    NAME: ClassVar[str] = "amqp:released:list"


@composite
class Modified(Composite):
    """The receiver did not take the delivery, and tells the sender what to change before another attempt."""

    CODE: ClassVar[int] = 0x27
    NAME: ClassVar[str] = "amqp:modified:list"
    delivery_failed: bool = amqp_field(BOOLEAN, default=False)
    undeliverable_here: bool = amqp_field(BOOLEAN, default=False)
    message_annotations: dict[Symbol, object] | None = amqp_field(NAMED, default=None)


def _read_described(value: object) -> Described:
    if type(value) is not Described:
        raise WrongType
    return value


_OTHER_STATE: Final = FieldType("another described state", _read_described, encode_into)

Outcome = Accepted | Rejected | Released | Modified
OUTCOME: Final = composite_type(Accepted, Rejected, Released, Modified, otherwise=_OTHER_STATE)


@composite
class Declared(Composite):
    """A transaction was declared; txn_id names it from now on."""

    CODE: ClassVar[int] = 0x33
    NAME: ClassVar[str] = "amqp:declared:list"
    txn_id: bytes = amqp_field(BINARY)


@composite
class TransactionalState(Composite):
    """The delivery is part of this transaction. outcome: what becomes of it when that is committed; None: not said."""

    CODE: ClassVar[int] = 0x34
    NAME: ClassVar[str] = "amqp:transactional-state:list"
    txn_id: bytes = amqp_field(BINARY)
    outcome: Outcome | Described | None = amqp_field(OUTCOME, default=None)


DeliveryState = Outcome | Received | Declared | TransactionalState | Described
DELIVERY_STATE: Final = composite_type(
    Accepted, Rejected, Released, Modified, Received, Declared, TransactionalState, otherwise=_OTHER_STATE
)
