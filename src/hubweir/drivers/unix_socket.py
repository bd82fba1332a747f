"""Unix stream sockets between the processes of one service: listening on a path, connecting to one, who is there.

A path that a dead process left is taken over; one that somebody listens on is not. Both ends are of one user: whoever
has another user id is turned away, also where the folder would let them in. (Rule R26)
After a crash: the path is there still, and nobody answers on it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from hubweir.drivers.listening_socket import BACKLOG, AcceptLoop, AddressTaken

logger = logging.getLogger(__name__)

CREDENTIALS = struct.Struct("3i")  # pid, uid, gid of the process at the other end, as Linux gives them


def is_trusted(user: int) -> bool:
    """Whether a process of this user id may speak with this one."""
    return user in (os.getuid(), 0)


def connect_unix(path: Path) -> socket.socket:
    """A connected, non-blocking socket. OSError when nobody listens there, or somebody of another user."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.connect(str(path))
        _check_peer(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def listener_pid(path: Path) -> int | None:
    """The process that listens on a path, also one that is stopped; None: nobody does, or the system does not tell."""
    try:
        with connect_unix(path) as connection:
            return peer_pid(connection)
    except OSError:
        return None


def peer_pid(connection: socket.socket) -> int | None:
    """The process at the other end, which listened or connected; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    pid, _, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    return int(pid)


def _check_peer(connection: socket.socket) -> None:
    """PermissionError when the other end is another user's."""
    if sys.platform != "linux":
        return
    _, user, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
    if not is_trusted(user):
        raise PermissionError(f"the process at the other end belongs to user {user}")


class UnixListener:
    """Listens on a path until it is closed. Everybody of this user who connects is handed on."""

    def __init__(
        self, path: Path, on_accepted: Callable[[socket.socket], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        """on_accepted owns its socket, which is non-blocking. AddressTaken when somebody listens on the path."""
        self._path = path
        self._on_accepted = on_accepted
        if listener_pid(path) is not None:
            raise AddressTaken(f"another process listens on {path}; stop it first")
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise AddressTaken(f"cannot listen on {path}: {error.strerror or error}") from None
        self._accepting = AcceptLoop(listener, self._accepted, loop)

    def close(self) -> None:
        """Stop listening; connections live on."""
        self._accepting.close()
        self._path.unlink(missing_ok=True)

    def _accepted(self, connection: socket.socket) -> None:
        try:
            _check_peer(connection)
        except PermissionError as error:
            logger.error("a connection to %s is turned away: %s", self._path, error)
            connection.close()
        else:
            self._on_accepted(connection)
