"""Chooses the event loop that a process runs on: uvloop where it is wanted and installed, else asyncio's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hubweir.errors import HubweirError


class NoSuchLoop(HubweirError):
    """The loop that was asked for is not installed."""


def loop_factory(name: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    """For asyncio.Runner: None is asyncio's own. name: auto, uvloop or asyncio."""
    if name == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if name == "uvloop":
            raise NoSuchLoop("uvloop is not installed; --loop asyncio works everywhere") from None
        return None
    return uvloop.new_event_loop
