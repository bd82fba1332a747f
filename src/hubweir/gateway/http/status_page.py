"""`GET /$status`: how the service is, as JSON, for who may manage the namespace; at `/status` too, unless an entity has
that name. `GET /$readers`: who reads its event hubs.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from hubweir.gateway.http import named_entities
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.route import Match
from hubweir.gateway.reading import readers_of
from hubweir.gateway.status import status_of

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

NAME = "status"


async def status(gateway: Gateway, request: Request, match: Match) -> Response:
    return _json(await status_of(gateway))


async def readers(gateway: Gateway, request: Request, match: Match) -> Response:
    return _json(await readers_of(gateway))


def _json(document: dict[str, object]) -> Response:
    body = json.dumps(document, ensure_ascii=False).encode()
    return Response(200, body, "application/json", {"cache-control": "no-store"})


async def status_or_entity(gateway: Gateway, request: Request, match: Match) -> Response:
    """The entity of that name, when there is one."""
    (name,) = request.segments
    if gateway.namespace.find_any(name) is not None:
        return await named_entities.get_entity(gateway, request, replace(match, entity=name))
    return await status(gateway, request, match)
