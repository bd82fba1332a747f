"""Connections of one process end together: settled first, then told, then dropped when they do not answer."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from hubweir.amqp.endpoint import Endpoint
from hubweir.amqp.transport.settings import EndpointSettings, Role
from hubweir.drivers.amqp_driver import AmqpDriver
from hubweir.drivers.loop_turn import LoopTurn
from hubweir.drivers.monotonic import monotonic_ms
from hubweir.drivers.open_connections import OpenConnections
from hubweir.testing.event_loops import run_on


class SilentHost:
    """Takes whatever happens and answers nothing."""

    def __init__(self) -> None:
        self.closed = False
        self.driver: AmqpDriver | None = None

    def on_connected(self, driver: AmqpDriver) -> None:
        self.driver = driver

    def on_event(self, event: object) -> None: ...
    def on_turn_end(self) -> None: ...
    def on_writing_paused(self) -> None: ...
    def on_writable(self) -> None: ...

    def on_closed(self) -> None:
        self.closed = True


async def connected(connections: OpenConnections) -> tuple[SilentHost, socket.socket]:
    """A connection with a peer that says nothing: the peer's end."""
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    host = SilentHost()
    endpoint = Endpoint(Role.SERVER, EndpointSettings("test"), now_ms=monotonic_ms())
    driver = connections.new_driver(endpoint, host)
    await asyncio.get_running_loop().create_connection(lambda: driver, sock=ours)
    return host, peer


def ending(connections: OpenConnections, steps: list[str], **times: int) -> Any:
    def is_settled() -> bool:
        steps.append("settled?")
        return len(steps) > 2

    return connections.end(is_settled=is_settled, say_goodbye=lambda: steps.append("good-bye"), **times)


def test_who_does_not_answer_the_good_bye_is_dropped_and_everything_is_over() -> None:
    async def scenario() -> None:
        connections = OpenConnections(LoopTurn(asyncio.get_running_loop()))
        host, peer = await connected(connections)
        steps: list[str] = []
        await asyncio.wait_for(ending(connections, steps, grace_ms=200, close_ms=50), 10)
        assert steps[:2] == ["settled?", "settled?"]
        assert steps[-1] == "good-bye"
        assert host.closed
        peer.close()

    run_on("asyncio", scenario())


def test_a_connection_that_is_over_at_the_good_bye_is_not_waited_for() -> None:
    async def scenario() -> None:
        connections = OpenConnections(LoopTurn(asyncio.get_running_loop()))
        host, peer = await connected(connections)
        assert host.driver is not None
        ends = connections.end(is_settled=lambda: True, say_goodbye=host.driver.abort, grace_ms=60_000, close_ms=60_000)
        await asyncio.wait_for(ends, 10)
        assert host.closed
        peer.close()

    run_on("asyncio", scenario())


def test_without_connections_there_is_nothing_to_wait_for() -> None:
    async def scenario() -> None:
        connections = OpenConnections(LoopTurn(asyncio.get_running_loop()))
        steps: list[str] = []
        await asyncio.wait_for(ending(connections, steps, grace_ms=0, close_ms=60_000), 10)
        assert steps[-1] == "good-bye"

    run_on("asyncio", scenario())
