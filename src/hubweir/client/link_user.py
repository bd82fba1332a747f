"""Protocols between a client connection and the sender or receiver that uses one of its links. On the loop only."""

from __future__ import annotations

import asyncio
from typing import Protocol

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.transport.events import (
    Answered,
    CreditGranted,
    DeliveriesReceived,
    LinkAttached,
    LinkDetached,
    LinkRefused,
    Settled,
)
from hubweir.amqp.transport.link import Link
from hubweir.amqp.transport.session import Session
from hubweir.errors import CONDITION_OF_SYMBOL, DETACH_FORCED, INTERNAL_ERROR, TIMED_OUT, Condition, ServiceError


class LinkCarrier(Protocol):
    """The connection, for whoever attaches links to it."""

    @property
    def error(self) -> ServiceError | None:
        """Why the connection is over; None while it stands."""

    @property
    def session(self) -> Session:
        """A session with room for another link, and its answers. ServiceError when the connection is over."""

    def name_link(self, kind: str) -> str:
        """A link name that no other link of the connection has."""

    def register(self, link: Link, user: LinkUser) -> None:
        """Events about link go to user from now on. Sends the attach at the end of this turn."""

    def detach(self, link: Link) -> None:
        """End a link from our side; its user hears nothing more. Does nothing when it is over already."""

    def wake(self) -> None:
        """A link was given something to send."""


class LinkUser:
    """One link of a connection. Subclasses act on what comes; `attached` is done when the peer accepted the link."""

    def __init__(self, what: str) -> None:
        """what: names the link in error texts."""
        self.what = what
        self.attached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: ServiceError | None = None

    async def wait_attached(self, timeout_s: float) -> None:
        """Return when the peer accepted the link. ServiceError: it refused, or TIMED_OUT."""
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.shield(self.attached)
        except TimeoutError:
            raise ServiceError(
                TIMED_OUT, f"the attach of {self.what} got no answer within {timeout_s} s: try again"
            ) from None

    def on_attached(self, event: LinkAttached) -> None:
        if not self.attached.done():
            self.attached.set_result(None)

    def on_refused(self, event: LinkRefused) -> None:
        self.fail(service_error(event.error, f"the attach of {self.what} was refused"))

    def on_detached(self, event: LinkDetached) -> None:
        self.fail(service_error(event.error, f"the link to {self.what} was detached", DETACH_FORCED))

    def on_deliveries(self, event: DeliveriesReceived) -> None:
        """Deliveries came; rows hold until this returns."""

    def on_credit(self, event: CreditGranted) -> None:
        """The peer takes more deliveries."""

    def on_settled(self, event: Settled) -> None:
        """The peer's outcome for a range of ours."""

    def on_answered(self, event: Answered) -> None:
        """The peer's answer to an outcome that we told."""

    def on_drained(self) -> None:
        """The peer gave back what it had no use for of our credit."""

    def on_turn_end(self) -> None:
        """A read of the connection was handled whole."""

    def fail(self, error: ServiceError) -> None:
        """The link is over. Subclasses let their callers know, and call this first."""
        if self.error is None:
            self.error = error
        if not self.attached.done():
            self.attached.set_exception(error)
            self.attached.exception()  # whoever waits still gets it; nobody waiting is no fault


def service_error(error: AmqpError | None, what: str, otherwise: Condition = INTERNAL_ERROR) -> ServiceError:
    """The peer's error as an exception of ours; `otherwise` when it gave none."""
    if error is None:
        return ServiceError(otherwise, what)
    symbol = str(error.condition)
    condition = CONDITION_OF_SYMBOL.get(symbol) or Condition(
        symbol, 500, 500, False, "a condition that this client does not know"
    )
    return ServiceError(condition, f"{what}: {error.description}" if error.description else what)
