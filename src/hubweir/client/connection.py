"""One authorised AMQP connection of a client: connect, prove the right, carry links, notice the end.

Sockets are the driver's, the protocol is the engine's; this class hands the engine's events to whoever uses the link
they are about, and puts a token to `$cbs` for every audience asked for. A connection that ended stays ended: the
clients built on it (sender.py, receiver.py) open the next one.
"""

from __future__ import annotations

import asyncio
import ssl
import uuid
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.transport.events import (
    Answered,
    Closed,
    CreditGranted,
    DeliveriesReceived,
    Drained,
    Event,
    LinkAttached,
    LinkDetached,
    LinkRefused,
    Opened,
    SaslFinished,
    SessionEnded,
    Settled,
)
from hubweir.client.connection_tokens import ConnectionTokens
from hubweir.client.link_user import LinkUser, service_error
from hubweir.drivers.amqp_driver import AmqpDriver, ReceiveBuffer
from hubweir.drivers.monotonic import monotonic_ms
from hubweir.drivers.tasks import Tasks
from hubweir.errors import CONNECTION_FORCED, TIMED_OUT, UNAUTHORIZED, ServiceError
from hubweir.limits import ConnectionLimits

if TYPE_CHECKING:
    from hubweir.amqp.transport.link import Link
    from hubweir.amqp.transport.session import Session
    from hubweir.namespace.connection_string import ConnectionString

DEFAULT_TIMEOUT_S = 30.0
# Half of what the service takes: there a link that we ended counts until its end is answered.
LINKS_PER_SESSION = 128
# A service writes something in half of this. One that is silent for twice as long is gone: whoever waits for an answer
# is told so within a minute, which is what official clients give a send.
IDLE_TIMEOUT_MS = 30_000
# Frames. What bounds memory is the credit of each link: a window that is smaller only costs a flow each time half of it
# is used up, here and there.
_INCOMING_WINDOW = 65_535
# A reader that catches up gets a thousand events in a read; more would not stay in the processor's cache.
_RECEIVE_BUFFER_BYTES = 512 * 1024
# One a loop, lent for the length of a read: a program of many clients on one loop has no half MiB for each of them.
_RECEIVE_BUFFERS: WeakKeyDictionary[asyncio.AbstractEventLoop, ReceiveBuffer] = WeakKeyDictionary()


