"""Limits how long a connection may take for its header, its open, its first link, and the answer to our close.

A server gives up a peer that is slower, or that has no link for too long; a client only waits for the end of a close.
Times are milliseconds of a clock that is passed in; idle time-outs are transport/idle_clock.py. (The numbers and whose
they are: transport/settings.py, limits.py)
"""

from __future__ import annotations

from hubweir.amqp.transport.settings import EndpointSettings, Role


class Deadlines:
    """Of one connection, begun at started_ms. is_opened: both opens have gone over."""

    __slots__ = (
        "_closing_since_ms",
        "_had_link",
        "_linkless_since_ms",
        "_opened_ms",
        "_role",
        "_settings",
        "_started_ms",
    )

    def __init__(self, role: Role, settings: EndpointSettings, started_ms: int) -> None:
        self._role = role
        self._settings = settings
        self._started_ms = started_ms
        self._opened_ms: int | None = None
        self._had_link = False
        self._linkless_since_ms: int | None = None
        self._closing_since_ms: int | None = None

    @property
    def is_opened(self) -> bool:
        return self._opened_ms is not None

    def opened(self, now_ms: int) -> None:
        """Both opens have gone over."""
        self._opened_ms = now_ms

    def notice(self, link_count: int, is_closing: bool, now_ms: int) -> None:
        """Note since when there is no link, and since when we close. To be called whenever either may have changed."""
        if link_count:
            self._had_link = True
            self._linkless_since_ms = None
        elif self._linkless_since_ms is None:
            self._linkless_since_ms = now_ms
        if is_closing and self._closing_since_ms is None:
            self._closing_since_ms = now_ms

    def next_ms(self, *, has_begun: bool) -> int | None:
        """When what goes on now has lasted too long; None when it may last for ever. has_begun: a header came."""
        settings = self._settings
        if self._closing_since_ms is not None:
            return self._closing_since_ms + settings.close_deadline_ms
        if self._role is Role.CLIENT:
            return None
        if not has_begun:
            return self._started_ms + settings.header_deadline_ms
        if self._opened_ms is None:
            return self._started_ms + settings.sasl_deadline_ms
        if not self._had_link:
            return self._opened_ms + settings.limits.unauthorized_connection_ms
        if self._linkless_since_ms is not None:
            return self._linkless_since_ms + settings.linkless_timeout_ms
        return None
