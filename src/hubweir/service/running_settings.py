"""SIGHUP: settings, keys, certificates and Config.json read anew while a service runs.

Everything is read from where it was read at the start. What can change while the service runs changes; of what cannot,
a line of the log says that it stays. When something cannot be read or is not legal, one line says what, and nothing of
it changes; certificates are read again in any case. A start that follows finds the same sources, and goes by all.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from hubweir.config.namespace_settings import SaidNamespaces
from hubweir.config.settings import LINES, CatalogSettings, EmulatorSettings, Settings, TlsSettings, names_of
from hubweir.drivers.tasks import Tasks
from hubweir.errors import HubweirError
from hubweir.service.parts import Parts
from hubweir.service.service_life import shown
from hubweir.service.taken_settings import SettingOutcome
from hubweir.service_log import READ_AGAIN

logger = logging.getLogger(__name__)

# What changes in the whole process at once.
LIVE = names_of(TlsSettings) | {"log_level"}
# What is said of namespaces: what became of it is told of each of them (taken_settings.py).
OF_NAMESPACES = names_of(CatalogSettings, EmulatorSettings)

Given: TypeAlias = Callable[[], tuple[Settings, SaidNamespaces]]


class RunningSettings:
    """See the module's text. given: reads everything anew; it blocks, and raises HubweirError for what cannot be."""

    def __init__(self, parts: Parts, given: Given) -> None:
        self._parts = parts
        self._given = given
        self._tasks = Tasks("settings")
        self._turn = asyncio.Lock()

    def read(self) -> None:
        """Read everything anew; one after the other, when it is asked for again meanwhile."""
        self._tasks.start(self._read(), name="read again")

    async def stop(self) -> None:
        """Take nothing more."""
        await self._tasks.stop()

    async def _read(self) -> None:
        async with self._turn:
            try:
                settings, said = await asyncio.to_thread(self._given)
            except HubweirError as error:
                _tell(SettingOutcome("the settings", f"stay as they were: {error}", is_wrong=True))
                self._parts.read_certificate()
                return
            self._take(settings)
            try:
                for taken in await self._parts.served_namespaces.go_by(said):
                    _tell(taken)
            except HubweirError as error:
                _tell(SettingOutcome("the namespaces", f"stay as they were: {error}", is_wrong=True))

    def _take(self, given: Settings) -> None:
        """Take what may change of the settings themselves."""
        known = self._parts.settings
        changed = {}
        for line in LINES:
            before, now = getattr(known, line.name), getattr(given, line.name)
            if before == now or line.name in OF_NAMESPACES:
                continue
            if line.name in LIVE:
                changed[line.name] = now
                _tell(SettingOutcome(f"setting {line.name}", f"became {shown(line.name, now)}"))
            else:
                stays = f"stays {shown(line.name, before)}"
                _tell(SettingOutcome(f"setting {line.name}", stays, shown(line.name, now)))
        self._parts.take_settings(replace(known, **changed))


def _tell(taken: SettingOutcome) -> None:
    level = logging.ERROR if taken.is_wrong else logging.WARNING if taken.waits else logging.INFO
    READ_AGAIN.say(logger, level=level, what=taken.what, outcome=taken.text)