class Connection:
    """Open one with `Connection.open`. Everything on the loop that opened it."""

    def __init__(self, target: ConnectionString, timeout_s: float) -> None:
        self.target = target
        self.timeout_s = timeout_s
        self.error: ServiceError | None = None
        self._users: dict[Link, LinkUser] = {}
        self._link_numbers = count(1)
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._driver: AmqpDriver | None = None
        self._sessions: list[Session] = []
        self._endpoint = Endpoint(
            Role.CLIENT,
            EndpointSettings(
                container_id=uuid.uuid4().hex,
                hostname=target.host,
                limits=ConnectionLimits(idle_timeout_ms=IDLE_TIMEOUT_MS),
                incoming_window=_INCOMING_WINDOW,
            ),
            now_ms=monotonic_ms(),
        )
        self.tasks = Tasks(f"connection to {target.host}")
        self.authorization = ConnectionTokens(self, target, self.tasks, timeout_s=timeout_s)

    @classmethod
    async def open(
        cls, target: ConnectionString, *, tls: ssl.SSLContext | None = None, timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> Connection:
        """Connect and open, without any right yet. ServiceError: CONNECTION_FORCED nobody there, TIMED_OUT, or the
        server's own condition.
        """
        self = cls(target, timeout_s)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                await loop.create_connection(
                    lambda: AmqpDriver(self._endpoint, self, _receive_buffer(loop)),
                    target.host,
                    target.tcp_port,
                    ssl=tls,
                    server_hostname=target.host if tls else None,
                )
                await self._opened
        except TimeoutError:
            self._abort()
            raise ServiceError(
                TIMED_OUT, f"{target.host}:{target.tcp_port} did not open within {timeout_s} s: try again"
            ) from None
        except ssl.SSLCertVerificationError as error:
            text = f"the certificate of {target.host}:{target.tcp_port} is not trusted: {error.verify_message}"
            raise ServiceError(CONNECTION_FORCED, f"{text}; name the authority to trust as the CA file") from error
        except OSError as error:
            raise ServiceError(CONNECTION_FORCED, f"cannot reach {target.host}:{target.tcp_port}: {error}") from error
        except BaseException:  # refused by the server, or the caller gave up
            self._abort()
            raise
        return self

    def name_link(self, kind: str) -> str:
        """A link name that no other link of this connection has."""
        return f"{kind}-{next(self._link_numbers)}"

    @property
    def session(self) -> Session:
        """A session with room for another link, and its answers. ServiceError when the connection is over."""
        if self.error is not None:
            raise self.error
        links = Counter(link.session for link in self._users)
        found = next((each for each in self._sessions if links[each] < LINKS_PER_SESSION), None)
        if found is None:
            found = self._endpoint.begin_session()
            self._sessions.append(found)
        return found

    def register(self, link: Link, user: LinkUser) -> None:
        """Events about link go to user from now on. Sends the attach at the end of this turn."""
        self._users[link] = user
        self.wake()

    def detach(self, link: Link) -> None:
        """End a link from our side; its user hears nothing more. Does nothing when it is over already."""
        if self._users.pop(link, None) is not None:
            link.detach()
            self.wake()

    def wake(self) -> None:
        """The endpoint has something to send."""
        if self._driver is not None:
            self._driver.wake()

    @property
    def writing_paused(self) -> bool:
        """The peer does not take bytes as fast as we make them: wait before sending more."""
        return self._driver is not None and self._driver.writing_paused

    async def close(self) -> None:
        """Say goodbye, then drop the transport. Safe to call twice."""
        await self.tasks.stop()
        if self._driver is None or self._gone.done():
            return
        if not self._endpoint.is_closed:
            self._endpoint.close()
        self.wake()
        try:
            async with asyncio.timeout(self.timeout_s):
                await asyncio.shield(self._gone)
        except TimeoutError:
            self._driver.abort()
            await self._gone

    # What the driver calls

    def on_connected(self, driver: AmqpDriver) -> None:
        self._driver = driver
        self._endpoint.open()

    def on_event(self, event: Event) -> None:
        match event:
            case DeliveriesReceived() | CreditGranted() | Settled() | Answered() | Drained() | LinkAttached():
                # None for a link that we detached and that the peer still had something for.
                user = self._users.get(event.link)
                if user is not None:
                    _tell(user, event)
            case LinkRefused() | LinkDetached():
                user = self._users.pop(event.link, None)
                if user is not None:
                    _tell(user, event)
            case Opened():
                if not self._opened.done():
                    self._opened.set_result(None)
            case SaslFinished(code=code) if code != 0:
                self._fail(ServiceError(UNAUTHORIZED, f"{self.target.host} refused the SASL exchange (outcome {code})"))
            case SessionEnded():
                self._fail(service_error(event.error, f"{self.target.host} ended the session", CONNECTION_FORCED))
            case Closed():
                self._fail(service_error(event.error, f"{self.target.host} closed the connection", CONNECTION_FORCED))
            case _:
                pass  # SessionBegun needs no answer; SaslInitiated is a server's

    def on_turn_end(self) -> None:
        for user in list(self._users.values()):
            user.on_turn_end()

    def on_writing_paused(self) -> None:
        pass  # senders look at writing_paused

    def on_writable(self) -> None:
        for user in list(self._users.values()):
            user.on_turn_end()

    def on_closed(self) -> None:
        self._fail(ServiceError(CONNECTION_FORCED, f"the connection to {self.target.host} is gone"))
        if not self._gone.done():
            self._gone.set_result(None)

    def _abort(self) -> None:
        """Drop the transport without a word: the peer did not let us in."""
        if self._driver is not None:
            self._driver.abort()

    def _fail(self, error: ServiceError) -> None:
        if self.error is None:
            self.error = error
        if not self._opened.done():
            self._opened.set_exception(error)
            self._opened.exception()  # open() raises it; after its time-out nobody does
        users, self._users = list(self._users.values()), {}
        for user in users:
            user.fail(error)


def _receive_buffer(loop: asyncio.AbstractEventLoop) -> ReceiveBuffer:
    buffer = _RECEIVE_BUFFERS.get(loop)
    if buffer is None:
        buffer = _RECEIVE_BUFFERS[loop] = ReceiveBuffer(_RECEIVE_BUFFER_BYTES)
    return buffer


def _tell(user: LinkUser, event: Event) -> None:
    """Hand an event about a link to its user."""
    match event:
        case DeliveriesReceived():
            user.on_deliveries(event)
        case CreditGranted():
            user.on_credit(event)
        case Settled():
            user.on_settled(event)
        case Answered():
            user.on_answered(event)
        case Drained():
            user.on_drained()
        case LinkAttached():
            user.on_attached(event)
        case LinkRefused():
            user.on_refused(event)
        case LinkDetached():
            user.on_detached(event)
        case _:
            pass  # of the connection, not of a link
