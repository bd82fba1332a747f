"""A way to a live service on which what the service says is altered: to show what a client makes of other answers.

Plain TCP. What the client says goes through as it is; what the service says is cut into frames, and each that holds a
performative is given to `alter`, which returns the frame to pass on.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType

from hubweir.amqp.transport.performatives import Performative, decode_performative

# Takes a performative and the frame that it came in; returns what the client gets.
Alter = Callable[[Performative, bytes], bytes]
CHUNK = 65_536


class AlteredAnswers:
    """A port of this machine in front of a service's. A context manager: at its end all connections are cut."""

    def __init__(self, service: tuple[str, int], alter: Alter) -> None:
        self._service = service
        self._alter = alter
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> AlteredAnswers:
        self._run(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def cut(self) -> None:
        """End all connections, and take no other."""
        for each in (self._listening, *self._open):
            # A shutdown wakes the thread that waits there; a close alone does not.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _run(self, step: Callable[[], None]) -> None:
        thread = threading.Thread(target=step, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            service = socket.create_connection(self._service)
            self._open += (client, service)
            self._run(lambda client=client, service=service: self._pass_on(client, service, bytes))  # type: ignore[misc]
            frames = _Frames(self._alter)
            self._run(lambda client=client, service=service, frames=frames: self._pass_on(service, client, frames.take))  # type: ignore[misc]

    def _pass_on(self, source: socket.socket, target: socket.socket, take: Callable[[bytes], bytes]) -> None:
        with suppress(OSError):  # either end is gone
            while data := source.recv(CHUNK):
                target.sendall(take(data))
            target.shutdown(socket.SHUT_WR)


class _Frames:
    """The service's half of one connection."""

    def __init__(self, alter: Alter) -> None:
        self._alter = alter
        self._data = b""

    def take(self, data: bytes) -> bytes:
        """What of it goes on now: whole frames, altered, and protocol headers as they are."""
        self._data += data
        whole = []
        while len(self._data) >= 8:
            size = 8 if self._data.startswith(b"AMQP") else int.from_bytes(self._data[:4], "big")
            if len(self._data) < size:
                break
            frame, self._data = self._data[:size], self._data[size:]
            whole.append(self._altered(frame))
        return b"".join(whole)

    def _altered(self, frame: bytes) -> bytes:
        if frame.startswith(b"AMQP") or frame[5] != 0 or len(frame) == 8:
            return frame
        performative, _ = decode_performative(frame[4 * frame[4] :])
        return self._alter(performative, frame)
