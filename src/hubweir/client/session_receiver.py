"""Receiving the messages of one session: in order, while its lock is held by one link.

The lock ends with the link: a session receiver does not attach again by itself. Accept the session anew, and what was
not settled comes again.
"""

from __future__ import annotations

from hubweir.amqp.messaging.terminus import Source
from hubweir.amqp.types.values import Described, Symbol, UInt
from hubweir.client.connection import Connection
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.message_link import MessageLink
from hubweir.client.queue_receiver import QueueReceiver, QueueReceiverOptions
from hubweir.client.queue_requests import QueueRequests
from hubweir.errors import INTERNAL_ERROR, ServiceError
from hubweir.queue.sub_queue import ReceiveMode

SESSION_FILTER = Symbol("com.microsoft:session-filter")
LOCKED_UNTIL = Symbol("com.microsoft:locked-until-utc")
TIMEOUT = Symbol("com.microsoft:timeout")
# Ticks of 100 ns since the year 1, as the attach tells the end of the lock.
TICKS_A_MS, YEAR_1_MS = 10_000, -62_135_596_800_000


class SessionNotGranted(ServiceError):
    """The service granted no session: TIMED_OUT none came in time, SESSION_CANNOT_BE_LOCKED another receiver has it."""


class SessionReceiver(QueueReceiver):
    """One session. session_id: which. locked_until_ms: when its lock ends, as told by the attach or the last renew."""

    def __init__(
        self,
        connection: LastingConnection,
        entity: str,
        requests: QueueRequests,
        options: QueueReceiverOptions,
        link: MessageLink,
    ) -> None:
        super().__init__(connection, entity, requests, options)
        self._session_link = self._link = link
        source, properties = link.attach
        self.session_id = _granted(source, entity)
        ticks = properties.get(LOCKED_UNTIL)
        self.locked_until_ms = ticks // TICKS_A_MS + YEAR_1_MS if isinstance(ticks, int) else 0

    @property
    def link_name(self) -> str:
        """The link that holds the lock, by the name that the service knows it by."""
        return self._session_link.name

    @property
    def lost(self) -> ServiceError | None:
        """Why its link has ended, and the lock with it; None: as far as is known it holds."""
        return self._session_link.error

    async def renew_session(self) -> int:
        """Lock the session anew; when the lock ends now (ms since 1970). ServiceError SESSION_LOCK_LOST."""
        self.locked_until_ms = await self._requests.renew_session(self.session_id, self.link_name)
        return self.locked_until_ms

    async def state(self) -> bytes | None:
        """What was last set as the session's state; None: nothing. It survives all of the session's messages."""
        return await self._requests.state(self.session_id, self.link_name)

    async def set_state(self, state: bytes | None) -> None:
        """Keep these bytes with the session; None: no more."""
        await self._requests.set_state(self.session_id, state, self.link_name)

    async def __aenter__(self) -> SessionReceiver:
        return self

    @property
    def _session_id(self) -> str | None:
        return self.session_id

    async def _attached(self, connection: Connection) -> MessageLink:
        """The link that holds the lock, whatever became of it: its own error says why there is no more."""
        self._link = self._session_link
        return self._session_link


async def accept_session(
    connection: LastingConnection,
    entity: str,
    requests: QueueRequests,
    options: QueueReceiverOptions,
    *,
    session_id: str | None,
    max_wait_s: float,
) -> SessionReceiver:
    """Lock a session, or with None the next one that has messages and no receiver. SessionNotGranted."""

    async def step(now: Connection) -> MessageLink:
        await now.authorization.authorize(entity)
        link = MessageLink(
            now,
            entity,
            deletes=options.mode is ReceiveMode.RECEIVE_AND_DELETE,
            prefetch=options.prefetch,
            filters={SESSION_FILTER: session_id},
            properties={TIMEOUT: UInt(int(max_wait_s * 1000))},
        )
        try:
            await link.wait_opened(max_wait_s + now.timeout_s)
        except ServiceError as error:
            if now.error is not None:
                raise  # the connection ended, which says nothing about the session
            raise SessionNotGranted(error.condition, error.text) from None
        return link

    link = await connection.retried(step, final=(SessionNotGranted,))
    return SessionReceiver(connection, entity, requests, options, link)


def _granted(source: Source, entity: str) -> str:
    """The session that the answer to the attach names."""
    value = (source.filter or {}).get(SESSION_FILTER)
    value = value.value if isinstance(value, Described) else value
    if not isinstance(value, str):
        raise ServiceError(INTERNAL_ERROR, f"'{entity}' granted a session and did not say which")
    return value
