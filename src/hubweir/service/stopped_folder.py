"""A data folder on which no service runs, as a command that changes it has it: locked, and its stores opened.

The folder, its catalogs and all stores are locked, so that not even a broker process that a killed supervisor left goes
on with what it knew. A store that is opened takes a new epoch: a process that lost its lock accepts nothing any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol, TypeVar

from hubweir.drivers.system_env import SystemEnv
from hubweir.env import Env, join_path
from hubweir.errors import HubweirError, StoreLocked
from hubweir.limits import MIB
from hubweir.messaging_store.disk.files import SystemFiles
from hubweir.messaging_store.disk.layout import FORMAT_NAME
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.log_store import NotOpened
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.catalog_log import load_catalog
from hubweir.namespace.catalog_writer import CatalogWriter
from hubweir.service.completions import answer
from hubweir.service.data_folder import CATALOG_FOLDER, check_data_format, store_count, store_folder

T = TypeVar("T")

# What a store that takes a log keeps free: its RESERVE, and an epoch.
SPARE_BYTES = 8 * MIB


class WaitFor(Protocol):
    """Plays the loop until a completion has answered, and returns its answer."""

    def __call__(self, start: Callable[[Callable[[T], None]], object], /) -> T: ...


class StoppedFolder:
    """See the module's text. It blocks the loop, on which nothing else runs. What it holds is free when `ends` are."""

    def __init__(
        self,
        env: Env,
        env_of: Callable[[str], Env],
        wait_for: WaitFor,
        ends: ExitStack,
        in_use: Callable[[StoreLocked], HubweirError],
    ) -> None:
        """env_of: an Env for a store's folder, whose free space is that of the store's disk. in_use: what is raised
        where a service runs on the folder.
        """
        self.env = env
        self.wait_for = wait_for
        self.stores: dict[int, MessagingStore] = {}
        self.envs: dict[int, Env] = {}
        self._env_of = env_of
        self._ends = ends
        self._in_use = in_use
        self._lock("")

    def known(self) -> list[int]:
        """The stores that are there, by index."""
        files = self.env.files
        return [
            index for index in range(store_count(files)) if files.exists(join_path(store_folder(index), FORMAT_NAME))
        ]

    def own(self, index: int) -> None:
        """Open a store, with a new epoch; it is made when it is not there."""
        folder = store_folder(index)
        env = self.envs[index] = self._env_of(folder)
        self.stores[index] = self._open(env, folder)

    def lock_others(self) -> None:
        """Hold every store that is not opened; one that cannot be read is let be."""
        for index in self.known():
            if index not in self.stores:
                self._lock(store_folder(index))

    def catalogs(self) -> tuple[MessagingStore, Iterator[CatalogWriter]]:
        """The store of the catalogs, and what changes each of them. Raises what keeps one from being read."""
        store = self._open(self.env, CATALOG_FOLDER, has_retention=False)
        return store, self._writers(store)

    def _writers(self, catalogs: MessagingStore) -> Iterator[CatalogWriter]:
        for catalog_id in catalogs.log_ids():
            log = self.wait_for(partial(catalogs.open_log, catalog_id, durability=Durability.DURABLE))
            if isinstance(log, NotOpened):
                raise log.error
            loaded = self.wait_for(partial(load_catalog, log))
            if isinstance(loaded, Refused):
                raise loaded.error
            yield CatalogWriter(log, self.env, loaded)

    def _lock(self, folder: str) -> None:
        try:
            lock = self.env.files.lock_folder(folder)
        except StoreLocked as error:
            raise self._in_use(error) from error
        except OSError:
            if not folder:
                raise
            return
        self._ends.callback(lock.release)

    def _open(self, env: Env, folder: str, *, has_retention: bool = True) -> MessagingStore:
        try:
            store = MessagingStore.open(env, folder, has_retention=has_retention)
        except StoreLocked as error:
            raise self._in_use(error) from error
        self._ends.callback(self._close, store)
        return store

    def _close(self, store: MessagingStore) -> None:
        def start(on_done: Callable[[bool], None]) -> None:
            store.close(lambda: on_done(True))

        self.wait_for(start)


@contextmanager
def on_disk(data: str) -> Iterator[tuple[Env, Callable[[str], Env], WaitFor]]:
    """What a StoppedFolder is made with for a folder on the disk. Raises as check_data_format."""
    files = SystemFiles(data)
    check_data_format(files, data)
    loop = asyncio.new_event_loop()
    envs = [SystemEnv(files, loop=loop)]

    def env_of(folder: str) -> Env:
        envs.append(envs[0].beside(SystemFiles(data, space_of=folder), threads=1, name=folder))
        return envs[-1]

    try:
        yield envs[0], env_of, lambda start: loop.run_until_complete(answer(start))
    finally:
        for env in reversed(envs):
            env.close()
        loop.close()
