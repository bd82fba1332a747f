"""Reads a receiver's attach: start position, owner level and name of the reader, and the forms that it can take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hubweir.amqp.messaging.annotations import (
    EPOCH,
    EVENT_LIMIT,
    RECEIVER_NAME,
    SELECTOR_FILTER,
    SELECTOR_FILTER_DESCRIPTORS,
    STORED_BATCHES,
)
from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Described, Symbol
from hubweir.errors import INVALID_FIELD, ServiceError
from hubweir.event_hub.event_position import EARLIEST, EventPosition, parse_selector
from hubweir.gateway.amqp.node import attach_properties

RECEIVER_NAME_LIMIT = 256


@dataclass(frozen=True, slots=True)
class ReaderWish:
    """What a receiver asks of the reader that is opened for it.

    source: as it is answered, without filters that mean nothing here. owner_level, name: None where it gave none.
    """

    position: EventPosition
    source: Source
    owner_level: int | None
    name: str | None


def read_attach(link: SenderLink) -> ReaderWish:
    """Raises ServiceError INVALID_FIELD, or ARGUMENT_ERROR as event_position.parse_selector."""
    position, source = _read_filter(link)
    owner_level, name = _count(link, EPOCH), attach_properties(link).get(RECEIVER_NAME)
    if name is not None and (not isinstance(name, str) or len(name) > RECEIVER_NAME_LIMIT):
        text = f"The property {RECEIVER_NAME} must be a string of at most {RECEIVER_NAME_LIMIT} characters."
        raise ServiceError(INVALID_FIELD, text)
    return ReaderWish(position, source, owner_level, name)


def _read_filter(link: SenderLink) -> tuple[EventPosition, Source]:
    source = link.source or Source()
    if not source.filter:
        return EARLIEST, source
    wanted = source.filter.get(SELECTOR_FILTER)
    if wanted is None:
        return EARLIEST, replace(source, filter=None)
    text = wanted
    if isinstance(wanted, Described):
        if wanted.descriptor not in SELECTOR_FILTER_DESCRIPTORS:
            raise ServiceError(INVALID_FIELD, f"The filter {SELECTOR_FILTER} has an unknown descriptor.")
        text = wanted.value
    if not isinstance(text, str):
        raise ServiceError(INVALID_FIELD, f"The filter {SELECTOR_FILTER} holds no string.")
    return parse_selector(text), replace(source, filter={SELECTOR_FILTER: wanted})


def takes_batches(link: SenderLink) -> bool:
    """Whether the receiver desires stored batches, and may get them: it takes deliveries of any size."""
    desired = None if link.attach is None else link.attach.desired_capabilities
    return STORED_BATCHES in (desired or ()) and link.remote_max_message_size is None


def read_event_limit(link: SenderLink) -> int | None:
    """How many events the receiver wants in all; None: no end. ServiceError when it is no such value."""
    return _count(link, EVENT_LIMIT)


def _count(link: SenderLink, name: Symbol) -> int | None:
    value = attach_properties(link).get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ServiceError(INVALID_FIELD, f"The property {name} must be an integer from 0 on.")
    return int(value)
