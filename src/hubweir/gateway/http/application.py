"""The HTTP door as one ASGI application: the life of a request from its path to its answer.

Path → health page, portal, Azure's resources (gateway/arm/), or namespace → route → token → handler. Errors of the
table become their status and the service's XML body; what escapes besides is a fault of ours, logged here and answered
with 500. Nothing else of a request is logged: a head holds tokens. WebSockets never come here: the driver takes their
connection over.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hubweir.auth.claims import Claims
from hubweir.auth.resource_scope import Scope as Resource
from hubweir.drivers.http_driver import HEADER_NAMES
from hubweir.errors import AUTH_FAILED, INTERNAL_ERROR, UNAUTHORIZED, ServiceError
from hubweir.gateway.arm.door import ArmDoor
from hubweir.gateway.arm.resource_path import is_arm
from hubweir.gateway.http.exchange import ClientGone, Receive, Request, Response, Scope, Send
from hubweir.gateway.http.health import Health
from hubweir.gateway.http.metrics_page import METRICS_MATCH, METRICS_ROUTE, MetricsAccess, MetricsPage
from hubweir.gateway.http.problem import HttpRefusal, headers_of, problem_xml, status_of, sub_code
from hubweir.gateway.http.route import Match, Route
from hubweir.gateway.http.router import find_route
from hubweir.gateway.refusals import What
from hubweir.namespace.address import not_found
from hubweir.namespace.resource_path import IllegalPath, fold, parse_path

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway
    from hubweir.gateway.gateway_process import GatewayProcess

logger = logging.getLogger(__name__)

_BEARER = "bearer "
NO_CONTENT = 204


Portal = Callable[[Request], Awaitable[Response]]
PORTAL = "portal"


class Application:
    """See the module's text. is_running: see Health. portal: answers what is asked of `/portal`; metrics: the page of
    it. None: there is none.

    An entity may have the portal's name: a request with a token is for the entity, since browsers send the portal none.
    """

    def __init__(
        self,
        process: GatewayProcess,
        is_running: Callable[[], bool],
        portal: Portal | None = None,
        metrics: MetricsPage | None = None,
    ) -> None:
        self._process = process
        self._portal = portal
        self._metrics = metrics
        self._arm = ArmDoor(process)
        self._health = Health(is_running, process.alarms)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request: Request | None = None
        gateway = self._process.default
        try:
            request = read_request(scope, receive)
            if self._portal is not None and request.segments[:1] == (PORTAL,) and _token_of(request) is None:
                response = await self._portal(request)
            elif is_arm(request.segments):
                response = await self._arm.answer(request, _token_of(request))
            else:
                gateway = self._gateway_of(request)
                response = await self._answer(gateway, request)
        except ClientGone:
            return
        except (ServiceError, HttpRefusal) as refusal:
            response = _problem(gateway, scope, request, refusal)
        except Exception:
            logger.exception("a fault of the service ends a request")
            failed = ServiceError(INTERNAL_ERROR, "The service failed in answering this request.")
            response = _problem(gateway, scope, request, failed)
        if request is not None and request.entity is not None:
            gateway.traffic.of(request.entity).answered(response.status)
        headers = [(name.encode(), value.encode()) for name, value in response.headers.items()]
        if response.content_type is not None:
            headers.insert(0, (b"content-type", response.content_type.encode()))
        if response.status != NO_CONTENT:  # which has no length (RFC 9110 section 8.6)
            headers.append((b"content-length", str(len(response.body)).encode()))
        if any(name == b"expect" for name, _ in scope["headers"]) and not (request and request.body_was_asked_for):
            # Its peer may send the body all the same, or not: nobody could tell it from the next request.
            headers.append((b"connection", b"close"))
        body = b"" if scope["method"] == "HEAD" else response.body
        try:
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            if response.on_sent is not None:
                await send({"type": "http.response.body", "body": body, "more_body": True})
                body = b""  # to send it waits until the peer has taken what is before it
            await send({"type": "http.response.body", "body": body})
        finally:
            if response.on_sent is not None:
                response.on_sent()

    def _gateway_of(self, request: Request) -> Gateway:
        """The gateway of the namespace that Host leads to, else of the one that the request's token belongs to."""
        named = self._process.named(request.headers.get(b"host", b"").decode("ascii"))
        return named or self._process.of_token(_token_of(request) or "")

    async def _answer(self, gateway: Gateway, request: Request) -> Response:
        health = self._health.answer(request.method, request.segments)
        if health is not None:
            return health
        if self._metrics is not None and self._metrics.is_asked(request):
            return await self._measured(self._metrics, gateway, request)
        route, match = find_route(request.method, request.segments)
        request.is_management = route.is_management
        request.entity = match.entity
        self._authorize(gateway, request, route, match)
        return await route.handler(gateway, request, match)

    async def _measured(self, metrics: MetricsPage, gateway: Gateway, request: Request) -> Response:
        if metrics.access is MetricsAccess.OPEN:
            return await metrics.answer(request)
        self._authorize(gateway, request, METRICS_ROUTE, METRICS_MATCH)
        # Whoever runs the service is the default namespace's; nobody else hears of more than his own.
        is_default = gateway is self._process.default
        return await metrics.answer(request, "" if is_default else gateway.settings.namespace)

    def _authorize(self, gateway: Gateway, request: Request, route: Route, match: Match) -> None:
        """Refuse the request unless its token gives the route's right. The token counts for it alone."""
        resource = Resource(fold(gateway.settings.host_name), match.resource)
        token = _token_of(request)
        if token is None:
            raise ServiceError(AUTH_FAILED, f"MissingToken: An authorization header is needed for '{resource.uri}'.")
        try:
            claims, verified = Claims(), gateway.authorization.verify(token)
            own = Resource(resource.host, tuple(map(fold, request.segments)))
            # @azure/service-bus 7.9.5 signs the address of each request, that of a list too, and nothing above it.
            # The page of metrics is no entity: a rule of one that has its name must not lead there.
            may_be_own = route.is_management and route is not METRICS_ROUTE
            audience = own if may_be_own and verified.scope.segments == own.segments else resource
            claims.put(audience, verified)
            claims.check(route.right, audience, gateway.authorization.now_ms())
        except ServiceError as refusal:
            gateway.counters["gateway.tokens_refused"] += 1
            if refusal.condition is not UNAUTHORIZED:
                raise
            if route.tells_absence and gateway.namespace.find_any(match.entity) is None:
                raise not_found(match.entity, host=gateway.settings.host_name) from None
            raise (HttpRefusal(401, route.refusal, headers_of(refusal)) if route.refusal else refusal) from None


