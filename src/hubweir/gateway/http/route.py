"""A route of the HTTP door: one line of its table, and the values that a path gives.

A path is matched segment by segment, keywords in any case. `{hub}` stands for one segment or more, because a hub's
name may have slashes, and never for a keyword or a name with `$` in front.
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

KEYWORDS = frozenset(("consumergroups", "partitions", "publishers", "revokedpublishers"))


@dataclass(frozen=True, slots=True)
class Match:
    """A path that a route takes. hub: as the peer wrote it, "" when the path has none. resource: what rights are for.

    names: the other parts in braces.
    """

    hub: str
    names: dict[str, str]
    resource: tuple[str, ...]


Handler = Callable[["Gateway", Request, Match], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """One line of the table. resource: the path that the right is asked for, "" for the namespace."""

    method: str
    path: tuple[str, ...]
    resource: tuple[str, ...]
    right: Rights
    handler: Handler

    def match(self, segments: tuple[str, ...]) -> Match | None:
        """The parts of a path when it has this form. segments: not empty."""
        at, names, hub = 0, dict[str, str](), tuple[str, ...]()
        for part in self.path:
            if part == "{hub}":
                width = len(segments) - len(self.path) + 1
                hub = segments[:width]
                if width < 1 or any(fold(piece) in KEYWORDS or piece.startswith("$") for piece in hub):
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
        parts = {"{hub}": hub, **{f"{{{name}}}": (value,) for name, value in names.items()}}
        resource = tuple(fold(piece) for part in self.resource for piece in parts.get(part, (part,)))
        return Match("/".join(hub), names, resource)
