"""The messaging stores of a process that has several: opened together, each on threads of its own.

A disk that is slow, or hangs, so holds up no log of another one. Of all stores of a service one must be open for a
start to go on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from functools import partial

from hubweir.alarms import Alarms
from hubweir.broker.broker import Broker
from hubweir.config.settings import ProcessSettings
from hubweir.drivers.system_env import SystemEnv
from hubweir.env import Env
from hubweir.errors import HubweirError
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.service.bounded_stop import StopWaits
from hubweir.service.data_folder import about_store, store_folder
from hubweir.service.served_store import ServedStore

# A disk that answers is known by then; one that hangs comes later, or never.
STORES_WAIT_S = 5.0


class NoStoreAnswers(HubweirError):
    """All disks of a service hang."""


def no_store_answers(settings: ProcessSettings) -> NoStoreAnswers:
    """None of the stores of a service answers."""
    return NoStoreAnswers(f"no messaging store of the data folder {settings.data} answers")


class ServedStores:
    """See the module's text. open_broker: opens the store of an index with an Env, and makes the broker on it.

    named: the stores in which catalogs name logs. stop_waits: is told what its stop waits for.
    """

    def __init__(
        self,
        env: SystemEnv,
        settings: ProcessSettings,
        alarms: Alarms,
        open_broker: Callable[[int, Env], Broker],
        *,
        named: Container[int],
        stop_waits: StopWaits,
    ) -> None:
        self._env = env
        self._settings = settings
        self._alarms = alarms
        self._open_broker = open_broker
        self._named = named
        self._stop_waits = stop_waits
        self._stores: tuple[ServedStore, ...] = ()
        self._envs: list[SystemEnv] = []
        self._changed = asyncio.Event()

    async def start(self, indexes: Iterable[int]) -> tuple[ServedStore, ...]:
        """The stores, in this order, once each is open or known to be away, or STORES_WAIT_S are over."""
        self._stores = tuple(map(self._new, indexes))
        for store in self._stores:
            store.on_change(lambda _: self._changed.set())
            store.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(STORES_WAIT_S):
                while not all(store.is_up or store.problem is not None for store in self._stores):
                    self._changed.clear()
                    await self._changed.wait()
        return self._stores

    def check_one_is_up(self) -> None:
        """What keeps one of them away, when none is open."""
        if not any(store.is_up for store in self._stores):
            raise next((store.problem for store in self._stores if store.problem), no_store_answers(self._settings))

    async def stop(self) -> None:
        """Stop all brokers, together, then the threads."""
        waits = self._stop_waits
        await asyncio.gather(*(waits.until_done(about_store(store.index), store.stop) for store in self._stores))
        for store, env in zip(self._stores, self._envs, strict=True):
            with waits.on(about_store(store.index)):
                env.close()

    def _new(self, index: int) -> ServedStore:
        folder, settings = store_folder(index), self._settings
        files = SystemFiles(settings.data, space_of=folder)
        env = self._env.beside(files, threads=settings.offload_threads, name=folder)
        self._envs.append(env)
        return ServedStore(
            index, env, self._alarms, open_broker=partial(self._open_broker, index), has_logs=index in self._named
        )