def _token_of(request: Request) -> str | None:
    """The token in the authorization header, whatever the header calls it: what a token is, its content says."""
    token = request.header(b"authorization")
    if token is not None and token[: len(_BEARER)].lower() == _BEARER:
        return token[len(_BEARER) :]
    return token


def _problem(gateway: Gateway, scope: Scope, request: Request | None, refusal: ServiceError | HttpRefusal) -> Response:
    """request: None when it could not be read. Its path's first name is the entity, but for nodes of the service."""
    symbol = refusal.condition.symbol if isinstance(refusal, ServiceError) else str(refusal.status)
    first = request.segments[0] if request and request.segments else ""
    entity = "" if first.startswith("$") else first
    client = scope.get("client")
    peer = f"{client[0]}:{client[1]}" if client else ""
    text = refusal.text
    if request is not None and request.is_management and isinstance(refusal, ServiceError):
        text = f"SubCode={sub_code(refusal)}. {text}"
    described = gateway.refusals.describe(What.HTTP, symbol, text, entity=entity, peer=peer)
    return Response(status_of(refusal), problem_xml(refusal, described), headers=headers_of(refusal))


def read_request(scope: Scope, receive: Receive) -> Request:
    """The request of an ASGI scope; HttpRefusal 400 for a path that could name two things."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    # A driver that knows how the peer spelt the names says so.
    names: list[bytes] = scope.get("extensions", {}).get(HEADER_NAMES, [name for name, _ in headers])
    by_name = dict(headers)
    try:
        segments = parse_path(scope["raw_path"].decode("ascii")).segments
    except (IllegalPath, UnicodeDecodeError) as error:
        raise HttpRefusal(400, f"The path cannot be read: {error}.") from None
    host = by_name.get(b"host", b"localhost").decode("ascii")
    return Request(
        method=scope["method"],
        segments=segments,
        query=scope["query_string"].decode("latin-1"),
        headers=by_name,
        fields=[(name, value) for name, (_, value) in zip(names, headers, strict=True)],
        base_uri=f"{scope['scheme']}://{host}",
        receive=receive,
        peer=client[0] if (client := scope.get("client")) else "",
    )
