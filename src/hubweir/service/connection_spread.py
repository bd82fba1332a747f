"""Spreads connections over the broker processes of one service: each gives what it accepts to all of them in turn.

The system draws the process that accepts a connection by lot, and of few connections one process may so get most. A
process that accepts connections therefore keeps the first, passes the second on to the next process, and so on, so that
however the lot falls all processes have nearly as many. A process that is away, or that stalls, takes none: the next
one gets its connection, and at last the process that accepted it keeps it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from hubweir.drivers.passed_connections import PassingOn


class ConnectionSpread:
    """Of one process. own: its place among `paths`, on which all processes take connections."""

    def __init__(
        self, paths: Sequence[Path], own: int, adopt: Callable[[socket.socket], None], time_s: Callable[[], float]
    ) -> None:
        """adopt: takes a connection that stays here. time_s: a monotonic clock."""
        self._ways = [None if index == own else PassingOn(path, time_s) for index, path in enumerate(paths)]
        self._adopt = adopt
        self._next = own

    def accepted(self, connection: socket.socket) -> None:
        """Keep a connection, or pass it on, whosever turn it is."""
        turn, count = self._next, len(self._ways)
        self._next = (turn + 1) % count
        for step in range(count):
            way = self._ways[(turn + step) % count]
            if way is None:  # it is this process's turn
                self._adopt(connection)
                return
            if way.pass_on(connection):
                return

    def close(self) -> None:
        """Pass no more on."""
        for way in self._ways:
            if way is not None:
                way.close()
