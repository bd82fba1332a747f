"""The life of a request to a resource of Azure Resource Manager: path → operation → token → handler → ARM's answer.

A JSON Web Token of the configured issuer with the role of an owner may do everything, in every namespace, as a
principal with that role may. A shared access signature may manage the namespace of its rule; what concerns namespaces
themselves needs one of the default namespace. Every error has ARM's body: `{"error": {"code": …, "message": …}}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubweir.auth.claims import Claims
from hubweir.auth.refusal import AuthRefused, RefusalKind
from hubweir.auth.resource_scope import Scope
from hubweir.auth.shared_access_signature import is_signature
from hubweir.errors import (
    AUTH_FAILED,
    ENTITY_EXISTS,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    STORE_OFFLINE,
    UNAUTHORIZED,
    Condition,
    ServiceError,
)
from hubweir.gateway.arm.documents import answer
from hubweir.gateway.arm.operation import ArmCall, RightOf
from hubweir.gateway.arm.operations import find_operation
from hubweir.gateway.arm.resource_path import parse_arm
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.problem import HttpRefusal, headers_of, status_of
from hubweir.gateway.refusals import What
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway
    from hubweir.gateway.gateway_process import GatewayProcess

FORBIDDEN, NOT_SERVED = 403, 501
# The same whatever the path names: a text that named the namespace would say that it is there.
NOT_MANAGED = (
    "The token has not the right to manage this: that takes Manage on the namespace of the path, and for namespaces "
    "themselves on the default one."
)
# What ARM calls an error, and with which status, where it is not the condition's own.
CODES: dict[Condition, tuple[int, str]] = {
    NOT_FOUND: (404, "ResourceNotFound"),
    ENTITY_EXISTS: (409, "Conflict"),
    UNAUTHORIZED: (FORBIDDEN, "AuthorizationFailed"),
    AUTH_FAILED: (401, "AuthenticationFailed"),
    RESOURCE_LIMIT: (FORBIDDEN, "QuotaExceeded"),
    NOT_IMPLEMENTED: (NOT_SERVED, "OperationNotSupported"),
    SERVER_BUSY: (503, "ServerBusy"),
    STORE_OFFLINE: (503, "ServiceUnavailable"),
}


class ArmDoor:
    """See the module's text."""

    def __init__(self, process: GatewayProcess) -> None:
        self._process = process

    async def answer(self, request: Request, token: str | None) -> Response:
        """token: of the authorization header; None: there is none. Raises ClientGone alone."""
        gateway = self._process.default
        try:
            path = parse_arm(request.segments)
            if path is None:
                text = "Of Azure's resources there are namespaces of Microsoft.EventHub and Microsoft.ServiceBus here."
                raise ServiceError(NOT_IMPLEMENTED, f"{text} Others are not served.")
            operation, names = find_operation(request.method, path)
            target = self._target(names.get("namespace", ""))
            # Whoever may not manage the service does not hear which namespaces there are. (Rule R23)
            owner = gateway if operation.of is RightOf.SERVICE or target is None else target
            self._authorize(owner, token)
            if operation.of is RightOf.NAMESPACE and target is None:
                raise ServiceError(NOT_FOUND, f"There is no namespace '{names['namespace'][:64]}'.")
            gateway = owner
            return await operation.handler(ArmCall(target or gateway, request, path, names))
        except (ServiceError, HttpRefusal) as refusal:
            return self._problem(gateway, request, refusal)

    def _target(self, name: str) -> Gateway | None:
        found = (each for each in self._process.gateways if fold(each.settings.namespace) == fold(name))
        return next(found, None)

    def _authorize(self, owner: Gateway, token: str | None) -> None:
        """Refuse the request unless its token may manage all of this namespace.

        A signature is judged by the namespace whose rule signed it, and only then held against the owner: so who may
        not manage the service is refused alike, whether the namespace of the path is there or not.
        """
        if token is None:
            raise ServiceError(AUTH_FAILED, "MissingToken: An authorization header is needed.")
        try:
            judge = self._process.of_token(token) if is_signature(token) else owner
            claims, resource = Claims(), Scope(fold(judge.settings.host_name), ())
            claims.put(resource, judge.authorization.verify(token))
            claims.check(Rights.MANAGE, resource, judge.authorization.now_ms())
            if judge is not owner:
                raise ServiceError(UNAUTHORIZED, NOT_MANAGED)
        except ServiceError as refusal:
            owner.counters["gateway.tokens_refused"] += 1
            is_elsewhere = isinstance(refusal, AuthRefused) and refusal.kind is RefusalKind.INVALID_AUDIENCE
            if is_elsewhere or refusal.condition is UNAUTHORIZED:
                raise ServiceError(UNAUTHORIZED, NOT_MANAGED) from None
            raise

    def _problem(self, gateway: Gateway, request: Request, refusal: ServiceError | HttpRefusal) -> Response:
        status, code = status_of(refusal), "BadRequest"
        symbol = str(status)
        if isinstance(refusal, ServiceError):
            symbol = refusal.condition.symbol
            status, code = CODES.get(refusal.condition, (status, code))
        message = gateway.refusals.describe(What.HTTP, symbol, refusal.text, peer=request.peer)
        headers = {name: value for name, value in headers_of(refusal).items() if name != "www-authenticate"}
        document = answer({"error": {"code": code, "message": message}}, status)
        return Response(status, document.body, document.content_type, headers)
