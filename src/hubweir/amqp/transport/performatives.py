"""The nine performatives, each a table of its fields (part 2, section 2.7).

Field names, order, types and defaults are the standard's. Integers are plain ints here: the table knows their width.
A role is False for a sender and True for a receiver. Settle modes: sender 0 unsettled, 1 settled, 2 mixed; receiver
0 first, 1 second. Windows count transfer frames, ids wrap at 2**32 (serial_number.py).
"""

from __future__ import annotations

from typing import ClassVar, Final

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import DELIVERY_STATE, DeliveryState
from hubweir.amqp.messaging.terminus import SOURCE, TARGET, Coordinator, Source, Target
from hubweir.amqp.types.composite import (
    Composite,
    CompositeTable,
    amqp_field,
    composite,
    composite_type,
)
from hubweir.amqp.types.field_types import (
    BINARY,
    BOOLEAN,
    FIELDS,
    MAP,
    STRING,
    SYMBOLS,
    UBYTE,
    UINT,
    ULONG,
    USHORT,
)
from hubweir.amqp.types.read_scalar import Buffer
from hubweir.amqp.types.values import Symbol

ERROR: Final = composite_type(AmqpError)
UINT_MAX: Final = 0xFFFF_FFFF
USHORT_MAX: Final = 0xFFFF


@composite
class Open(Composite):
    """Opens a connection. max_frame_size is in bytes, idle_time_out in milliseconds (None: never)."""

    CODE: ClassVar[int] = 0x10
    NAME: ClassVar[str] = "amqp:open:list"
    container_id: str = amqp_field(STRING)
    hostname: str | None = amqp_field(STRING, default=None)
    max_frame_size: int = amqp_field(UINT, default=UINT_MAX)
    channel_max: int = amqp_field(USHORT, default=USHORT_MAX)
    idle_time_out: int | None = amqp_field(UINT, default=None)
    outgoing_locales: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    incoming_locales: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    offered_capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    desired_capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    properties: dict[Symbol, object] | None = amqp_field(FIELDS, default=None)


@composite
class Begin(Composite):
    """Begins a session on a channel; remote_channel is set only in the answer to a peer's begin."""

    CODE: ClassVar[int] = 0x11
    NAME: ClassVar[str] = "amqp:begin:list"
    remote_channel: int | None = amqp_field(USHORT, default=None)
    next_outgoing_id: int = amqp_field(UINT)
    incoming_window: int = amqp_field(UINT)
    outgoing_window: int = amqp_field(UINT)
    handle_max: int = amqp_field(UINT, default=UINT_MAX)
    offered_capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    desired_capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    properties: dict[Symbol, object] | None = amqp_field(FIELDS, default=None)


@composite
class Attach(Composite):
    """Attaches a link to a session. A null source or target in an answer: the peer refuses, and detaches next.

    initial_delivery_count is set by senders. max_message_size is in bytes; None or 0: no limit.
    """

    CODE: ClassVar[int] = 0x12
    NAME: ClassVar[str] = "amqp:attach:list"
    name: str = amqp_field(STRING)
    handle: int = amqp_field(UINT)
    role: bool = amqp_field(BOOLEAN)
    snd_settle_mode: int = amqp_field(UBYTE, default=2)
    rcv_settle_mode: int = amqp_field(UBYTE, default=0)
    source: Source | None = amqp_field(SOURCE, default=None)
    target: Target | Coordinator | None = amqp_field(TARGET, default=None)
    unsettled: dict[object, object] | None = amqp_field(MAP, default=None)
    incomplete_unsettled: bool = amqp_field(BOOLEAN, default=False)
    initial_delivery_count: int | None = amqp_field(UINT, default=None)
    max_message_size: int | None = amqp_field(ULONG, default=None)
    offered_capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    desired_capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    properties: dict[Symbol, object] | None = amqp_field(FIELDS, default=None)


