"""Parses an address on the wire: which entity it names, and what part of it.

| address                             | entity              | part               | who attaches |
|-------------------------------------|---------------------|--------------------|--------------|
| `entity`, `entity/more/…`           | the entity          | `()`, `("more", …)` | as its kind says: hub_part.py |
| `entity/$management`, `$management` | the entity, or None | `("$management",)` | both |
| `$cbs`                              | None                | `("$cbs",)`        | both |

Clients write them bare, with a leading slash, or as a URI with any host; keywords and names in any case. A name may
contain slashes: the longest one that exists wins. What the parts of an entity are is its kind's to say: nothing here
knows any. (Event Hubs AMQP guide; client libraries)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.namespace.entity import AnyEntity
from hubweir.namespace.error_text import entity_not_found, entity_uri
from hubweir.namespace.resource_path import IllegalPath, fold, parse_path

CBS, MANAGEMENT = "$cbs", "$management"
# No name of an entity has more: 260 characters are 130 segments, and some kinds are named by a path of three more.
SEGMENTS_LIMIT = 160

EntityFinder = Callable[[str], AnyEntity | None]


@dataclass(frozen=True, slots=True)
class Address:
    """entity: None for a node of the namespace. part: the segments behind the entity's name, as they came.

    Nobody has looked whether the entity has such a part.
    """

    entity: AnyEntity | None
    part: tuple[str, ...]

    @property
    def is_management(self) -> bool:
        """It names the management node of the entity, or of the namespace."""
        return len(self.part) == 1 and fold(self.part[0]) == MANAGEMENT

    @property
    def is_cbs(self) -> bool:
        """It names the node that takes tokens."""
        return self.entity is None and fold(self.part[0]) == CBS


def parse_address(text: str, find: EntityFinder, *, host: str = "hubweir") -> Address:
    """What an address names.

    find: the entity of a name in any case; None when there is none. host: of this namespace, for texts.
    Raises ServiceError NOT_FOUND with the text that clients match.
    """
    try:
        segments = parse_path(text).segments
    except IllegalPath:
        raise not_found(text, host=host) from None
    if len(segments) == 1 and fold(segments[0]) in (CBS, MANAGEMENT):
        return Address(None, segments)
    address = address_at(segments, find)
    if address is None:
        raise not_found("/".join(segments), host=host)
    return address


def address_at(segments: tuple[str, ...], find: EntityFinder) -> Address | None:
    """The entity that the longest leading part of a path names, and the rest; None when no part of it names one."""
    for depth in range(min(len(segments), SEGMENTS_LIMIT), 0, -1):
        entity = find("/".join(segments[:depth]))
        if entity is not None:
            return Address(entity, segments[depth:])
    return None


def not_found(path: str, *, host: str) -> ServiceError:
    """NOT_FOUND with the text that clients match; path may be anything a peer wrote."""
    return ServiceError(NOT_FOUND, entity_not_found(entity_uri(host, path)))
