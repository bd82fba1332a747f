"""Limits the bytes that one connection's links queue in a loop turn, and orders the links that wait for the next turn.

A turn's bytes lie in memory until the socket takes them, and a peer that never reads leaves them there. So all links of
a connection share one bound a turn. A link that wants to send more waits in a line: it goes on behind the flush, when
the transport takes bytes; a link that was stopped goes to the end of the line, so that none is passed over.

A larger turn is cheaper per byte. Bytes beyond the smallest turn come from a pool that all connections of the process
share, until the socket has taken them. About 17 peers that read nothing empty the pool; every connection then gets the
smallest turn, which is slower, and is served.

A run that was read but not sent lies in memory too, for as long as the peer grants no credit, shuts its window or
reads nothing. Held runs are looked at twice a second, and one that nothing was sent from since is dropped; while the
process holds too much (gateway/held_runs.py), one that the transport does not take is dropped at once.
"""

from __future__ import annotations

from typing import Protocol

from hubweir.amqp.endpoint import Endpoint
from hubweir.env import Env, Timer
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.settings import LinkSettings

# A client that reads in rhythm comes back sooner; one that does not pays with one more read.
HELD_RUN_MS = 500
# A rest of the share is small under this part of it.
SMALL_REST = 8


class Sharer(Protocol):
    """A link's node that sends as much as it may."""

    def go_on(self) -> None:
        """Send again: there is room."""

    def drop_stale_run(self) -> bool:
        """Drop the run that is held when nothing was sent from it since the last call; True while one is held."""


class SharedConnection(Protocol):
    """The connection that sharers send on. gateway: of its namespace."""

    env: Env
    gateway: Gateway
    link_settings: LinkSettings
    endpoint: Endpoint
    writing_paused: bool

    def wake(self) -> None:
        """Something was given to the engine outside of the driver's turn: let it be written."""


class TurnShare:
    """See the module's text."""

    def __init__(self, connection: SharedConnection) -> None:
        self._connection = connection
        self._pool = connection.gateway.process.large_turns
        self._counted_bytes = 0  # in the pool: of a turn that the socket has not taken yet
        self._line: dict[Sharer, None] = {}  # a dict keeps the order of coming
        self._is_due = False
        self._is_over = False
        self._holders: dict[Sharer, None] = {}
        self._timer: Timer | None = None

    def left_bytes(self, wanted_bytes: int = 0) -> int:
        """What may still be given to the engine in this turn; nothing while the transport is full.

        wanted_bytes: about what is there to send; bytes beyond the least are counted only where it needs them. The
        first event of a send goes out whole, however large it is: so a rest that is small is not begun with.
        """
        connection = self._connection
        if connection.writing_paused:
            return 0
        share = connection.link_settings.turn_bytes
        left, small = share - connection.endpoint.unsent_bytes, share // SMALL_REST
        if left <= max(small, wanted_bytes):
            left += self._beyond_bytes
        return left if left > small else 0

    @property
    def _beyond_bytes(self) -> int:
        """What this turn may send beyond its least."""
        settings = self._connection.link_settings
        return min(settings.turn_limit_bytes - settings.turn_bytes, self._pool.left_bytes + self._counted_bytes)

    def wait(self, sharer: Sharer) -> None:
        """Call go_on when this one's turn has come."""
        self._line.setdefault(sharer)
        if not self._connection.writing_paused:  # a full transport was counted when it became full, and gets no more
            self._count(self._beyond_bytes)
        self._go_on_later()

    def paused(self, held_bytes: int) -> None:
        """The transport is full, and holds so much until the socket takes it."""
        self._count(max(0, held_bytes - self._connection.link_settings.turn_bytes))

    def writable(self) -> None:
        """The transport takes bytes again."""
        self._go_on()

    def holds_run(self, sharer: Sharer) -> None:
        """This one keeps a run that it could not send."""
        self._holders.setdefault(sharer)
        if self._timer is None:
            self._timer = self._connection.env.call_later(HELD_RUN_MS, self._look_at_runs)

    def forget(self, sharer: Sharer) -> None:
        """It sends no more."""
        self._line.pop(sharer, None)
        self._holders.pop(sharer, None)

    def close(self) -> None:
        """The connection is over."""
        self._count(0)
        self._is_over = True
        self._line, self._holders = {}, {}
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _go_on_later(self) -> None:
        """Other connections have their turn; then this one goes on. While the transport is full, `writable` does it."""
        if not self._is_due and not self._connection.writing_paused:
            self._is_due = True
            # Asked before, the flush of what was given so far runs first, and may find the transport full.
            self._connection.wake()
            self._connection.env.call_soon(self._go_on_when_due)

    def _go_on_when_due(self) -> None:
        self._is_due = False
        if not self._connection.writing_paused:
            self._go_on()

    def _go_on(self) -> None:
        """Let those in the line send, each once at most, until the share is used. The last turn is with the socket."""
        self._count(0)
        for _ in range(len(self._line)):
            if self.left_bytes() <= 0 or not self._line:
                break
            sharer = next(iter(self._line))
            del self._line[sharer]
            sharer.go_on()
        if self._line:
            self._go_on_later()

    def _look_at_runs(self) -> None:
        self._timer = None
        self._holders = {sharer: None for sharer in list(self._holders) if sharer.drop_stale_run()}
        if self._holders:
            self._timer = self._connection.env.call_later(HELD_RUN_MS, self._look_at_runs)

    def _count(self, size_bytes: int) -> None:
        if not self._is_over:
            self._pool.used_bytes += size_bytes - self._counted_bytes
            self._counted_bytes = size_bytes
