"""The routes of the HTTP door: one table of method, path, resource and right. Nothing else is served.

How a path is matched is route.py. The right is asked at the resource, before anybody looks whether the entity exists
(rule R23).
"""

from __future__ import annotations

from hubweir.gateway.http import entities, send_events
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.gateway.http.route import Handler, Match, Route
from hubweir.namespace.rights import Rights


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
