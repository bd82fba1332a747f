"""What there is over HTTP: one table of method, path, resource and right. Nothing else is served.

A path is matched segment by segment, keywords in any case. `{hub}` stands for one segment or more, because a hub's
name may have slashes, and never for a keyword or a name with `$` in front. The right is asked at the resource, before
anybody looks whether the entity exists (rule R23).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubweir.gateway.http import entities, send_events
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.problem import HttpRefusal
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


def _route(method: str, path: str, resource: str, right: Rights, handler: Handler) -> Route:
    return Route(method, tuple(path.split("/")), tuple(resource.split("/")) if resource else (), right, handler)


_PARTITION = "{hub}/consumergroups/{group}/partitions/{partition}"
_SEND, _MANAGE = Rights.SEND, Rights.MANAGE
# Longer paths come first: a shorter one would take a keyword for a part of the hub's name.
ROUTES = (
    _route("POST", "{hub}/partitions/{partition}/messages", "{hub}/partitions/{partition}", _SEND,
           send_events.send_to_partition),
    _route("POST", "{hub}/publishers/{publisher}/messages", "{hub}/publishers/{publisher}", _SEND,
           send_events.send_as_publisher),
    _route("POST", "{hub}/publisher/{publisher}/messages", "{hub}/publishers/{publisher}", _SEND,
           send_events.send_as_publisher),
    _route("POST", "{hub}/messages", "{hub}", _SEND, send_events.send_to_hub),
    _route("GET", "$resources/eventhubs", "", _MANAGE, entities.list_hubs),
    _route("GET", _PARTITION, _PARTITION, _MANAGE, entities.get_partition),
    _route("GET", "{hub}/consumergroups/{group}/partitions", "{hub}/consumergroups/{group}", _MANAGE,
           entities.list_partitions),
    _route("GET", "{hub}/consumergroups/{group}", "{hub}/consumergroups/{group}", _MANAGE, entities.get_group),
    _route("PUT", "{hub}/consumergroups/{group}", "{hub}/consumergroups/{group}", _MANAGE, entities.put_group),
    _route("DELETE", "{hub}/consumergroups/{group}", "{hub}/consumergroups/{group}", _MANAGE, entities.delete_group),
    _route("GET", "{hub}/consumergroups", "{hub}", _MANAGE, entities.list_groups),
    _route("GET", "{hub}/revokedpublishers", "{hub}", _MANAGE, entities.list_revoked_publishers),
    _route("PUT", "{hub}/revokedpublishers/{publisher}", "{hub}", _MANAGE, entities.revoke_publisher),
    _route("DELETE", "{hub}/revokedpublishers/{publisher}", "{hub}", _MANAGE, entities.restore_publisher),
    _route("GET", "{hub}", "{hub}", _MANAGE, entities.get_hub),
    _route("PUT", "{hub}", "{hub}", _MANAGE, entities.put_hub),
    _route("DELETE", "{hub}", "{hub}", _MANAGE, entities.delete_hub),
)  # fmt: skip


def find_route(method: str, segments: tuple[str, ...]) -> tuple[Route, Match]:
    """The route of a request; HttpRefusal 405 when its path takes other methods only, 404 when it is no path here."""
    allowed: list[str] = []
    for route in ROUTES if segments else ():
        if route.method == method or route.method not in allowed:
            match = route.match(segments)
            if match is not None:
                if route.method == method:
                    return route, match
                allowed.append(route.method)
    if allowed:
        text = f"This address takes {', '.join(sorted(allowed))}."
        raise HttpRefusal(405, text, {"allow": ", ".join(sorted(allowed))})
    raise HttpRefusal(404, "There is nothing at this address. Events are sent to /EVENTHUB/messages.")
