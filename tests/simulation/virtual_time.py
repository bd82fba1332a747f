"""An asyncio loop in virtual time, and connections from it to a gateway of the same time: hubweir's client, unchanged.

Nothing waits: when the loop has nothing to do, time goes on to the next thing that happens, in the loop or in the
simulated process of the gateway. Bytes take no time. Whatever the client reads a clock for is this time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from contextvars import Context
from types import SimpleNamespace
from typing import Any, Protocol

import pytest

from hubweir.gateway.amqp.tests.world import HOST, KEY, ROOT, World

CONNECTION_STRING = f"Endpoint=sb://{HOST};SharedAccessKeyName={ROOT};SharedAccessKey={KEY};UseDevelopmentEmulator=true"


class VirtualTime(Protocol):
    """What happens beside the loop, in virtual time: a simulated process, or several (SimulatedEnv has these calls)."""

    def monotonic_ms(self) -> int: ...

    def turn(self) -> None:
        """Play what is to happen now."""

    def next_ms(self) -> int | None:
        """When something happens next; None: nothing does any more."""

    def run(self, until_ms: int) -> None:
        """Play what is due up to then, and let time pass up to then."""


class TimedLoop(asyncio.SelectorEventLoop):
    """A loop whose time is virtual, and that runs no thread."""

    def __init__(self, time: VirtualTime) -> None:
        self._virtual_time = time
        self._skipping = _Skipping(time)
        super().__init__(self._skipping)

    def call_soon(self, callback: Any, *arguments: Any, context: Context | None = None) -> Any:
        self._skipping.is_wanted = True
        return super().call_soon(callback, *arguments, context=context)

    def time(self) -> float:
        return self._virtual_time.monotonic_ms() / 1_000

    def run_in_executor(self, executor: Any, call: Callable[..., Any], *arguments: Any) -> Any:
        """At once: time would go on by hours while a thread does it."""
        ended = self.create_future()
        try:
            ended.set_result(call(*arguments))
        except Exception as error:
            ended.set_exception(error)
        return ended


class VirtualLoop(TimedLoop):
    """is_away: nobody listens; new connections are refused. wires: the connections that were made."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wires: list[Wire] = []
        self.is_away = False
        super().__init__(world.env)

    async def create_connection(self, protocol_factory: Callable[[], Any], *where: Any, **how: Any) -> Any:
        if self.is_away:
            raise ConnectionRefusedError("nobody listens")
        wire = Wire(self, protocol_factory())
        self.wires.append(wire)
        wire.protocol.connection_made(wire)
        return wire, wire.protocol


class _Skipping(selectors.DefaultSelector):
    """Waits in virtual time. The system is asked nothing: the loop has one socket, to be woken by, and never sleeps.

    is_wanted: the loop has something to do now, so that no time may pass.
    """

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time
        self.is_wanted = False

    def select(self, timeout: float | None = None) -> Any:
        self.is_wanted = False
        self._time.turn()
        if not self.is_wanted and (timeout is None or timeout > 0):
            next_ms = self._time.next_ms()
            now_ms = self._time.monotonic_ms()
            times = [] if timeout is None else [now_ms + max(1, -int(-timeout * 1_000 // 1))]
            times += [] if next_ms is None else [next_ms]
            assert times, "the loop waits for something that never happens"
            self._time.run(min(times))
        return ()


class VirtualTransport(asyncio.Transport):
    """What every transport in virtual time answers alike: it is over nothing, and keeps nothing back."""

    def writelines(self, pieces: Any) -> None:
        self.write(b"".join(bytes(piece) for piece in pieces))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


class Wire(VirtualTransport):
    """The client's transport, and what the gateway's host takes for its driver."""

    peer_certificate, is_private, is_tls, unwritten_bytes = None, True, False, 0

    def __init__(self, loop: VirtualLoop, protocol: Any) -> None:
        super().__init__()
        self.protocol = protocol
        self._loop, self._env = loop, loop.world.env
        self._endpoint, self.host = loop.world.connections.new("a client in virtual time")
        self._is_over = self._is_woken = False
        self._timer: Any = None
        self.host.on_connected(self)  # type: ignore[arg-type]  # stands in for the driver

    def cut(self) -> None:
        """The network loses the connection: both ends hear of it."""
        if not self._is_over:
            self._is_over = True
            self._give(self._endpoint.receive_eof(self._env.monotonic_ms()))
            self.host.on_closed()
            self._loop.call_soon(self.protocol.connection_lost, None)

    # The client's transport

    def write(self, data: Any) -> None:
        self._loop.call_soon(self._receive, bytes(data))

    def close(self) -> None:
        self._loop.call_soon(self.cut)

    abort = close

    def is_closing(self) -> bool:
        return self._is_over

    # The gateway's driver

    def wake(self) -> None:
        if not self._is_woken:
            self._is_woken = True
            self._env.call_soon(self._wake_up)

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def _receive(self, data: bytes) -> None:
        if not self._is_over:
            self._give(self._endpoint.receive_data(memoryview(bytearray(data)), self._env.monotonic_ms()))
            self._flush()

    def _give(self, events: list[Any]) -> None:
        for event in events:
            self.host.on_event(event)
        self.host.on_turn_end()

    def _wake_up(self) -> None:
        self._is_woken = False
        self.host.on_turn_end()
        self._flush()

    def _flush(self) -> None:
        if self._is_over:
            return
        data = b"".join(bytes(piece) for piece in self._endpoint.data_to_send())
        if data:
            self._loop.call_soon(self._deliver, data)
        if self._endpoint.is_closed:
            self._loop.call_soon(self.cut)
        elif self._timer is None:
            due_ms = self._endpoint.next_deadline_ms()
            if due_ms is not None:
                self._timer = self._env.call_later(max(1, due_ms - self._env.monotonic_ms()), self._rang)

    def _rang(self) -> None:
        self._timer = None
        due_ms, now_ms = self._endpoint.next_deadline_ms(), self._env.monotonic_ms()
        if not self._is_over and due_ms is not None and due_ms <= now_ms:
            self._give(self._endpoint.on_time(now_ms))
        self._flush()

    def _deliver(self, data: bytes) -> None:
        for at in range(0, len(data), 65_536):
            if not self._is_over:
                piece = data[at : at + 65_536]
                self.protocol.get_buffer(len(piece))[: len(piece)] = piece
                self.protocol.buffer_updated(len(piece))


def set_clocks(patch: pytest.MonkeyPatch, monotonic_ms: Callable[[], int], now_ms: Callable[[], int]) -> None:
    """Whatever a client reads a clock for is this time."""
    for place in ("hubweir.client.connection.monotonic_ms", "hubweir.drivers.amqp_driver.monotonic_ms"):
        patch.setattr(place, monotonic_ms)
    patch.setattr("hubweir.client.connection_tokens.time", SimpleNamespace(time=lambda: now_ms() / 1_000))


def live(world: World, monkeypatch: pytest.MonkeyPatch, scenario: Callable[[VirtualLoop], Any]) -> None:
    """Run a scenario of the client in virtual time; a task's fault that nobody awaits fails it too."""
    loop = VirtualLoop(world)
    set_clocks(monkeypatch, world.env.monotonic_ms, world.env.now_ms)
    faults: list[Any] = []
    loop.set_exception_handler(lambda _, context: faults.append(context))
    try:
        loop.run_until_complete(scenario(loop))
    finally:
        loop.close()
    assert faults == []
