"""A connection in memory for one client link, and the service at its other end, which does what a test says."""

from __future__ import annotations

import asyncio
from typing import Any

from hubweir.amqp.endpoint import Endpoint, EndpointSettings
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.message import DataBody, Message, encode_message
from hubweir.amqp.messaging.outcome import Outcome, Rejected
from hubweir.amqp.transport.events import LinkAttached, Settled
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.transport.session import Session
from hubweir.amqp.types.values import Symbol
from hubweir.client.connection import _tell
from hubweir.client.link_user import LinkUser
from hubweir.testing.endpoint_pair import EndpointPair, Side

LOST = Rejected(error=AmqpError(condition=Symbol("com.microsoft:message-lock-lost"), description="it is lost"))


class TellingSide(Side):
    """The client's end, which tells each event to the user of its link while the event's bytes are there."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self.users: dict[Link, LinkUser] = {}

    def take(self, events: list[Any]) -> None:
        super().take(events)
        for event in events:
            user = self.users.get(getattr(event, "link", None))  # type: ignore[arg-type]
            if user is not None:
                _tell(user, event)


class PairedConnection:
    """What a message link asks of its connection, with a service at the other end that does what the test says."""

    def __init__(self, *, timeout_s: float = 5.0, accepts: bool = True) -> None:
        self.timeout_s = timeout_s
        self.pair = EndpointPair(server=EndpointSettings("server"))
        self.pair.server.accepts = False
        self.side = self.pair.client = TellingSide(self.pair.client.endpoint)
        self.pair.opened()
        self.session: Session = self.side.endpoint.begin_session()
        self.detached: list[Link] = []
        self.pump()
        self.accepts = accepts

    # What the link asks

    def name_link(self, kind: str) -> str:
        return f"{kind}-{len(self.side.users)}"

    def register(self, link: Link, user: LinkUser) -> None:
        self.side.users[link] = user
        self.wake()

    def detach(self, link: Link) -> None:
        self.detached.append(link)
        del self.side.users[link]
        link.detach()
        self.pump()

    def wake(self) -> None:
        asyncio.get_running_loop().call_soon(self.pump)

    # What the service does

    def pump(self) -> None:
        self.pair.pump()
        for event in self.pair.server.events:
            if isinstance(event, LinkAttached) and self.accepts and not event.link.is_attached:
                assert isinstance(event.link, SenderLink)
                event.link.answer_by_host(lambda: LOST)
                event.link.accept()
        self.pair.pump()

    @property
    def there(self) -> SenderLink:
        """The service's half of the one link."""
        [link] = self.pair.server.endpoint.sessions[0].links
        assert isinstance(link, SenderLink)
        return link

    def send(self, *bodies: bytes, settled: bool = False) -> None:
        for body in bodies:
            self.there.send(encode_message(Message(body=DataBody((body,)))), settled=settled)
        self.pump()

    def answer(self, first: int, last: int, outcome: Outcome) -> None:
        self.there.answer([(first, last)], outcome)
        self.pump()

    @property
    def told(self) -> list[tuple[int, int, object]]:
        """What the client said about deliveries, in its order."""
        events = self.pair.server.events
        return [(each.first_id, each.last_id, each.outcome) for each in events if isinstance(each, Settled)]

    async def asked(self) -> None:
        """Return when the client has granted credit (again)."""
        while not self.there.credit:
            await asyncio.sleep(0)

    async def drains(self) -> None:
        """Return when the client has asked for its credit back, and give it."""
        while not self.there.drain:
            await asyncio.sleep(0)
        self.there.drained()
        self.pump()
