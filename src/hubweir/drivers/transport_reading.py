"""Decides whether a transport is read: it is, as long as nobody has a reason against it."""

from __future__ import annotations

import asyncio
from enum import Enum


class Pause(Enum):
    """Reasons why a transport is not read."""

    HOST = "the host wants no bytes now"
    STOP = "the service stops, and takes nothing before its close is sent"
    UNREAD = "the peer reads nothing of what it is sent, and would be sent more for each question"


class TransportReading:
    """Of one transport, which is told only when its reading really ends or begins. Before `begin` it is read."""

    __slots__ = ("_is_paused", "_reasons", "_transport")

    def __init__(self) -> None:
        self._transport: asyncio.ReadTransport | None = None
        self._reasons: set[Pause] = set()
        self._is_paused = False  # the transport was told so

    def begin(self, transport: asyncio.ReadTransport) -> None:
        """The transport is there, and reads."""
        self._transport = transport
        self._apply()

    def pause(self, reason: Pause) -> None:
        """Take no more bytes until this reason is gone; what was read already is still handled."""
        self._reasons.add(reason)
        self._apply()

    def go_on(self, reason: Pause) -> None:
        """This reason is gone."""
        self._reasons.discard(reason)
        self._apply()

    def go_on_for_good(self) -> None:
        """No reason counts any more: the transport is about to be closed, and a paused one would not see its end."""
        self._reasons.clear()
        self._apply()

    def _apply(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or self._is_paused == bool(self._reasons):
            return
        self._is_paused = bool(self._reasons)
        if self._is_paused:
            transport.pause_reading()
        else:
            transport.resume_reading()
