"""Source, target and coordinator: the two termini of a link (part 3, section 3.5).

A terminus that a peer sent can be sent back as it is: it means the same, field for field, and what stands in its
filter keeps its descriptors and types.
"""

from __future__ import annotations

from typing import ClassVar, Final

from hubweir.amqp.messaging.outcome import OUTCOME, Outcome
from hubweir.amqp.types.composite import Composite, amqp_field, composite, composite_type
from hubweir.amqp.types.field_types import BOOLEAN, FIELDS, STRING, SYMBOL, SYMBOLS, UINT
from hubweir.amqp.types.values import Described, Symbol

SESSION_END: Final = Symbol("session-end")


@composite
class Source(Composite):
    """Where a link's messages come from.

    address: the node's, as text; None asks for nothing. durable: 0 none, 1 configuration, 2 unsettled state.
    timeout: seconds. filter: name to value, nearly always Described: a position expression, a session id.
    default_outcome, outcomes: what becomes of deliveries that end unsettled, and which outcomes the link may use.
    """

    CODE: ClassVar[int] = 0x28
    NAME: ClassVar[str] = "amqp:source:list"
    address: str | None = amqp_field(STRING, default=None)
    durable: int = amqp_field(UINT, default=0)
    expiry_policy: Symbol = amqp_field(SYMBOL, default=SESSION_END)
    timeout: int = amqp_field(UINT, default=0)
    dynamic: bool = amqp_field(BOOLEAN, default=False)
    dynamic_node_properties: dict[Symbol, object] | None = amqp_field(FIELDS, default=None)
    distribution_mode: Symbol | None = amqp_field(SYMBOL, default=None)
    filter: dict[Symbol, object] | None = amqp_field(FIELDS, default=None)
    default_outcome: Outcome | Described | None = amqp_field(OUTCOME, default=None)
    outcomes: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)
    capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)


@composite
class Target(Composite):
    """Where a link's messages go. Fields as in Source."""

    CODE: ClassVar[int] = 0x29
    NAME: ClassVar[str] = "amqp:target:list"
    address: str | None = amqp_field(STRING, default=None)
    durable: int = amqp_field(UINT, default=0)
    expiry_policy: Symbol = amqp_field(SYMBOL, default=SESSION_END)
    timeout: int = amqp_field(UINT, default=0)
    dynamic: bool = amqp_field(BOOLEAN, default=False)
    dynamic_node_properties: dict[Symbol, object] | None = amqp_field(FIELDS, default=None)
    capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)


@composite
class Coordinator(Composite):
    """The target of a link that controls transactions (part 4, section 4.5.1)."""

    CODE: ClassVar[int] = 0x30
    NAME: ClassVar[str] = "amqp:coordinator:list"
    capabilities: tuple[Symbol, ...] | None = amqp_field(SYMBOLS, default=None)


SOURCE: Final = composite_type(Source)
TARGET: Final = composite_type(Target, Coordinator)