@composite
class Flow(Composite):
    """Updates a session's windows, and a link's credit when there is a handle."""

    CODE: ClassVar[int] = 0x13
    NAME: ClassVar[str] = "amqp:flow:list"
    next_incoming_id: int | None = amqp_field(UINT, default=None)
    incoming_window: int = amqp_field(UINT)
    next_outgoing_id: int = amqp_field(UINT)
    outgoing_window: int = amqp_field(UINT)
    handle: int | None = amqp_field(UINT, default=None)
    delivery_count: int | None = amqp_field(UINT, default=None)
    link_credit: int | None = amqp_field(UINT, default=None)
    available: int | None = amqp_field(UINT, default=None)
    drain: bool = amqp_field(BOOLEAN, default=False)
    echo: bool = amqp_field(BOOLEAN, default=False)
    properties: dict[Symbol, object] | None = amqp_field(FIELDS, default=None)


@composite
class Transfer(Composite):
    """Carries a delivery, or a part of it; the payload follows the performative.

    Delivery id, tag and format must stand on the first frame of a delivery and may stand on the others.
    """

    CODE: ClassVar[int] = 0x14
    NAME: ClassVar[str] = "amqp:transfer:list"
    handle: int = amqp_field(UINT)
    delivery_id: int | None = amqp_field(UINT, default=None)
    delivery_tag: bytes | None = amqp_field(BINARY, default=None)
    message_format: int | None = amqp_field(UINT, default=None)
    settled: bool | None = amqp_field(BOOLEAN, default=None)
    more: bool = amqp_field(BOOLEAN, default=False)
    rcv_settle_mode: int | None = amqp_field(UBYTE, default=None)
    state: DeliveryState | None = amqp_field(DELIVERY_STATE, default=None)
    resume: bool = amqp_field(BOOLEAN, default=False)
    aborted: bool = amqp_field(BOOLEAN, default=False)
    batchable: bool = amqp_field(BOOLEAN, default=False)


@composite
class Disposition(Composite):
    """Tells the state of the deliveries first to last, both included; last None: first alone."""

    CODE: ClassVar[int] = 0x15
    NAME: ClassVar[str] = "amqp:disposition:list"
    role: bool = amqp_field(BOOLEAN)
    first: int = amqp_field(UINT)
    last: int | None = amqp_field(UINT, default=None)
    settled: bool = amqp_field(BOOLEAN, default=False)
    state: DeliveryState | None = amqp_field(DELIVERY_STATE, default=None)
    batchable: bool = amqp_field(BOOLEAN, default=False)


@composite
class Detach(Composite):
    """Detaches a link; closed ends it for good."""

    CODE: ClassVar[int] = 0x16
    NAME: ClassVar[str] = "amqp:detach:list"
    handle: int = amqp_field(UINT)
    closed: bool = amqp_field(BOOLEAN, default=False)
    error: AmqpError | None = amqp_field(ERROR, default=None)


@composite
class End(Composite):
    """Ends a session."""

    CODE: ClassVar[int] = 0x17
    NAME: ClassVar[str] = "amqp:end:list"
    error: AmqpError | None = amqp_field(ERROR, default=None)


@composite
class Close(Composite):
    """Closes a connection."""

    CODE: ClassVar[int] = 0x18
    NAME: ClassVar[str] = "amqp:close:list"
    error: AmqpError | None = amqp_field(ERROR, default=None)


Performative = Open | Begin | Attach | Flow | Transfer | Disposition | Detach | End | Close

_TABLE: Final[CompositeTable[Performative]] = CompositeTable(
    "performative", (Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close)
)


def decode_performative(body: Buffer, start: int = 0, end: int | None = None) -> tuple[Performative, int]:
    """Decode the performative of a frame body, and return it with the position where the payload starts.

    Raises DecodeError for bytes that are not one performative, naming the performative and the field where possible.
    """
    return _TABLE.decode(body, start, end)
