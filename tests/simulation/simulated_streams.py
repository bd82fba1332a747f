"""Byte streams between simulated processes and clients, in virtual time: late, held in one direction or both, cut.

It stands where sockets stand: `connect_unix` and `UnixListener` of the package are put in place by `installed`, clients
come through the loop's `create_connection`. What is written comes a moment later, in order, once, to a process that
may be stopped. A direction that is blocked keeps what is written, as TCP does, and gives it when it is open again. A
process that ends closes its ends: what it had written before still comes.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.simulation.many_processes import Processes, ProcessLoop, SimulatedProcess, current_process
from tests.simulation.virtual_time import VirtualTransport

PIECE_BYTES = 65_536
_END = b""  # of a stream, in an inbox


class Network:
    """All streams. blocked: directions, by the names of both ends, that give nothing on now."""

    def __init__(self, processes: Processes, random: Random, *, slowest_ms: int = 3) -> None:
        self.processes = processes
        self.random = random
        self.slowest_ms = slowest_ms
        self.blocked: dict[tuple[str, str], None] = {}
        self.listeners: dict[str, Listener] = {}
        self.gates: dict[SimulatedProcess, Callable[[StreamEnd], None]] = {}  # of the processes that clients come to
        self.ends: dict[StreamEnd, None] = {}
        self.on_stream_end: Callable[[StreamEnd, StreamEnd], None] = lambda end, peer: None

    # What stands in for the system

    def connect(self, path: Path) -> StreamEnd:
        """As drivers.unix_socket.connect_unix."""
        here = current_process()
        listener = self.listeners.get(path.name)
        if here is None or listener is None or not listener.process.is_alive:
            raise ConnectionRefusedError(f"nobody listens on {path.name}")
        if self.is_blocked(here.name, listener.process.name):
            raise TimeoutError(f"{path.name} cannot be reached")
        near, far = self.pair(here, here.name, listener.process, listener.process.name)
        near.asks = path.name
        far.later(listener.on_accepted, far)
        return near

    def listen(self, path: Path, on_accepted: Callable[[Any], None], loop: asyncio.AbstractEventLoop) -> Listener:
        """As drivers.unix_socket.UnixListener."""
        process = current_process()
        assert process is not None
        self.listeners[path.name] = Listener(self, path.name, process, on_accepted)
        return self.listeners[path.name]

    def reach(self, client: str) -> StreamEnd:
        """A client connects to one of the processes that take clients. OSError: it reaches none."""
        known = [process for process in self.gates if process.is_alive and not self.is_blocked(client, process.name)]
        if not known:
            raise ConnectionRefusedError("nobody listens")
        process = self.random.choice(known)
        near, far = self.pair(None, client, process, process.name)
        far.later(self.gates[process], far)
        return near

    # Faults

    def is_blocked(self, one: str, other: str) -> bool:
        """Whether anything is held between two."""
        return (one, other) in self.blocked or (other, one) in self.blocked

    def block(self, one: str, other: str, *, both_ways: bool) -> None:
        """Give nothing on from one to the other."""
        self.blocked[one, other] = None
        if both_ways:
            self.blocked[other, one] = None

    def heal(self) -> None:
        """Every direction is open."""
        self.blocked.clear()
        for end in tuple(self.ends):
            end.look()

    def cut(self, name: str, other: str | None = None) -> bool:
        """All streams of a client are lost, or those between two, with what is on its way; whether there was one."""
        its = [end for end in self.ends if end.name == name and other in (None, end.peer.name)]
        for end in its:
            end.lose()
        return bool(its)

    def died(self, process: SimulatedProcess) -> None:
        """A process ended."""
        self.gates.pop(process, None)
        for end in [end for end in self.ends if end.process is process]:
            end.fall()

    def pair(
        self, one: SimulatedProcess | None, name: str, other: SimulatedProcess, other_name: str
    ) -> tuple[StreamEnd, StreamEnd]:
        near, far = StreamEnd(self, one, name), StreamEnd(self, other, other_name)
        near.peer, far.peer = far, near
        self.ends[near] = self.ends[far] = None
        return near, far


class Listener:
    """Of one path, until it is closed."""

    def __init__(
        self, network: Network, path: str, process: SimulatedProcess, on_accepted: Callable[[Any], None]
    ) -> None:
        self.process = process
        self.on_accepted = on_accepted
        self._network, self._path = network, path

    def close(self) -> None:
        if self._network.listeners.get(self._path) is self:
            del self._network.listeners[self._path]


class StreamEnd(VirtualTransport):
    """One end: a socket until a protocol is put on it, then its transport.

    name: whose it is. asks: what it was connected to, "" at the end of who listens.
    """

    peer: StreamEnd
    asks = ""

    def __init__(self, network: Network, process: SimulatedProcess | None, name: str) -> None:
        super().__init__()
        self.process, self.name = process, name
        self.protocol: Any = None
        self._network = network
        self._loop: ProcessLoop = network.processes.loop
        self._context = contextvars.Context() if process is None else process.context.copy()
        self._inbox: deque[bytes] = deque()
        self._is_looking = self._is_paused = self._is_closing = self._is_over = False

    # The socket

    def setsockopt(self, *option: int) -> None:
        """How much it may buffer: here, all."""

    def put_on(self, protocol: Any) -> None:
        """Give it to a protocol, which gets what came before."""
        self.protocol = protocol
        protocol.connection_made(self)
        self.look()

    # The transport

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self.peer.come(bytes(data))

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._network.on_stream_end(self, self.peer)
            self.peer.come(_END)
            self._loop.call_soon(self._ended, context=self._context)

    abort = close

    def is_closing(self) -> bool:
        return self._is_closing

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        self.look()

    # Inside

    def come(self, data: bytes) -> None:
        """Something is on its way to this end."""
        if not self._is_over:
            self._inbox.append(data)
            self.look()

    def later(self, step: Callable[..., Any], *arguments: Any) -> None:
        """A step of whoever has this end, after the time that the way takes."""
        delay_ms = self._network.random.randrange(self._network.slowest_ms + 1)
        self._loop.call_later(delay_ms / 1_000, step, *arguments, context=self._context)

    def look(self) -> None:
        """Have what came taken, unless that is held."""
        if not self._is_looking and self._inbox and self.protocol is not None:
            self._is_looking = True
            self.later(self._take)

    def _take(self) -> None:
        self._is_looking = False
        while self._inbox and not self._is_closing:
            if self._is_paused or (self.peer.name, self.name) in self._network.blocked:
                return
            data = self._inbox.popleft()
            if data == _END:
                self.protocol.eof_received()
                self.close()
                return
            for at in range(0, len(data), PIECE_BYTES):
                piece = data[at : at + PIECE_BYTES]
                view = self.protocol.get_buffer(len(piece))
                taken = min(len(view), len(piece))
                view[:taken] = piece[:taken]
                self.protocol.buffer_updated(taken)
                while taken < len(piece) and not self._is_closing:
                    view = self.protocol.get_buffer(len(piece) - taken)
                    more = min(len(view), len(piece) - taken)
                    view[:more] = piece[taken : taken + more]
                    taken += more
                    self.protocol.buffer_updated(more)

    def _ended(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._network.ends.pop(self, None)
            if self.protocol is not None:
                self.protocol.connection_lost(None)

    def lose(self) -> None:
        """The network loses what is on its way to this end and from it, and both ends hear of it."""
        self._inbox.clear()
        self.peer._inbox.clear()
        if not self._is_closing:
            self.close()

    def fall(self) -> None:
        """Its process is gone, and hears nothing any more."""
        self._network.ends.pop(self, None)
        self._is_over = True
        if not self._is_closing:
            self._is_closing = True
            self._network.on_stream_end(self, self.peer)
            self.peer.come(_END)


class StreamLoop(ProcessLoop):
    """A loop that knows no sockets but these. A client is known by the name of the task in which it connects."""

    network: Network

    async def create_unix_connection(self, protocol_factory: Callable[[], Any], *where: Any, **how: Any) -> Any:
        end: StreamEnd = how["sock"]
        end.put_on(protocol_factory())
        return end, end.protocol

    async def create_connection(self, protocol_factory: Callable[[], Any], *where: Any, **how: Any) -> Any:
        end = self.network.reach(asyncio.current_task().get_name())  # type: ignore[union-attr]
        end.put_on(protocol_factory())
        return end, end.protocol
