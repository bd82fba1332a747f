"""Accepted connections on their way to another process of one service, before a byte of them is read.

A process takes them on a Unix datagram socket: each datagram carries a connection, as a file descriptor (SCM_RIGHTS;
unix(7), Linux). A connection stays with the process that accepted it where no process takes connections, where as many
wait as the system lets wait (net.unix.max_dgram_qlen), and where what waits was passed TAKEN_WITHIN_S ago or earlier:
that process is stalled, and a connection that was passed cannot be taken back.
After a crash: connections that a process had not taken are reset, as those that it had; the path is there still, and
nobody takes what is sent there.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import logging
import socket
import struct
import termios
from collections.abc import Callable
from pathlib import Path

from hubweir.drivers.listening_socket import ACCEPTS_A_TURN, AddressTaken
from hubweir.drivers.unix_socket import CREDENTIALS, is_trusted

logger = logging.getLogger(__name__)

# A process that is busy takes what was passed to it within a turn of its loop.
TAKEN_WITHIN_S = 1.0
_DESCRIPTOR = struct.Struct("i")
_ONE = b"c"  # a datagram has to have a byte


class PassingOn:
    """The way to the process that takes connections on a path, whichever that is at the time."""

    def __init__(self, path: Path, time_s: Callable[[], float]) -> None:
        """time_s: a monotonic clock. OSError when there is no file descriptor left for the way."""
        self._path = str(path)
        self._time_s = time_s
        self._waits_since_s = 0.0  # where something waits: no earlier was all taken that had been passed
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)

    def pass_on(self, connection: socket.socket) -> bool:
        """Give a connection to that process, and close it here; False: it is ours still."""
        now_s = self._time_s()
        if not self._something_waits():
            self._waits_since_s = now_s
        elif now_s - self._waits_since_s >= TAKEN_WITHIN_S:
            return False
        descriptor = array.array("i", [connection.fileno()])
        try:
            self._sender.sendmsg([_ONE], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptor)], 0, self._path)
        except OSError:  # nobody is there, or too many wait
            return False
        connection.close()
        return True

    def close(self) -> None:
        """Pass no more; what was passed is taken still."""
        self._sender.close()

    def _something_waits(self) -> bool:
        """The system counts what was sent until it is received, or its receiver is gone."""
        waiting = array.array("i", [0])
        fcntl.ioctl(self._sender, termios.TIOCOUTQ, waiting)
        return waiting[0] > 0


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
        while self._take_one():
            pass
        self._socket.close()

    def _take(self) -> None:
        for _ in range(ACCEPTS_A_TURN):
            if not self._take_one():
                return

    def _take_one(self) -> bool:
        """Take what waits longest; False: nothing waits."""
        try:
            _, messages, _, _ = self._socket.recvmsg(len(_ONE), self._room, socket.MSG_CMSG_CLOEXEC)
        except (BlockingIOError, InterruptedError):
            return False
        connections, user = [], -1
        for _, kind, data in messages:
            if kind == socket.SCM_RIGHTS:  # room for one may be room for two, by its alignment
                connections = [socket.socket(fileno=descriptor) for (descriptor,) in _DESCRIPTOR.iter_unpack(data)]
            elif kind == socket.SCM_CREDENTIALS:
                _, user, _ = CREDENTIALS.unpack_from(data)
        if not is_trusted(user):
            logger.error("a connection on %s is closed: the process that passed it is of user %d", self._path, user)
        elif len(connections) == 1:
            connection = connections.pop()
            connection.setblocking(False)
            self._on_passed(connection)
        elif connections:
            logger.error("connections on %s are closed: a process passes one at a time", self._path)
        else:
            logger.error("a connection that another process passed is lost; raise the limit of open files")
        for connection in connections:
            connection.close()
        return True
