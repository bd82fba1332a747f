"""The error that a frame or an outcome carries (part 2, section 2.8.14). A value, not an exception."""

from __future__ import annotations

from typing import ClassVar

from hubweir.amqp.types.composite import Composite, amqp_field, composite
from hubweir.amqp.types.field_types import NAMED, STRING, SYMBOL
from hubweir.amqp.types.values import Symbol


@composite
class AmqpError(Composite):
    """Why something ended. Written with all three fields and a description that is a string, never null.

    Azure's Python client 5.15 waits for ever on an error of two fields inside a rejected outcome. Azure's JavaScript
    client 7.9 writes the names in info as strings when it dead-letters a message.
    """

    CODE: ClassVar[int] = 0x1D
    NAME: ClassVar[str] = "amqp:error:list"
    condition: Symbol | str = amqp_field(SYMBOL)
    description: str = amqp_field(STRING, default="")
    info: dict[Symbol, object] | None = amqp_field(NAMED, default=None)
