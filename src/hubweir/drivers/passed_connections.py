"""Accepted connections on their way to another process of one service, before a byte of them is read.

A process takes them on a Unix datagram socket: each datagram carries a connection, as a file descriptor (SCM_RIGHTS;
unix(7), Linux). Where no process takes connections, or as many wait for it as the system lets wait
(net.unix.max_dgram_qlen), a connection stays with the process that accepted it.
After a crash: connections that a process had not taken are reset, as those that it had; the path is there still, and
nobody takes what is sent there.
"""

from __future__ import annotations

import array
import asyncio
import logging
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from hubweir.drivers.listening_socket import ACCEPTS_A_TURN, AddressTaken
from hubweir.drivers.unix_socket import CREDENTIALS, is_trusted

logger = logging.getLogger(__name__)

_DESCRIPTOR = struct.Struct("i")
_ONE = b"c"  # a datagram has to have a byte


def pass_on(connection: socket.socket, path: Path) -> bool:
    """Give a connection to the process that takes them on this path, and close it here; False: it is ours still."""
    descriptor = array.array("i", [connection.fileno()])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        try:
            sender.sendmsg([_ONE], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)], 0, str(path))
        except OSError:  # nobody is there, or too many wait
            return False
    connection.close()
    return True


class PassedConnections:
    """Takes the connections that are passed on a path, until it is closed. What another user passes is closed."""

    def __init__(self, path: Path, on_passed: Callable[[socket.socket], None], loop: asyncio.AbstractEventLoop) -> None:
        """on_passed owns its socket, which is non-blocking. Whoever took connections on this path takes no more."""
        self._path = path
        self._on_passed = on_passed
        self._loop = loop
        self._room = socket.CMSG_SPACE(_DESCRIPTOR.size) + socket.CMSG_SPACE(CREDENTIALS.size)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            path.unlink(missing_ok=True)
            self._socket.bind(str(path))
        except OSError as error:
            self._socket.close()
            raise AddressTaken(f"cannot take connections on {path}: {error.strerror or error}") from None
        loop.add_reader(self._socket, self._take)

    def close(self) -> None:
        """Take no more; those that wait are taken still. The second call does nothing: a process lets its clients go
        before it stops.
        """
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        self._path.unlink(missing_ok=True)
        self._take()
        self._socket.close()

    def _take(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            try:
                _, messages, _, _ = self._socket.recvmsg(len(_ONE), self._room, socket.MSG_CMSG_CLOEXEC)
            except (BlockingIOError, InterruptedError):
                return
            connection, user = None, -1
            for _, kind, data in messages:
                if kind == socket.SCM_RIGHTS:
                    connection = socket.socket(fileno=_DESCRIPTOR.unpack_from(data)[0])
                elif kind == socket.SCM_CREDENTIALS:
                    _, user, _ = CREDENTIALS.unpack_from(data)
            if connection is None:
                logger.error("a connection that another process passed is lost; raise the limit of open files")
            elif not is_trusted(user):
                logger.error("a connection on %s is closed: the process that passed it is of user %d", self._path, user)
                connection.close()
            else:
                connection.setblocking(False)
                self._on_passed(connection)
