"""A route of the HTTP door: one line of its table, and the values that a path gives.

A path is matched segment by segment, keywords in any case. `{entity}` stands for one segment or more, because the name
of an event hub, a queue or a topic may have slashes, and never for a keyword or a name with `$` in front. `{queue}`
stands for one segment or more, whatever they are: what messages are received from may be a part of an entity.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubweir.gateway.http.exchange import Request, Response
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

ENTITY, QUEUE = "{entity}", "{queue}"
KEYWORDS = frozenset(("consumergroups", "partitions", "publishers", "revokedpublishers", "subscriptions"))


@dataclass(frozen=True, slots=True)
class Match:
    """A path that a route takes. entity: as the peer wrote it, "" when the path has none; of `{queue}` all of it.

    resource: what rights are for. names: the other parts in braces.
    """

    entity: str
    names: dict[str, str]
    resource: tuple[str, ...]


Handler = Callable[["Gateway", Request, Match], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the table. resource: the path that the right is asked for, "" for the namespace.

    refusal: what a request is told whose token is good and does not give the right, when clients match the words.
    tells_absence: such a request is told when there is no such entity. is_management: errors have a SubCode.
    """

    method: str
    path: tuple[str, ...]
    resource: tuple[str, ...]
    right: Rights
    handler: Handler
    refusal: str = ""
    tells_absence: bool = False

    @property
    def is_management(self) -> bool:
        return self.right is Rights.MANAGE

    def match(self, segments: tuple[str, ...]) -> Match | None:
        """The parts of a path when it has this form. segments: not empty."""
        at, names, entity = 0, dict[str, str](), tuple[str, ...]()
        for part in self.path:
            if part in (ENTITY, QUEUE):
                width = len(segments) - len(self.path) + 1
                entity = segments[:width]
                if width < 1 or (part == ENTITY and any(map(_is_no_name, entity))):
                    return None
                at = width
            elif at == len(segments):
                return None
            elif part.startswith("{"):
                names[part[1:-1]] = segments[at]
                at += 1
            elif fold(segments[at]) != part:
                return None
            else:
                at += 1
        if at != len(segments):
            return None
        parts = {ENTITY: entity, QUEUE: entity, **{f"{{{name}}}": (value,) for name, value in names.items()}}
        resource = tuple(fold(piece) for part in self.resource for piece in parts.get(part, (part,)))
        return Match("/".join(entity), names, resource)


def _is_no_name(segment: str) -> bool:
    return fold(segment) in KEYWORDS or segment.startswith("$")
