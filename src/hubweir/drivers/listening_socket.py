"""A listening socket and its accept loop: plainly bound where one process listens, and alive after any error of accept.

With SO_REUSEPORT a second server of the same user would silently take half of the connections; with a plain bind it
gets an error that names the address. Where several processes of one service listen on one port, they share it by
SO_REUSEPORT, and the system spreads connections over them (Linux alone does). Their supervisor has bound it plainly
before, and holds it from then on. Running out of descriptors or memory pauses accepting for a second; what waits
meanwhile waits in the kernel's queue.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable

from hubweir.errors import HubweirError

logger = logging.getLogger(__name__)

BACKLOG = 1024
# Connections taken in one turn of the loop; the rest wait for the next turn, so that the others get their share.
ACCEPTS_A_TURN = 64
ACCEPT_PAUSE_S = 1.0
OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class AddressTaken(HubweirError):
    """Another process listens on this address, or it cannot be bound."""


def bind(host: str, port: int, *, is_shared: bool = False) -> socket.socket:
    """A listening, non-blocking socket. Port 0 takes a free one. AddressTaken says which address and what to do.

    is_shared: with other processes of this user that say so too.
    """
    listener = _bound(host, port, is_shared=is_shared)
    try:
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise AddressTaken(f"cannot listen on {host} port {port}: {_reason(error, port)}") from None
    return listener


def hold_address(host: str, port: int, *, is_free: bool) -> socket.socket:
    """A socket that keeps an address for processes that share it, and takes no connection itself.

    is_free: nobody listens there yet, or AddressTaken as of `bind`; else those processes do. As long as one of them
    listens, nobody can bind there plainly. Port 0 takes a free one.
    """
    if is_free:
        with bind(host, port) as probe:
            port = probe.getsockname()[1]
    return _bound(host, port, is_shared=True)


def _bound(host: str, port: int, *, is_shared: bool) -> socket.socket:
    """A socket that is bound and does not listen."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise AddressTaken(f"{host!r} is no address of this machine ({error.strerror}); give another --host") from None
    listener = socket.socket(family, kind, protocol)
    try:
        # SO_REUSEADDR lets a restarted server bind while old connections linger; it admits no second listener on Linux.
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise AddressTaken(f"cannot listen on {host} port {port}: {_reason(error, port)}") from None
    return listener


def _reason(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another process does; stop it, or give other ports with --port"
    if error.errno == errno.EACCES:
        return f"ports below 1024 need a privilege; give a port above 1023 with --port (asked: {port})"
    return f"{error.strerror or error}; give an address of this machine with --host"


class AcceptLoop:
    """Takes connections from one listening socket until it is closed."""

    def __init__(
        self, listener: socket.socket, on_accepted: Callable[[socket.socket], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        """on_accepted owns the socket that it is given: non-blocking, and without Nagle's delay where it is TCP."""
        self._listener = listener
        self._on_accepted = on_accepted
        self._loop = loop
        self._pause: asyncio.TimerHandle | None = None
        loop.add_reader(listener, self._accept)

    def close(self) -> None:
        """Stop listening; connections that were accepted live on."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in OUT_OF_RESOURCES:
                    self._rest(error)
                    return
                # The peer gave up while it waited, or the network told of an old error: only that connection is lost.
                logger.info("a waiting connection was lost: %s", error)
                continue
            connection.setblocking(False)
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._on_accepted(connection)

    def _rest(self, error: OSError) -> None:
        logger.error("no new connection for %.0f s: %s; raise the limit of open files", ACCEPT_PAUSE_S, error.strerror)
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(ACCEPT_PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._accept)
