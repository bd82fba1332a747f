"""Puts a connection's tokens to `$cbs`, one for every audience, and puts each again before it ends.

A connection string with a key makes its own tokens, one a hub, for TOKEN_LIFETIME_S: a service takes a few thousand of
a connection, and some ten a second, and a hub may have more partitions and publishers than that. One with a ready-made
`SharedAccessSignature`, which may be for a part of a hub, puts the same text for every address that no other covers.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.amqp.types.values import Timestamp
from hubweir.auth.shared_access_signature import make_token
from hubweir.client.link_user import LinkCarrier
from hubweir.client.request_link import RequestLink
from hubweir.drivers.tasks import Tasks
from hubweir.errors import ARGUMENT_ERROR, INTERNAL_ERROR, NOT_FOUND, UNAUTHORIZED, ServiceError
from hubweir.namespace.connection_string import ConnectionString

logger = logging.getLogger(__name__)

TOKEN_LIFETIME_S = 3_600
# Put again when a tenth of the lifetime is left.
_REFRESH_AFTER = 0.9
# A renewal that failed has some ten tries before the tokens end.
_RETRY_AFTER = 0.01
_ACCEPTED = (200, 202)
_PARTS_OF_HUB = re.compile("/(?:partitions|consumergroups|publishers)/.*", re.IGNORECASE)


class ConnectionTokens:
    """The tokens of one connection. tasks: the connection's, where tokens are put again until it ends."""

    def __init__(self, connection: LinkCarrier, target: ConnectionString, tasks: Tasks, *, timeout_s: float) -> None:
        self._connection = connection
        self._target = target
        self._tasks = tasks
        self._timeout_s = timeout_s
        self._audiences: dict[str, None] = {}
        self._cbs: RequestLink | None = None
        self._mutex = asyncio.Lock()

    async def authorize(self, path: str) -> None:
        """Prove the right to `path` (hub, hub/ConsumerGroups/g …; "" is the whole namespace), if it is not proved yet.

        ServiceError UNAUTHORIZED when the token is refused, NOT_FOUND when the hub does not exist, ARGUMENT_ERROR when
        nothing can be called so.
        """
        if self._target.signature is None:
            path = _PARTS_OF_HUB.sub("", path)
        audience = f"sb://{self._target.host}/{path}"
        async with self._mutex:
            if self._is_covered(path):
                return
            await self._put(audience)
            self._audiences[audience] = None
            if len(self._audiences) == 1:
                self._tasks.start(self._refresh(), name="token refresh")

    def _is_covered(self, path: str) -> bool:
        pieces = path.split("/")
        known = (f"sb://{self._target.host}/{'/'.join(pieces[:count])}" for count in range(len(pieces) + 1))
        return any(audience in self._audiences for audience in known)

    async def _refresh(self) -> None:
        """Put every token again, for ever; after a failure soon again, since the old tokens still hold a while.

        One that is refused, as of a hub that is gone, keeps no other from being put.
        """
        wait_s = TOKEN_LIFETIME_S * _REFRESH_AFTER
        while self._connection.error is None:
            await asyncio.sleep(wait_s)
            wait_s = TOKEN_LIFETIME_S * _REFRESH_AFTER
            for audience in list(self._audiences):
                try:
                    async with self._mutex:
                        await self._put(audience)
                except ServiceError as error:
                    wait_s = TOKEN_LIFETIME_S * _RETRY_AFTER
                    logger.warning("a token was not renewed, next try in %.0f s: %s", wait_s, error)

    async def _put(self, audience: str) -> None:
        if self._cbs is None or self._cbs.error is not None:  # a service detaches a link that was idle for long
            self._cbs = RequestLink(self._connection, "$cbs")
            await self._cbs.ready(self._timeout_s)
        ends_s = int(time.time()) + TOKEN_LIFETIME_S
        request = Message(
            application_properties={
                "operation": "put-token",
                "type": "servicebus.windows.net:sastoken",
                "name": audience,
                "expiration": Timestamp(ends_s * 1000),
            },
            body=ValueBody(token_for(self._target, audience, ends_s)),
        )
        answer = await self._cbs.call(request, timeout_s=self._timeout_s)
        status, text = status_of(answer)
        if status not in _ACCEPTED:
            condition = {400: ARGUMENT_ERROR, 401: UNAUTHORIZED, 404: NOT_FOUND}.get(status, INTERNAL_ERROR)
            raise ServiceError(condition, text)


def token_for(target: ConnectionString, resource_uri: str, expires_at_s: int) -> str:
    """The token that this connection string gives for a resource: made with its key, or the one it holds.

    ServiceError ARGUMENT_ERROR when it has neither.
    """
    if target.signature is not None:
        return target.signature
    if target.key_name is None or target.key is None:
        raise ServiceError(
            ARGUMENT_ERROR, "The connection string has no key: add SharedAccessKeyName and SharedAccessKey."
        )
    return make_token(resource_uri, target.key_name, target.key, expires_at_s)


def status_of(answer: Message) -> tuple[int, str]:
    """Status code and description of a node's answer; 500 when it carries none."""
    properties = answer.application_properties or {}
    status = properties.get("status-code", 500)
    return int(status) if isinstance(status, int) else 500, str(properties.get("status-description", ""))
