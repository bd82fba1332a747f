"""The part of a queue or a subscription that a path of messages names, and what is no such part.

`/orders`, `/orders/$DeadLetterQueue`, `/news/Subscriptions/all`.

On these addresses what does not exist is answered with 410, by whatever way it is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubweir.errors import NOT_ALLOWED, NOT_FOUND, ServiceError
from hubweir.gateway.fragments import Fragments
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.namespace.address import address_at, not_found
from hubweir.namespace.entity import EntityKind, of_kind
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.queue.queue_part import parse_queue_part
from hubweir.queue.sub_queue import SubQueue

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

GONE = 410


@dataclass(frozen=True, slots=True)
class MessageSource:
    """Where messages are received from and settled."""

    entity: MessagingDescription
    fragments: Fragments
    sub_queue: SubQueue


def source_of(gateway: Gateway, path: str) -> MessageSource:
    """What the path names. Raises ServiceError: NOT_FOUND; NOT_ALLOWED for events and topics."""
    address = address_at(tuple(path.split("/")), gateway.namespace.find_any)
    if address is None or address.entity is None:
        raise not_found(path, host=gateway.settings.host_name)
    description = address.entity.description
    part = parse_queue_part(description, address.part)
    if part is None and not address.part:
        raise ServiceError(NOT_ALLOWED, f"{description.title} gives no messages out over HTTP: read events over AMQP.")
    if part is None or part.is_management:
        raise not_found(path, host=gateway.settings.host_name)
    entity = of_kind(address.entity, MessagingDescription)
    assert entity is not None  # it has such parts
    if entity.kind is EntityKind.TOPIC:
        text = f"{description.title} gives no messages out: receive from '{entity.name}/Subscriptions/NAME'."
        raise ServiceError(NOT_ALLOWED, text)
    return MessageSource(entity.description, gateway.directory.fragments(entity), part.sub_queue)


@contextmanager
def gone_where_absent() -> Iterator[None]:
    """Whatever is told inside not to exist is answered with 410."""
    try:
        yield
    except ServiceError as error:
        if error.condition is NOT_FOUND:
            raise HttpRefusal(GONE, error.text) from None
        raise
