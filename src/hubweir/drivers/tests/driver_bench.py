"""Two drivers on real sockets, a server's and a client's, plain or over TLS, with hosts that note what happens."""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.transport.events import Event, Opened, SaslInitiated
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.drivers.amqp_driver import AmqpDriver, ReceiveBuffer
from hubweir.drivers.monotonic import monotonic_ms
from hubweir.drivers.port_switch import PortSwitch
from hubweir.limits import PortLimits

Run = Callable[[Coroutine[Any, Any, Any]], Any]


class Host:
    """Notes what happens; a server accepts whoever comes, a client opens at once."""

    def __init__(self, endpoint: Endpoint, role: Role) -> None:
        self.endpoint = endpoint
        self.role = role
        self.driver: AmqpDriver | None = None
        self.events: list[Event] = []
        self.turns = 0
        self.steps: list[str] = []
        self.fail_at: type | None = None
        self.closed = asyncio.Event()

    def on_connected(self, driver: AmqpDriver) -> None:
        self.driver = driver
        if self.role is Role.CLIENT:
            self.endpoint.open()

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        if self.fail_at is not None and isinstance(event, self.fail_at):
            raise ValueError("planted")
        if isinstance(event, SaslInitiated):
            self.endpoint.answer_sasl(0)

    def on_turn_end(self) -> None:
        self.turns += 1

    def on_writing_paused(self) -> None:
        self.steps.append("paused")

    def on_writable(self) -> None:
        self.steps.append("writable")

    def on_closed(self) -> None:
        self.steps.append("closed")
        self.closed.set()

    def has(self, kind: type) -> bool:
        return any(isinstance(event, kind) for event in self.events)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it does; the test's own time-out ends it."""
    while not holds():
        await asyncio.sleep(0.001)


class Bench:
    """A listening port, and connections from client drivers to server drivers."""

    def __init__(self, tls: tuple[ssl.SSLContext, ssl.SSLContext] | None = None, **settings: Any) -> None:
        self.tls = tls
        self.settings = settings
        self.buffer = ReceiveBuffer()
        self.servers: list[Host] = []
        self.lost: list[AmqpDriver] = []
        self.switch = PortSwitch(
            amqp=self.accept, http=lambda: pytest.fail("not HTTP"), tls=tls[0] if tls else None, limits=PortLimits()
        )
        self.address = self.switch.listen("127.0.0.1", 0)

    def accept(self, peer: str) -> AmqpDriver:
        endpoint = Endpoint(Role.SERVER, EndpointSettings("server", **self.settings), now_ms=monotonic_ms())
        self.servers.append(Host(endpoint, Role.SERVER))
        return AmqpDriver(endpoint, self.servers[-1], self.buffer, on_lost=self.lost.append)

    async def close(self) -> None:
        """The transports' last callbacks run before the loop is closed."""
        await self.switch.close()
        await asyncio.sleep(0.01)

    async def connect(self, **settings: Any) -> tuple[Host, Host]:
        endpoint = Endpoint(
            Role.CLIENT, EndpointSettings("client", hostname="127.0.0.1", **settings), now_ms=monotonic_ms()
        )
        client = Host(endpoint, Role.CLIENT)
        count = len(self.servers)
        await asyncio.get_running_loop().create_connection(
            lambda: AmqpDriver(endpoint, client, ReceiveBuffer()),
            *self.address,
            ssl=self.tls[1] if self.tls else None,
        )
        await until(lambda: client.has(Opened))
        return client, self.servers[count]
