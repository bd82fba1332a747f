"""Lines of the log about the life of a service: its start, when it takes clients, and its end."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path

from hubweir import __version__
from hubweir.config.settings import LINES, Settings
from hubweir.service_log import READY, START, STOPPED, STOPPING

logger = logging.getLogger(__name__)

SECRET = "(secret)"


class ServiceLife:
    """Says the first line when it is made."""

    def __init__(self, settings: Settings) -> None:
        self._began_s = time.monotonic()
        START.say(
            logger,
            version=__version__,
            pid=os.getpid(),
            data=str(Path(settings.data).absolute()),
            settings=not_default(settings) or "none",
        )

    def ready(self, addresses: Iterable[tuple[str, int]]) -> None:
        """Clients may come."""
        READY.say(logger, addresses=", ".join(f"{host}:{port}" for host, port in addresses), seconds=self._seconds())

    def stopping(self) -> None:
        """It was told to stop."""
        STOPPING.say(logger, seconds=self._seconds())

    def stopped(self) -> None:
        """Everything is on disk."""
        STOPPED.say(logger, seconds=self._seconds())

    def _seconds(self) -> float:
        return time.monotonic() - self._began_s


def not_default(settings: Settings) -> str:
    """All settings that are not default, for people; of keys only that they are given."""
    told = []
    for line in LINES:
        value = getattr(settings, line.name)
        if value != line.default:
            told.append(f"{line.name}={shown(line.name, value)}")
    return " ".join(told)


def shown(name: str, value: object) -> str:
    """A value of a setting, for the log."""
    if next(line.metadata["secret"] for line in LINES if line.name == name):
        return SECRET
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
