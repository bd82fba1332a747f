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

from hubweir.drivers.passed_connections import pass_on


class ConnectionSpread:
    """Of one process. own: its place among `paths`, on which all processes take connections."""

    def __init__(self, paths: Sequence[Path], own: int, adopt: Callable[[socket.socket], None]) -> None:
        """adopt: takes a connection that stays here."""
        self._paths = paths
        self._own = own
        self._adopt = adopt
        self._next = own

    def accepted(self, connection: socket.socket) -> None:
        """Keep a connection, or pass it on, whosever turn it is."""
        turn, count = self._next, len(self._paths)
        self._next = (turn + 1) % count
        for index in ((turn + step) % count for step in range(count)):
            if index == self._own or pass_on(connection, self._paths[index]):
                break
        if index == self._own:
            self._adopt(connection)
